"""Requests of usage."""

from tests.protocol.specimens.request import Specimen

OPERATIONS = {
    "GET /api/usage": Specimen(200),
    "GET /api/usage/export": Specimen(200),
}
