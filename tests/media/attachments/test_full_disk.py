"""A disk without room: for uploads by a limit of the process, for the database by its own."""

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from host_bridge.launcher import Sidecar
from sidecar.kernel.database import Transaction
from tests.app_client import running_app
from tests.media.attachments.test_uploads import recording_of_size
from tests.media.client import ATTACHMENTS, TRANSCRIPTIONS, MediaClient
from tests.media.samples import JFK

MEBIBYTE = 1024 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit that can be set from outside")
def test_an_upload_that_the_disk_has_no_room_for_leaves_nothing(
    launch_sidecar: Callable[..., Sidecar], tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    sidecar = launch_sidecar(vault_path=vault, models=False)
    process = psutil.Process(sidecar.pid)
    before = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (4 * MEBIBYTE, before[1]))
    content = recording_of_size(9 * MEBIBYTE)
    answer = sidecar.upload(ATTACHMENTS, content, filename="a.wav")
    assert answer.status == 409, answer.json()
    assert answer.json()["error"]["code"] == "DISK_SPACE_INSUFFICIENT"
    for folder in ("tmp", "attachments"):
        assert list((tmp_path / "data" / folder).iterdir()) == []
    assert sidecar.get(ATTACHMENTS).json()["page"]["total"] == 0
    process.rlimit(psutil.RLIMIT_FSIZE, before)
    sidecar.upload(ATTACHMENTS, content, filename="a.wav").check(201)


def _limit(pages: int | None) -> Callable[[Transaction], None]:
    def run(tx: Transaction) -> None:
        # 1 becomes the size that the file has.
        tx.execute(f"PRAGMA max_page_count = {pages or 1_000_000_000}")
        if pages is not None:
            # What is free within the file would still be filled.
            tx.execute("CREATE TABLE IF NOT EXISTS filler (x)")
            free = tx.execute("PRAGMA freelist_count").fetchone()[0]
            size = tx.execute("PRAGMA page_size").fetchone()[0]
            if free > 1:
                tx.execute("INSERT INTO filler VALUES (zeroblob(?))", ((free - 1) * (size - 64),))

    return run


async def test_a_transcript_waits_for_room_and_is_not_lost(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        media = MediaClient(app)
        attachment = await media.upload("talk.flac", JFK)
        started = await media.start(
            attachment["attachment_id"], language="en", word_timestamps=True,
            metadata={"padding": "x" * 12_000},
        )  # fmt: skip
        job_id = started["job_id"]
        await media.until(job_id, "TranscriptionStarted")
        await app.services.database.write(_limit(1))
        refused = await media.http.post(
            TRANSCRIPTIONS,
            json={"attachment_id": attachment["attachment_id"], "metadata": {"p": "x" * 15_000}},
        )
        assert refused.status_code >= 500
        # The work goes on, but nothing of it can be kept.
        job = await media.job(job_id)
        assert job["status"] == "running"
        await app.services.database.write(_limit(None))
        job = await media.finished(job_id)
        assert job["status"] in ("completed", "failed")
        if job["status"] == "failed":
            # A step on the way could not be told; the end came as soon as there was room.
            assert job["error_code"] == "DISK_SPACE_INSUFFICIENT"
        following = await media.start(attachment["attachment_id"], language="en")
        assert (await media.finished(following["job_id"]))["status"] == "completed"
