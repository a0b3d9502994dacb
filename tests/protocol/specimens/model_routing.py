"""Requests of model routing, against a server that plays an embedding model."""

import atexit
import contextlib
from typing import Any

from tests.fakes.upstream import Answer, FakeUpstream, Received, fake_upstream
from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import Request, Specimen

_OPEN = contextlib.ExitStack()
atexit.register(_OPEN.close)


def _answer(request: Received) -> Answer:
    texts = request.json["input"]
    return Answer.of_json(
        {"data": [{"index": at, "embedding": [1, at]} for at in range(len(texts))]}
    )


def _start(_: LiveApp) -> FakeUpstream:
    upstream = _OPEN.enter_context(fake_upstream())
    upstream.respond = _answer
    return upstream


def _config(app: LiveApp) -> dict[str, Any]:
    answer = Request().send(app.session, BY_NAME["GET /api/model-routing"]).raise_for_status()
    config: dict[str, Any] = answer.json()["config"]
    return config


def _new_route(app: LiveApp) -> None:
    base_url = app.once("embedding upstream", _start).url
    body = {"name": "向量", "provider_type": "openai_compatible", "base_url": base_url}
    created = Request(json=body).send(app.session, BY_NAME["POST /api/providers"])
    route = {"provider_id": created.raise_for_status().json()["provider_id"], "model": "m"}
    request = Request(json={**_config(app), "embedding": route})
    request.send(app.session, BY_NAME["PUT /api/model-routing"]).raise_for_status()


def _embeddings(app: LiveApp) -> Request:
    app.once("embedding route", _new_route)
    return Request(json={"texts": ["调度", "scheduling"]})


OPERATIONS = {
    "GET /api/model-routing": Specimen(200),
    "PUT /api/model-routing": Specimen(200, lambda app: Request(json=_config(app))),
    "POST /api/models/embeddings": Specimen(200, _embeddings),
}
