"""Requests of attachments and transcriptions."""

from typing import Any, Final

import psutil

from tests.app_client import ROOT
from tests.protocol.live import AppClients, LiveApp
from tests.protocol.operations import BY_NAME
from tests.protocol.specimens.request import JobSpecimen, Request, Specimen
from tests.voices.catalogue import place_matching_model

UPLOAD: Final = "POST /api/media/attachments"
CREATE: Final = "POST /api/media/transcriptions"
JOBS_PATH: Final = "/api/media/transcriptions"
SPEECH: Final = ROOT / "sidecar" / "demo" / "recordings" / "en-jfk.flac"
MEETING: Final = ROOT / "tests" / "recordings" / "zh-meeting.flac"


def _upload(_: LiveApp) -> Request:
    return Request(files={"file": ("演讲.flac", SPEECH.read_bytes(), "audio/flac")})


def _new_attachment(
    app: AppClients, name: str = "speech.flac", content: bytes | None = None
) -> str:
    files = {"file": (name, content or SPEECH.read_bytes(), "audio/flac")}
    answer = Request(files=files).send(app.session, BY_NAME[UPLOAD]).raise_for_status()
    attachment_id: str = answer.json()["attachment_id"]
    return attachment_id


def attachment(app: AppClients) -> str:
    """Return the id of a recording that was uploaded."""
    return app.once("attachment", _new_attachment)


def _named(app: LiveApp) -> Request:
    return Request(path={"attachment_id": attachment(app)})


def _unused(app: LiveApp) -> Request:
    return Request(path={"attachment_id": _new_attachment(app)})


def _create(app: AppClients) -> Request:
    return Request(json={"attachment_id": attachment(app), "metadata": {"course": "os"}})


def transcribed(app: LiveApp) -> dict[str, Any]:
    """Return a transcription that is completed."""

    def make(app: LiveApp) -> dict[str, Any]:
        job = _create(app).send(app.session, BY_NAME[CREATE]).raise_for_status().json()
        job = app.job_ended(f"{JOBS_PATH}/{job['job_id']}")
        assert job["status"] == "completed", job
        return job

    return app.once("completed transcription", make)


def _done(app: LiveApp, **body: Any) -> Request:
    path = {"job_id": transcribed(app)["job_id"]}
    return Request(path=path, json=body) if body else Request(path=path)


def _edit(app: LiveApp) -> Request:
    job = transcribed(app)
    revisions = app.session.get(f"{JOBS_PATH}/{job['job_id']}/revisions").raise_for_status().json()
    segment_id = job["segments"][0]["segment_id"]
    return _done(
        app,
        base_revision=revisions["items"][0]["revision"],
        segments=[{"segment_id": segment_id, "text": "And so, my fellow Americans"}],
    )


def _revision(app: LiveApp) -> Request:
    return Request(path={"job_id": transcribed(app)["job_id"], "revision": "1"})


def _subtitles(app: LiveApp) -> Request:
    return Request(path={"job_id": transcribed(app)["job_id"]}, query={"format": "vtt"})


def _running(app: LiveApp) -> Request:
    job_id = app.held_job("transcription", lambda: _create(app).send(app.session, BY_NAME[CREATE]))
    return Request(path={"job_id": job_id})


def _long(app: LiveApp) -> Request:
    made = app.once(
        "meeting", lambda app: _new_attachment(app, "meeting.flac", MEETING.read_bytes())
    )
    return Request(json={"attachment_id": made, "metadata": {}})


def _cpu_seconds(app: LiveApp) -> float:
    """Processor time that the workers have used."""
    total = 0.0
    for child in app.services.workers.children():
        try:
            times = psutil.Process(child.pid).cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def _match(app: LiveApp) -> Request:
    app.once("speaker model", lambda app: place_matching_model(app.data_dir / "models"))
    known = attachment(app)
    return Request(json={"attachment_id": known, "reference_attachment_id": known})


OPERATIONS = {
    UPLOAD: Specimen(201, _upload),
    "GET /api/media/attachments": Specimen(200),
    "GET /api/media/attachments/{attachment_id}": Specimen(200, _named),
    "DELETE /api/media/attachments/{attachment_id}": Specimen(204, _unused),
    "GET /api/media/attachments/{attachment_id}/content": Specimen(200, _named),
    CREATE: Specimen(202, _create, kept=("metadata.course",)),
    "GET /api/media/transcriptions": Specimen(200),
    "GET /api/media/transcriptions/{job_id}": Specimen(200, _done),
    "POST /api/media/transcriptions/{job_id}/cancel": Specimen(202, _running),
    "GET /api/media/transcriptions/{job_id}/events": Specimen(200, _done),
    "POST /api/media/transcriptions/{job_id}/notes": Specimen(
        201, lambda app: _done(app, title="演讲")
    ),
    "GET /api/media/transcriptions/{job_id}/revisions": Specimen(200, _done),
    "PATCH /api/media/transcriptions/{job_id}/revisions": Specimen(200, _edit),
    "GET /api/media/transcriptions/{job_id}/revisions/{revision}": Specimen(200, _revision),
    "GET /api/media/transcriptions/{job_id}/subtitles": Specimen(200, _subtitles),
    "POST /api/media/speaker-matches": Specimen(200, _match),
}

JOBS = {
    "transcription": JobSpecimen(JOBS_PATH, _create, long=_long, work_seconds=_cpu_seconds),
}
