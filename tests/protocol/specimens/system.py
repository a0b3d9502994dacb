"""Requests of the program's own paths."""

from tests.protocol.live import LiveApp
from tests.protocol.specimens.request import Request, Specimen


def _package(app: LiveApp) -> Request:
    package = app.folder / "package"
    package.mkdir(exist_ok=True)
    return Request(json={"path": str(package)})


OPERATIONS = {
    "GET /health": Specimen(200),
    "GET /api/system/info": Specimen(200),
    "GET /api/system/health": Specimen(200),
    "GET /api/system/network": Specimen(200),
    "PUT /api/system/network": Specimen(
        200, lambda _: Request(json={"proxy": None, "ca_file": None})
    ),
    "POST /api/system/shutdown": Specimen(202),
    "POST /host/vault": Specimen(200, lambda app: Request(json={"path": str(app.vault)})),
    "POST /host/packages": Specimen(201, _package),
    "GET /host/status": Specimen(200),
}
