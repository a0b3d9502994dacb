"""Requests of search and its index."""

from tests.protocol.specimens.request import Request, Specimen

OPERATIONS = {
    "POST /api/search": Specimen(
        200, lambda _: Request(json={"query": "scheduling", "mode": "fts", "limit": 10})
    ),
    "GET /api/index/status": Specimen(200),
}
