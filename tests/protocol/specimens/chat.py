"""Requests of the chat."""

import contextlib
from typing import Any

from sidecar.providers.schemas.wire import ProviderCreateRequest
from tests.fakes import openai_chat
from tests.fakes.upstream import Turn, fake_upstream
from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import Request, Specimen

# The model server answers for as long as the tests run; its thread ends with them.
_servers = contextlib.ExitStack()


def _provider(app: LiveApp) -> str:
    def make(app: LiveApp) -> str:
        server = _servers.enter_context(fake_upstream())
        server.respond = lambda _: openai_chat.stream(Turn(text=["A quantum."], usage=(3, 2)))
        request = ProviderCreateRequest(
            name="Model server",
            provider_type="openai_compatible",
            base_url=server.url,
            default_model="m",
            capabilities=["chat", "streaming"],
        )
        return app.call(app.services.providers.create(request)).provider_id

    return app.once("chat provider", make)


def _question(app: LiveApp) -> dict[str, Any]:
    messages = [{"role": "user", "content": "What is it?"}]
    return {"provider_id": _provider(app), "model": "m", "messages": messages}


def _new_conversation(app: LiveApp) -> str:
    operation = BY_NAME["POST /api/chat/conversations"]
    answer = Request(json={"title": "操作系统"}).send(app.session, operation).raise_for_status()
    conversation_id: str = answer.json()["conversation_id"]
    return conversation_id


def _conversation(app: LiveApp) -> dict[str, str]:
    return {"conversation_id": app.once("conversation", _new_conversation)}


def _message(app: LiveApp) -> dict[str, str]:
    def make(app: LiveApp) -> dict[str, str]:
        path = {"conversation_id": _new_conversation(app)}
        asked = Request(json=_question(app) | path)
        asked.send(app.session, BY_NAME["POST /api/chat"]).raise_for_status()
        listing = BY_NAME["GET /api/chat/conversations/{conversation_id}/messages"]
        items = Request(path=path).send(app.session, listing).raise_for_status().json()["items"]
        return {**path, "message_id": items[-1]["message_id"]}

    return app.once("chat message", make)


_ONE = "/api/chat/conversations/{conversation_id}"

OPERATIONS = {
    "POST /api/chat": Specimen(200, lambda app: Request(json=_question(app))),
    "GET /api/chat/conversations": Specimen(200),
    "POST /api/chat/conversations": Specimen(
        201, lambda _: Request(json={"title": "操作系统"}), kept=("title",)
    ),
    f"GET {_ONE}": Specimen(200, lambda app: Request(path=_conversation(app))),
    f"PATCH {_ONE}": Specimen(
        200, lambda app: Request(path=_conversation(app), json={"title": "网络"}), kept=("title",)
    ),
    f"DELETE {_ONE}": Specimen(
        204, lambda app: Request(path={"conversation_id": _new_conversation(app)})
    ),
    f"GET {_ONE}/messages": Specimen(200, lambda app: Request(path=_conversation(app))),
    f"POST {_ONE}/messages/{{message_id}}/select": Specimen(
        200, lambda app: Request(path=_message(app))
    ),
}
