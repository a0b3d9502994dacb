"""Requests of credentials."""

from typing import Final

from tests.protocol.specimens.request import Request, Specimen

_PATH: Final = {"credential_id": "provider.specimen"}

OPERATIONS = {
    "GET /api/credentials/{credential_id}": Specimen(200, lambda _: Request(path=_PATH)),
    "PUT /api/credentials/{credential_id}": Specimen(
        200,
        lambda _: Request(path=_PATH, json={"secret": "sk-specimen-of-a-secret"}),
        secrets=("secret",),
    ),
    "DELETE /api/credentials/{credential_id}": Specimen(204, lambda _: Request(path=_PATH)),
}
