"""The server is killed while it builds vectors; no half-built index is ever used."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar
from tests.conftest import LaunchSidecar
from tests.retrieval.models.real_model import OWN, lay

KILL = signal.SIGKILL if os.name != "nt" else signal.SIGTERM


def _until(sidecar: Sidecar, condition: str) -> dict[str, Any]:
    deadline = time.monotonic() + 90
    while True:
        state: dict[str, Any] = sidecar.get("/api/index/status").check().json()
        if (state["status"] == "running") == (condition == "running"):
            return state
        assert time.monotonic() < deadline, state
        time.sleep(0.02)


def _search(sidecar: Sidecar, query: str) -> tuple[int, Any]:
    answer = sidecar.post("/api/search", json={"query": query, "mode": "vector", "limit": 5})
    return answer.status, answer.json()


@pytest.mark.proves("retrieval.rebuild.kill")
def test_killed_while_building_vectors(launch_sidecar: LaunchSidecar, tmp_path: Path) -> None:
    lay(tmp_path / "models/minilm", embedding=OWN)
    folder = tmp_path / "vault"
    folder.mkdir()
    for number in range(60):
        text = "\n\n".join(
            f"paragraph {part} of note {number} about topic {part % 7}" for part in range(10)
        )
        (folder / f"note {number}.md").write_text(text, encoding="utf-8")
    models = ("--models-dir", str(tmp_path / "models"))
    moment = random.Random(4711)
    sidecar = launch_sidecar(models=False, vault_path=folder, extra_args=models)
    _until(sidecar, "idle")
    for scope in ("vectors", "all"):
        sidecar.post("/api/index/rebuild", json={"scope": scope}).check()
        time.sleep(moment.uniform(0.2, 1.0))
        os.kill(sidecar.pid, KILL)
        sidecar = launch_sidecar(models=False, vault_path=folder, extra_args=models)
        status, body = _search(sidecar, "topic 3")
        # Never half an index: none at first, then the old one until the new one is whole.
        if scope == "vectors":
            whole = sidecar.get("/api/index/status").check().json()["vector_index"] is not None
            assert status == 200 or (body["error"]["code"] == "VECTOR_INDEX_REBUILD_REQUIRED")
            assert whole or status == 409
        else:
            assert (status, len(body["hits"])) == (200, 5)
        state = _until(sidecar, "idle")
        assert state["vector_index"]["compatible"] is True
        status, body = _search(sidecar, "paragraph 9 of note 59 about topic 2")
        assert status == 200
        assert body["hits"][0]["snippet"].startswith("paragraph 9 of note 59")
        assert body["hits"][0]["score"] > 0.8
    assert len(list((tmp_path / "data/vectors").glob("*.f32"))) == 1
