"""The limit of uploads, raised for local use."""

import json
from pathlib import Path

import pytest

from sidecar.media.remote import RemoteRecording, RemoteTranscript
from sidecar.media.transcription.profiles import SETTINGS_FILE
from tests.app_client import running_app
from tests.media.attachments.test_uploads import recording_of_size
from tests.media.client import MediaClient, code_of

MEBIBYTE = 1024 * 1024


class Provider:
    """Counts what it is sent."""

    asked = 0

    async def transcribe(self, recording: RemoteRecording) -> RemoteTranscript:
        """Take a recording."""
        self.asked += 1
        return RemoteTranscript("words")


@pytest.mark.proves("media.routing.controlled-files")
async def test_a_raised_limit_holds_for_uploads_and_sends_no_more_to_providers(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()
    settings = json.dumps({"attachment_limit_mib": 27})
    (tmp_path / "data" / SETTINGS_FILE).write_text(settings, "utf-8")
    provider = Provider()
    async with running_app(tmp_path, models_dirs=()) as app:
        app.services.media.use_remote(provider)
        media = MediaClient(app)
        refused = await media.send("a.wav", recording_of_size(27 * MEBIBYTE + 1))
        assert (refused.status_code, code_of(refused)) == (413, "ATTACHMENT_TOO_LARGE")
        assert refused.json()["error"]["details"]["limit_bytes"] == 27 * MEBIBYTE
        largest = await media.upload("a.wav", recording_of_size(27 * MEBIBYTE))
        job = await media.finished((await media.start(largest["attachment_id"]))["job_id"])
        assert (job["error_code"], provider.asked) == ("LOCAL_MODEL_NOT_INSTALLED", 0)
        small = await media.upload("b.wav", recording_of_size(25 * MEBIBYTE))
        job = await media.finished((await media.start(small["attachment_id"]))["job_id"])
        assert (job["source"], provider.asked) == ("api", 1)
