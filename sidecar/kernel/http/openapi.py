"""The OpenAPI document: what clients are generated from, in a stable order."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.models import Schema
from fastapi.openapi.utils import get_openapi

from sidecar.kernel.catalogue import ERRORS
from sidecar.kernel.errors import ERROR_SCHEMA, ErrorResponse
from sidecar.kernel.http.body_limit import BodyLimit, limit_of

_EVERYWHERE: Final = ("HOST_NOT_ALLOWED", "ORIGIN_NOT_ALLOWED", "INTERNAL_ERROR", "SHUTTING_DOWN")
_METHODS: Final = ("get", "post", "put", "patch", "delete", "head")


def openapi_document(app: FastAPI, limits: Mapping[str, BodyLimit]) -> dict[str, Any]:
    """Return the document of *app*, with the error responses that every operation shares."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                _complete(path, item[method], limits)
    schemas = document["components"]["schemas"]
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    schemas.update(_error_schemas())
    document["components"]["securitySchemes"] = {
        "session": {"type": "http", "scheme": "bearer", "description": "The session token."},
        "host": {"type": "http", "scheme": "bearer", "description": "The host token."},
    }
    document["paths"] = dict(sorted(document["paths"].items()))
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


def _error_schemas() -> dict[str, Any]:
    """Return the schemas of :class:`ErrorResponse` and of what it consists of, as FastAPI writes them."""
    schema = ErrorResponse.model_json_schema(
        mode="serialization", ref_template="#/components/schemas/{model}"
    )
    schemas = {**schema.pop("$defs"), ErrorResponse.__name__: schema}
    return {
        name: jsonable_encoder(Schema(**found), by_alias=True, exclude_none=True)
        for name, found in schemas.items()
    }


def _complete(path: str, operation: dict[str, Any], limits: Mapping[str, BodyLimit]) -> None:
    codes = list(_EVERYWHERE)
    if path != "/health":
        is_host = path.startswith("/host/") or path == "/api/system/shutdown"
        codes += ["SESSION_INVALID", *(["HOST_TOKEN_REQUIRED"] if is_host else [])]
        operation["security"] = [{"host": []}] if is_host else [{"session": []}, {"host": []}]
    responses = operation["responses"]
    validates = "422" in responses and "HTTPValidationError" in str(responses["422"])
    if validates:
        del responses["422"]
    if validates or "requestBody" in operation:
        codes.append("VALIDATION_ERROR")
    if "requestBody" in operation:
        limit = limit_of(path, limits)
        codes.append(limit.code)
        operation["requestBody"]["description"] = f"At most {limit.size:,} bytes."
    for code in codes:
        _add_error(responses, code)
    operation["responses"] = dict(sorted(responses.items()))


def _add_error(responses: dict[str, Any], code: str) -> None:
    line = f"`{code}`: {ERRORS[code].en}"
    response = responses.setdefault(
        str(ERRORS[code].status),
        {"description": "", "content": {"application/json": {"schema": ERROR_SCHEMA}}},
    )
    if line not in response["description"].split("\n"):
        response["description"] = "\n".join(filter(None, [response["description"], line]))
