"""Requests of tasks."""

from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import Request, Specimen


def _new_task(app: LiveApp) -> str:
    request = Request(json={"title": "复习"})
    answer = request.send(app.session, BY_NAME["POST /api/tasks"]).raise_for_status()
    task_id: str = answer.json()["task_id"]
    return task_id


def _task(app: LiveApp) -> dict[str, str]:
    return {"task_id": app.once("task", _new_task)}


OPERATIONS = {
    "GET /api/tasks": Specimen(200),
    "POST /api/tasks": Specimen(201, lambda _: Request(json={"title": "复习"}), kept=("title",)),
    "PATCH /api/tasks/{task_id}": Specimen(
        200, lambda app: Request(path=_task(app), json={"title": "复习二"}), kept=("title",)
    ),
    "DELETE /api/tasks/{task_id}": Specimen(
        204, lambda app: Request(path={"task_id": _new_task(app)})
    ),
}
