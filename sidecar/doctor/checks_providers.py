"""Servers of chat models on this machine, found on the ports that they usually have."""

import http.client
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from sidecar.doctor.findings import Finding, message

# Asked directly and on this machine: who listens answers at once.
_SECONDS: Final = 1.5
_ANSWER_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChatServer:
    """A kind of server: where it usually listens, where it lists its models, where its API begins."""

    name: str
    port: int
    list_path: str
    base_path: str


USUAL_SERVERS: Final = (
    ChatServer("Ollama", 11434, "/api/tags", ""),
    ChatServer("LM Studio", 1234, "/v1/models", "/v1"),
    ChatServer("llama.cpp", 8080, "/v1/models", "/v1"),
    ChatServer("vLLM", 8000, "/v1/models", "/v1"),
)


def check_chat_servers(servers: Sequence[ChatServer] = USUAL_SERVERS) -> Finding:
    """Which servers answer with a list of models; none is needed."""
    with ThreadPoolExecutor(len(servers)) as pool:
        lists = list(pool.map(_models, servers))
    found = [
        {
            "name": server.name,
            "base_url": f"http://127.0.0.1:{server.port}{server.base_path}",
            "models": models,
        }
        for server, models in zip(servers, lists, strict=True)
        if models is not None
    ]
    details: dict[str, object] = {"servers": found}
    if not found:
        ports = ", ".join(f"{server.name} {server.port}" for server in servers)
        hint = message("chat_servers.hint")
        return Finding("missing", message("chat_servers.absent", ports=ports), hint, details)
    named = "; ".join(f"{server['name']} ({server['base_url']})" for server in found)
    count = sum(len(models) for models in lists if models)
    if count == 0:
        hint = message("chat_servers.empty.hint")
        return Finding("warning", message("chat_servers.empty", servers=named), hint, details)
    summary = message("chat_servers.present", servers=named, count=count)
    return Finding("ok", summary, None, details)


def _models(server: ChatServer) -> list[str] | None:
    """Return the names of a server's models, None if nobody there speaks this protocol."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_SECONDS)
    try:
        connection.request("GET", server.list_path, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        told: Any = json.loads(answer.read(_ANSWER_BYTES))
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
    items = told.get("data", told.get("models")) if isinstance(told, dict) else None
    if answer.status != 200 or not isinstance(items, list):
        return None
    names = [
        item.get("id") or item.get("name") or item.get("model")
        for item in items
        if isinstance(item, dict)
    ]
    return [name for name in names if isinstance(name, str)]
