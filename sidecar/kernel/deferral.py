"""Keeps libraries from doing at the start what most runs never need; a third of the start, once.

Pydantic builds a model's validator and serializer with its class, and FastAPI builds one more for
each parameter, body and answer of each route. A run uses a few of them, and each is built in a
millisecond or two.
"""

import sys
import warnings

from pydantic import BaseModel
from pydantic.warnings import UnsupportedFieldAttributeWarning


def defer_model_building() -> None:
    """Have each model built when it is used first; to be called before the models are imported.

    It holds for FastAPI's own models too, which describe OpenAPI documents. A model that can't be
    built shows at its first use; whoever makes the OpenAPI document builds all that routes name.
    """
    BaseModel.model_config["defer_build"] = True
    # FastAPI names a parameter twice, and keeps Pydantic's warning of it back while a route is added.
    warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
    # For each parameter FastAPI looks whether it is a model of Pydantic 1, and for that loads all of
    # Pydantic 1 that Pydantic 2 brings along. There are none here. A module that is None can't be
    # imported, and FastAPI does without it.
    sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]
