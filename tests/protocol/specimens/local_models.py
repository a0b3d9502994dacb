"""Requests of local models. The models that they fetch lie where nobody answers."""

import json
from typing import Final

from tests.protocol.live import AppClients, Hold, LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import JobSpecimen, Request, Specimen

PATH: Final = "/api/local-models"
DOWNLOAD: Final = f"{PATH}/{{model_id}}/download"
IMPORT: Final = f"{PATH}/{{model_id}}/import"
VERIFY: Final = f"{PATH}/{{model_id}}/verify"
STREAM: Final = f"{PATH}/{{model_id}}/events"
NOWHERE: Final = "http://127.0.0.1:9"
COUNT: Final = 20
# Nothing else is transferred of this one, so that its events stay as they are.
FOLLOWED: Final = "absent-0"


def _catalogue(app: AppClients) -> None:
    """Add models to the catalogue that nobody offers."""

    def write(app: AppClients) -> bool:
        folder = app.folder / "data" / "models"
        folder.mkdir(exist_ok=True, parents=True)
        models = [
            {
                "model_id": f"absent-{number}",
                "display_name": "Absent",
                "purpose": "transcription",
                "format": "whisper",
                "licence": "MIT",
                "repository": "nobody/absent",
                "size_bytes": 10,
                "files": [{"path": "model.bin"}],
            }
            for number in range(COUNT)
        ]
        document = {"version": 1, "mirrors": [NOWHERE], "models": models}
        (folder / "catalogue.json").write_text(json.dumps(document), encoding="utf-8")
        return True

    app.once("catalogue of models", write)


def _idle(app: AppClients) -> dict[str, str]:
    """Return a model that nothing is transferred of."""
    _catalogue(app)
    models = app.session.get(PATH, params={"limit": 200}).raise_for_status().json()["items"]
    idle = (
        model["model_id"]
        for model in models
        if model["model_id"].startswith("absent-") and model["status"] != "downloading"
    )
    return {"model_id": next(name for name in idle if name != FOLLOWED)}


def _download(app: AppClients) -> Request:
    return Request(path=_idle(app))


def _import(app: AppClients, model_id: str | None = None) -> Request:
    empty = app.folder / "no model"
    empty.mkdir(exist_ok=True)
    answer = app.host.post("/host/packages", json={"path": str(empty)}).raise_for_status()
    path = {"model_id": model_id} if model_id else _idle(app)
    return Request(path=path, json={"package_id": answer.json()["package_id"]})


def _importing(app: LiveApp, model_id: str | None = None) -> Request:
    """Return a request for a model whose import waits until it is cancelled."""
    hold = Hold(app, app.services.jobs.kinds["model_import"], {})
    try:
        request = _import(app, model_id)
        request.send(app.session, BY_NAME[f"POST {IMPORT}"]).raise_for_status()
    finally:
        hold.give_back()
    return Request(path=request.path)


def _imported(app: LiveApp) -> Request:
    """Return a request for a model whose import was cancelled: its events are complete."""

    def make(app: LiveApp) -> Request:
        _catalogue(app)
        request = _importing(app, FOLLOWED)
        end = app.follow(FOLLOWED)
        app.session.post(f"{PATH}/{FOLLOWED}/cancel").raise_for_status()
        end.result(30)
        return request

    return app.once("events of a model", make)


def _installed(app: AppClients) -> Request:
    folder = app.folder / "data" / "models" / "own-model"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.bin", "config.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return Request(path={"model_id": folder.name})


OPERATIONS = {
    f"GET {PATH}": Specimen(200),
    f"GET {PATH}/diagnostics": Specimen(200),
    f"POST {DOWNLOAD}": Specimen(202, _download),
    f"POST {PATH}/{{model_id}}/cancel": Specimen(202, _importing),
    f"POST {IMPORT}": Specimen(202, _import),
    f"POST {VERIFY}": Specimen(202, _installed),
    f"DELETE {PATH}/{{model_id}}": Specimen(204, _installed),
    f"GET {STREAM}": Specimen(200, _imported),
}

JOBS = {
    "model_download": JobSpecimen(DOWNLOAD, _download, shown=False),
    "model_import": JobSpecimen(IMPORT, _import, shown=False),
    "model_verification": JobSpecimen(VERIFY, _installed, shown=False),
}

STREAMS = (STREAM,)
