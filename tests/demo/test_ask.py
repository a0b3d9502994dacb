"""``sidecar demo --ask``, run as people run it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.demo.ask import ModelServer
from tests.chat.conftest import SEARCH, searching
from tests.fakes import openai_chat
from tests.fakes.upstream import FakeUpstream, Received, Turn, fake_upstream


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A folder with a note."""
    folder = tmp_path / "notes"
    folder.mkdir()
    text = "# Scheduling\n\n## Round robin\n\nA quantum is 20 ms.\n"
    (folder / "OS.md").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def upstream() -> Any:
    """A model server."""
    with fake_upstream() as server:
        yield server


def ask(vault: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask the notes in a folder."""
    command = [sys.executable, "-m", "sidecar", "demo", "--vault", str(vault)]
    command += ["--data-dir", str(vault.parent / "demo"), *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.run(
        command,
        env={**clean, "LC_ALL": "en_US.UTF-8", "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=90,
        check=False,
    )


def test_without_a_model_server_it_shows_what_the_search_finds(vault: Path) -> None:
    done = ask(vault, "--ask", "quantum", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [hit["file_path"] for hit in report["hits"]] == ["OS.md"]
    assert report["answer"] is report["base_url"] is report["error"] is None
    shown = ask(vault, "--ask", "quantum")
    assert "1. OS.md › Scheduling › Round robin: A quantum is 20 ms." in shown.stdout
    assert "No model server was given" in shown.stdout and "--base-url" in shown.stdout


def test_a_model_answers_and_its_sources_are_shown(vault: Path, upstream: FakeUpstream) -> None:
    upstream.answers += [
        openai_chat.models("embedding-model", "small-model"),
        openai_chat.stream(searching("quantum", text=["Let me look."])),
        openai_chat.stream(Turn(text=["It is 20 ms [1]."])),
    ]
    environment = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "sk-canary-0123456789"}
    done = ask(vault, "--ask", "How long is a quantum?", **environment)
    assert done.returncode == 0, done.stderr
    assert f"Answer of small-model at {upstream.url}" in done.stdout
    assert "Let me look.\n\nIt is 20 ms [1]." in done.stdout
    assert "[1] OS.md › Scheduling › Round robin" in done.stdout
    assert "searched for: quantum" in done.stdout
    assert [openai_chat.sent_tools(one.json) for one in upstream.received[1:]] == [[SEARCH]] * 2
    for request in upstream.received:
        assert request.headers["authorization"] == "Bearer sk-canary-0123456789"
    assert "canary" not in done.stdout + done.stderr
    kept = [path.read_bytes() for path in (vault.parent / "demo").rglob("*") if path.is_file()]
    assert not any(b"canary" in content for content in kept)


def test_a_model_without_tools_gets_what_was_found(vault: Path, upstream: FakeUpstream) -> None:
    def respond(request: Received) -> Any:
        if "tools" in request.json:
            return openai_chat.refusal(400, "invalid_request", "tools param requires --jinja flag")
        return openai_chat.stream(Turn(text=["20 ms."], usage=(7, 3)))

    upstream.respond = respond
    done = ask(vault, "--ask", "quantum", "--base-url", upstream.url, "--model", "m")
    assert done.returncode == 0, done.stderr
    assert "takes no tools" in done.stdout and done.stdout.rstrip().endswith("20 ms.")
    assert "A quantum is 20 ms." in upstream.received[-1].json["messages"][-1]["content"]
    upstream.reset()
    upstream.respond = respond
    done = ask(vault, "--ask", "quantum", "--base-url", upstream.url, "--model", "m", "--no-tools")
    assert done.stdout.rstrip().endswith("20 ms.") and len(upstream.received) == 1


def test_what_goes_wrong_is_said(vault: Path, upstream: FakeUpstream) -> None:
    upstream.respond = lambda _: openai_chat.refusal(401, "invalid_api_key", "no")
    done = ask(vault, "--ask", "quantum", "--base-url", upstream.url, "--model", "m", "--json")
    assert done.returncode == 1
    assert "did not accept the API key" in json.loads(done.stdout)["error"]


def test_a_key_goes_to_its_own_server_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert ModelServer.named(None, None) is None

    def key(base_url: str | None) -> str | None:
        server = ModelServer.named(base_url, None)
        assert server is not None
        return server.key

    assert key("http://127.0.0.1:11434/v1") is None
    assert key("https://api.openai.com/v1") == "sk-canary-0123456789"
    assert key("https://api.openai.com.example.org/v1") is None
    assert key("http://api.openai.com@example.org/v1") is None
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example.org/v1")
    assert key(None) == "sk-canary-0123456789"
    assert key("http://127.0.0.1:11434/v1") is None
