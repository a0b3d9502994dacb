"""Wire models of credentials."""

import unicodedata
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

LONGEST_SECRET: Final = 16 * 1024
"""In bytes of UTF-8."""


def _secret(text: str) -> str:
    plain = text.strip(" ")
    if not plain:
        raise PydanticCustomError("secret_empty", "The secret is empty.")
    # Line separators and control characters can't be sent in a header, and are in no key.
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in plain):
        raise PydanticCustomError(
            "secret_control", "The secret holds a line break or a control character."
        )
    if len(plain.encode()) > LONGEST_SECRET:
        raise PydanticCustomError("secret_long", "The secret is longer than 16,384 bytes.")
    return plain


class CredentialSecret(BaseModel):
    """A secret on its way in."""

    model_config = ConfigDict(extra="forbid")

    secret: Annotated[str, AfterValidator(_secret)] = Field(
        description="1 to 16,384 bytes of UTF-8 on one line; blanks around it are dropped.",
        json_schema_extra={"writeOnly": True},
    )


class CredentialState(BaseModel):
    """Whether there is a secret under an id. Nothing tells the secret."""

    credential_id: str
    configured: bool
