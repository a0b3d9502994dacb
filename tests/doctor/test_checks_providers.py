"""Servers of chat models are found where they listen, and nobody else is taken for one."""

import socket
from collections.abc import Iterator

import pytest

from sidecar.doctor import checks_providers
from sidecar.doctor.checks_providers import USUAL_SERVERS, ChatServer, check_chat_servers
from tests.fakes import ollama, openai_chat
from tests.fakes.upstream import Answer, FakeUpstream, Received, fake_upstream


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with fake_upstream() as started:
        yield started


def servers_at(upstream: FakeUpstream) -> list[ChatServer]:
    port = int(upstream.url.rpartition(":")[2])
    return [
        ChatServer("Ollama", port, "/api/tags", ""),
        ChatServer("vLLM", port, "/v1/models", "/v1"),
    ]


def test_the_usual_ports() -> None:
    ports = {server.name: server.port for server in USUAL_SERVERS}
    assert ports == {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}


def test_servers_are_found_with_their_models(upstream: FakeUpstream) -> None:
    def respond(request: Received) -> Answer:
        if request.path == "/api/tags":
            return ollama.models("qwen3:8b")
        return openai_chat.models("a", "b")

    upstream.respond = respond
    finding = check_chat_servers(servers_at(upstream))
    assert finding.status == "ok" and finding.summary.params["count"] == 3
    assert finding.details["servers"] == [
        {"name": "Ollama", "base_url": upstream.url, "models": ["qwen3:8b"]},
        {"name": "vLLM", "base_url": f"{upstream.url}/v1", "models": ["a", "b"]},
    ]


def test_a_server_without_models_is_told(upstream: FakeUpstream) -> None:
    upstream.respond = lambda _: Answer.of_json({"models": []})
    finding = check_chat_servers(servers_at(upstream)[:1])
    assert finding.status == "warning" and finding.hint


@pytest.mark.parametrize(
    "answer",
    [
        Answer(pieces=[b"<html>a web site</html>"], content_type="text/html"),
        Answer.of_json({"detail": "Not Found"}, 404),
        Answer.of_json({"models": []}, 500),
        Answer.of_json(["a"]),
        Answer(no_head=True, end="eof"),
    ],
)
def test_others_on_these_ports_are_none(upstream: FakeUpstream, answer: Answer) -> None:
    upstream.respond = lambda _: answer
    finding = check_chat_servers(servers_at(upstream))
    assert finding.status == "missing" and finding.hint
    assert finding.details == {"servers": []}


def test_nobody_listens(unused_port: int) -> None:
    finding = check_chat_servers([ChatServer("vLLM", unused_port, "/v1/models", "/v1")])
    assert finding.status == "missing" and f"vLLM {unused_port}" in finding.summary.params["ports"]  # type: ignore[operator]


def test_one_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_providers, "_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        finding = check_chat_servers([ChatServer("vLLM", port, "/v1/models", "/v1")])
    assert finding.status == "missing"
