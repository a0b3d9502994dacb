"""Requests of notes, folders, tags and the trash."""

from typing import Any, Final

from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import Request, Specimen

CREATE: Final = "POST /api/notes"
NOTE: Final = {"title": "笔记", "content": "# 笔记\n\nprocess scheduling\n"}


def new_note(app: LiveApp) -> str:
    """Make a note and return its id."""
    answer = Request(json=NOTE).send(app.session, BY_NAME[CREATE]).raise_for_status()
    note_id: str = answer.json()["note_id"]
    return note_id


def note(app: LiveApp) -> str:
    """Return the id of a note that stays."""
    return app.once("note", new_note)


def _trashed(app: LiveApp) -> Request:
    note_id = new_note(app)
    app.session.delete(f"/api/notes/{note_id}").raise_for_status()
    return Request(path={"note_id": note_id})


def _of(app: LiveApp, **body: Any) -> Request:
    path = {"note_id": note(app)}
    return Request(path=path, json=body) if body else Request(path=path)


OPERATIONS = {
    "GET /api/notes": Specimen(200),
    CREATE: Specimen(201, lambda _: Request(json=NOTE), kept=("content",)),
    "GET /api/notes/{note_id}": Specimen(200, _of),
    "PUT /api/notes/{note_id}": Specimen(
        200, lambda app: _of(app, content="# 笔记\n\nnew\n"), kept=("content",)
    ),
    "PATCH /api/notes/{note_id}": Specimen(200, lambda app: _of(app, title="Another title")),
    "DELETE /api/notes/{note_id}": Specimen(
        204, lambda app: Request(path={"note_id": new_note(app)})
    ),
    "POST /api/notes/{note_id}/move": Specimen(200, lambda app: _of(app, folder="课程/one")),
    "GET /api/folders": Specimen(200),
    "GET /api/tags": Specimen(200),
    "GET /api/trash": Specimen(200),
    "POST /api/trash/{note_id}/restore": Specimen(200, _trashed),
    "GET /api/vault": Specimen(200),
    "GET /api/vault/skipped": Specimen(200),
}
