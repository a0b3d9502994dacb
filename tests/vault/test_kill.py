"""The server is killed in the middle of its work, many times, and nothing that it promised is lost."""

import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from host_bridge.errors import SidecarError
from host_bridge.launcher import Sidecar
from tests.conftest import LaunchSidecar

ROUNDS = 8
NOTES = 4


@dataclass(slots=True)
class Promises:
    """What the server has acknowledged, and what it was asked for last."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    created: dict[str, str] = field(default_factory=dict)


def _text(word: str) -> str:
    return f"# {word}\n\n" + f"{word} filling text\n\n" * 300


def _write_until_it_dies(sidecar: Sidecar, promises: Promises, round_number: int) -> None:
    turn = 0
    try:
        while True:
            turn += 1
            for note_id in list(promises.acknowledged)[:NOTES]:
                word = f"w{round_number}x{turn}x{note_id[-6:]}"
                promises.asked[note_id] = _text(word)
                sidecar.put(f"/api/notes/{note_id}", json={"content": _text(word)}).check()
                promises.acknowledged[note_id] = _text(word)
            word = f"c{round_number}x{turn}"
            answer = sidecar.post("/api/notes", json={"title": word, "content": word}).check()
            promises.created[answer.json()["note_id"]] = word
    except (OSError, SidecarError):
        return


def _wait_until_ready(sidecar: Sidecar) -> None:
    deadline = time.monotonic() + 30
    while sidecar.get("/api/vault").check().json()["state"] != "ready":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _check(sidecar: Sidecar, promises: Promises, folder: Path) -> None:
    _wait_until_ready(sidecar)
    for note_id, text in promises.acknowledged.items():
        note = sidecar.get(f"/api/notes/{note_id}").check().json()
        assert note["content"] in (text, promises.asked.get(note_id))
        assert (folder / note["file_path"]).read_text(encoding="utf-8") == note["content"]
        word = note["content"].split()[1]
        hits = _search(sidecar, f"{word} filling")
        assert {hit["note_id"] for hit in hits} == {note_id}
        promises.acknowledged[note_id] = note["content"]
    for note_id, word in promises.created.items():
        assert sidecar.get(f"/api/notes/{note_id}").check().json()["content"] == word
        assert note_id in {hit["note_id"] for hit in _search(sidecar, word)}
    listed = sidecar.get("/api/notes?limit=1").check().json()["page"]["total"]
    assert listed == len(list(folder.rglob("*.md")))
    assert [path.name for path in folder.rglob(".*")] == []


def _search(sidecar: Sidecar, query: str) -> list[dict[str, str]]:
    found = sidecar.post("/api/search", json={"query": query, "mode": "fts", "limit": 100})
    hits: list[dict[str, str]] = found.check().json()["hits"]
    return hits


@pytest.mark.proves("vault.files.atomic-write")
def test_killed_while_writing(launch_sidecar: LaunchSidecar, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    promises = Promises()
    moment = random.Random(20260831)
    for round_number in range(ROUNDS):
        sidecar = launch_sidecar(models=False, vault_path=folder)
        if not promises.acknowledged:
            for number in range(NOTES):
                answer = sidecar.post(
                    "/api/notes", json={"title": f"note {number}", "content": _text("start")}
                ).check()
                promises.acknowledged[answer.json()["note_id"]] = _text("start")
        else:
            _check(sidecar, promises, folder)
        writer = threading.Thread(
            target=_write_until_it_dies, args=(sidecar, promises, round_number)
        )
        writer.start()
        writer.join(moment.uniform(0.05, 0.8))
        os.kill(sidecar.pid, signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
        writer.join(30)
        assert not writer.is_alive()
    _check(launch_sidecar(models=False, vault_path=folder), promises, folder)


@pytest.mark.proves("vault.files.atomic-write")
def test_killed_while_taking_in_a_vault(launch_sidecar: LaunchSidecar, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    for number in range(1500):
        (folder / f"note {number}.md").write_text(_text(f"n{number}")[:2000], encoding="utf-8")
    ids: dict[str, str] = {}
    for pause in (0.05, 0.2, 0.4, 0.6):
        sidecar = launch_sidecar(models=False, vault_path=folder)
        for note in sidecar.get("/api/notes?limit=200").check().json()["items"]:
            assert ids.setdefault(note["file_path"], note["note_id"]) == note["note_id"]
        time.sleep(pause)
        os.kill(sidecar.pid, signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
    sidecar = launch_sidecar(models=False, vault_path=folder)
    _wait_until_ready(sidecar)
    assert sidecar.get("/api/notes?limit=1").check().json()["page"]["total"] == 1500
    for number in range(0, 1500, 50):
        hits = _search(sidecar, f"n{number} filling")
        assert {hit["file_path"] for hit in hits} == {f"note {number}.md"}
