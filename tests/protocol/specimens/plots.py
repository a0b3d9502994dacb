"""Requests of plots."""

from tests.protocol.specimens.request import Request, Specimen

OPERATIONS = {
    "POST /api/plots/function": Specimen(200, lambda _: Request(json={"source": "y = sin(x)"})),
}
