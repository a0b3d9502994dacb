"""Requests of model providers, against a server that plays one."""

import atexit
import contextlib

from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Received, Turn, fake_upstream
from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import Request, Specimen

_OPEN = contextlib.ExitStack()
atexit.register(_OPEN.close)


def _answer(request: Received) -> Answer:
    if request.path.endswith("/models"):
        return openai_chat.models("m")
    turn = Turn(text=["OK"], usage=(1, 1))
    return openai_chat.stream(turn) if request.json.get("stream") else openai_chat.whole(turn)


def _start(_: LiveApp) -> FakeUpstream:
    upstream = _OPEN.enter_context(fake_upstream())
    upstream.respond = _answer
    return upstream


def configuration(app: LiveApp) -> dict[str, str]:
    """A provider that answers, with the fields that a provider must have."""
    upstream = app.once("upstream", _start)
    return {"name": "某服务", "provider_type": "openai_compatible", "base_url": upstream.url}


def _new_provider(app: LiveApp) -> str:
    request = Request(json=configuration(app))
    answer = request.send(app.session, BY_NAME["POST /api/providers"]).raise_for_status()
    provider_id: str = answer.json()["provider_id"]
    return provider_id


def _provider(app: LiveApp) -> dict[str, str]:
    return {"provider_id": app.once("provider", _new_provider)}


def _with_model(app: LiveApp) -> dict[str, str]:
    return {**configuration(app), "default_model": "m"}


OPERATIONS = {
    "GET /api/providers": Specimen(200),
    "GET /api/providers/presets": Specimen(200),
    "POST /api/providers": Specimen(
        201, lambda app: Request(json=configuration(app)), kept=("name",)
    ),
    "GET /api/providers/{provider_id}": Specimen(200, lambda app: Request(path=_provider(app))),
    "PATCH /api/providers/{provider_id}": Specimen(
        200, lambda app: Request(path=_provider(app), json={"name": "另一个"}), kept=("name",)
    ),
    "DELETE /api/providers/{provider_id}": Specimen(
        204, lambda app: Request(path={"provider_id": _new_provider(app)})
    ),
    # One of its own: the other is changed by requests that were made up.
    "GET /api/providers/{provider_id}/models": Specimen(
        200, lambda app: Request(path={"provider_id": app.once("listed", _new_provider)})
    ),
    "POST /api/providers/test": Specimen(200, lambda app: Request(json=_with_model(app))),
    "POST /api/providers/request-rules/validate": Specimen(
        200, lambda _: Request(json={"version": 1, "request_overrides": []})
    ),
    "POST /api/providers/request-preview": Specimen(
        200, lambda app: Request(json={"provider": configuration(app)})
    ),
    "POST /api/providers/request-probe": Specimen(
        200, lambda app: Request(json={"provider": _with_model(app), "stream": True})
    ),
}
