"""The one error that domains raise, and how it looks on the wire."""

from collections import defaultdict
from typing import Any, Final

from pydantic import BaseModel, Field

from sidecar.kernel.catalogue import ERRORS, Locale, LocalisedError, error_text


class ProjectError(Exception):
    """A failure that a client is told of by its code.

    *details* is structured information that is safe to show; *params* fill the placeholders of the
    code's message. Raising a code that isn't in the table is a KeyError: a programming mistake.
    """

    def __init__(
        self, code: str, *, details: dict[str, Any] | None = None, **params: object
    ) -> None:
        super().__init__(code)
        self.code = code
        self.status = ERRORS[code].status
        self.details = details or {}
        self.params = params
        self.headers: dict[str, str] = {}

    def message(self, locale: Locale | None = None) -> str:
        """Return the message for a person, in *locale* or in the language of the request."""
        return error_text(self.code, locale, **self.params)

    def localised(self) -> LocalisedError:
        """Return the message in the form in which it is stored."""
        return LocalisedError(self.code, self.params)

    def body(self, locale: Locale | None = None) -> dict[str, Any]:
        """Return the error object of the wire."""
        return {
            "error": {"code": self.code, "message": self.message(locale), "details": self.details}
        }


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str = Field(description="A stable code; clients branch on this alone.")
    message: str = Field(description="What a person may read, in the language of the request.")
    details: dict[str, Any] = Field(
        description="Structured information that is safe to show; {} when there is nothing to add."
    )


class ErrorResponse(BaseModel):
    """The body of every response that is an error."""

    error: ErrorBody


ERROR_SCHEMA: Final = {"$ref": "#/components/schemas/ErrorResponse"}


def error_responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of an operation that can answer with *codes*.

    They name :class:`ErrorResponse` by its place in the document: FastAPI would make each of them a
    field of its own, a third of the time that all routes take.
    """
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[ERRORS[code].status].append(code)
    return {
        status: {
            "description": "\n".join(f"`{code}`: {ERRORS[code].en}" for code in sorted(listed)),
            "content": {"application/json": {"schema": dict(ERROR_SCHEMA)}},
        }
        for status, listed in sorted(by_status.items())
    }
