"""What all HTTP operations share; with the routers, the one place that knows FastAPI."""
