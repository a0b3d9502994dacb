"""What the protocol asks of every route and every kind of job, tried on all that the product has.

The operations come from the OpenAPI document and the kinds of job from the job engine. A new domain adds its requests
to `specimens/` and no test.
"""
