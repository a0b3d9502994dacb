"""Requests of search and its index."""

from tests.protocol.live import AppClients
from tests.protocol.specimens.request import JobSpecimen, Request, Specimen


def _rebuild(_: AppClients) -> Request:
    return Request(json={"scope": "fts"})


OPERATIONS = {
    "POST /api/search": Specimen(
        200,
        lambda _: Request(json={"query": "scheduling", "mode": "fts", "limit": 10}),
        filters=("folder",),
    ),
    "GET /api/index/status": Specimen(200),
    "POST /api/index/rebuild": Specimen(202, _rebuild),
}

JOBS = {"index_rebuild": JobSpecimen("/api/index/rebuild", _rebuild, shown=False)}
