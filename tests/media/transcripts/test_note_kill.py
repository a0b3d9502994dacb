"""A note that is brought up to date while the program is killed, seen on real processes."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from host_bridge.launcher import Sidecar
from tests.media.client import ATTACHMENTS, TRANSCRIPTIONS
from tests.media.samples import JFK, RATE, encoded, samples_of

LaunchSidecar = Callable[..., Sidecar]
ROUNDS = 2


def _edit(sidecar: Sidecar, job_id: str, base: int, text: str) -> None:
    edit = {"base_revision": base, "segments": [{"segment_id": "segment_0001", "text": text}]}
    sidecar.patch(f"{TRANSCRIPTIONS}/{job_id}/revisions", json=edit).check(200)


def _update(sidecar: Sidecar, job_id: str) -> dict[str, Any]:
    request = {"title": "Kept", "update_existing": True}
    answer = sidecar.post(f"{TRANSCRIPTIONS}/{job_id}/notes", json=request).check(200)
    note: dict[str, Any] = answer.json()
    return note


@pytest.mark.proves("media.notes.update-atomic")
def test_a_kill_during_an_update_leaves_a_whole_note(
    launch_sidecar: LaunchSidecar, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    sidecar = launch_sidecar(vault_path=vault)
    content = encoded(samples_of(JFK)[: 3 * RATE], "flac")
    attachment = sidecar.upload(ATTACHMENTS, content, filename="a.flac").check(201).json()
    request = {"attachment_id": attachment["attachment_id"], "language": "en"}
    job_id = sidecar.post(TRANSCRIPTIONS, json=request).check(202).json()["job_id"]
    assert [event.event for event in sidecar.events(f"{TRANSCRIPTIONS}/{job_id}/events")][
        -1
    ] == "Completed"
    note = (
        sidecar.post(f"{TRANSCRIPTIONS}/{job_id}/notes", json={"title": "Kept"}).check(201).json()
    )
    path = vault / note["file_path"]
    base = 1
    for number in range(ROUNDS):
        old = path.read_text("utf-8")
        new_text = f"Text number {number}. " * 400
        _edit(sidecar, job_id, base, new_text)
        base += 1
        running = sidecar

        def update(running: Sidecar = running) -> None:
            # Killed in the middle, it has no answer.
            with contextlib.suppress(Exception):
                _update(running, job_id)

        asking = threading.Thread(target=update)
        asking.start()
        if number % 2:
            # As soon as the file is the new one: what was written down about it may be the old.
            deadline = time.monotonic() + 20
            while path.read_text("utf-8") == old and time.monotonic() < deadline:
                pass
        sidecar.process.kill()
        asking.join(20)
        left = path.read_text("utf-8")
        assert left == old or (new_text.strip() in left and left.endswith("\n"))
        assert not [other for other in vault.iterdir() if other.suffix == ".md" and other != path]
        sidecar = launch_sidecar(vault_path=vault)
        updated = _update(sidecar, job_id)
        assert updated["note_id"] == note["note_id"]
        assert updated["transcript"]["revision"] == base
        assert new_text.strip() in path.read_text("utf-8")
