"""Turns every failure of a request into the one error object of the wire."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from sidecar.kernel.database import DatabaseClosedError
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger

log = get_logger(__name__)

_CODE_OF_STATUS = {
    400: "VALIDATION_ERROR",
    404: "RESOURCE_NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
    416: "RANGE_NOT_SATISFIABLE",
    422: "VALIDATION_ERROR",
}

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_NOT_VALID = "The value is not valid."
# Pydantic's messages of these types quote the input, or text of an exception that may.
_REPEATING_TYPES = frozenset(
    {"json_invalid", "value_error", "assertion_error", "uuid_parsing", "url_parsing"}
)


def _response(error: ProjectError, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error.body(), error.status, headers=(headers or {}) | error.headers)


def validation_error(errors: list[dict[str, Any]]) -> ProjectError:
    """Return ``VALIDATION_ERROR`` for Pydantic's *errors*: where and why, never the value."""
    found = [
        {
            "loc": [part if isinstance(part, int) else str(part) for part in error["loc"]],
            "message": _safe_reason(error),
        }
        for error in errors
    ]
    return ProjectError("VALIDATION_ERROR", details={"errors": found})


def _safe_reason(error: dict[str, Any]) -> str:
    """Return Pydantic's reason, unless it is of a type that may repeat the input, or does so."""
    context = error.get("ctx", {})
    if error["type"] == "union_tag_invalid":
        return f"Input should have one of the tags {context['expected_tags']}"
    if error["type"] in _REPEATING_TYPES:
        return str(context.get("reason") or _NOT_VALID)
    message, value = str(error["msg"]), error.get("input")
    return _NOT_VALID if isinstance(value, str) and len(value) > 3 and value in message else message


def _allowed_methods(app: FastAPI, request: Request) -> str:
    """Return every method of the request's path; the framework names those of one route alone."""
    return ", ".join(
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in app.routes
        )
    )


def install_error_handlers(app: FastAPI) -> None:
    """Make *app* answer every failure with the error object."""

    @app.exception_handler(ProjectError)
    async def _project_error(_: Request, error: ProjectError) -> JSONResponse:
        return _response(error)

    @app.exception_handler(RequestValidationError)
    async def _validation(_: Request, error: RequestValidationError) -> JSONResponse:
        return _response(validation_error(list(error.errors())))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        project_error = getattr(error, "project_error", None)
        if not isinstance(project_error, ProjectError):
            project_error = ProjectError(_CODE_OF_STATUS.get(error.status_code, "INTERNAL_ERROR"))
            if error.status_code in (400, 422):
                project_error.details = {
                    "errors": [{"loc": ["body"], "message": "Malformed body."}]
                }
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = _allowed_methods(app, request)
        return _response(project_error, headers)

    @app.exception_handler(DatabaseClosedError)
    async def _closed(_: Request, __: DatabaseClosedError) -> JSONResponse:
        return _response(ProjectError("SHUTTING_DOWN"))

    @app.exception_handler(Exception)
    async def _unexpected(_: Request, error: Exception) -> JSONResponse:
        log.error("request.unexpected_failure", exc_info=error)
        # The server gives the connection up, and a client that isn't told so loses its next request.
        return _response(ProjectError("INTERNAL_ERROR"), {"Connection": "close"})
