"""The product's main job, step by step: recording, transcript, note, search, document."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host_bridge.event_reader import ServerEvent
from host_bridge.launcher import Sidecar
from smoke.report import Report, require

TERMINAL_EVENTS = frozenset({"Completed", "Failed", "Cancelled"})
_JOB_LIMIT_SECONDS = 300.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Recording:
    """A file, the language to ask for (None: recognise it), and a phrase that it holds."""

    file: Path
    language: str | None
    phrase: str


class RecordingWalk:
    """Walks one recording through a sidecar and keeps what each step made."""

    def __init__(self, sidecar: Sidecar, recording: Recording, vault: Path) -> None:
        self._sidecar = sidecar
        self._recording = recording
        self._vault = vault
        self._job_id = ""
        self._attachment_id = ""
        self._note_id = ""
        self._text = ""

    def run(self, report: Report) -> None:
        """Run the steps in their order up to the first that fails: each needs the one before."""
        name = self._recording.file.stem
        steps: list[tuple[str, Callable[[], str]]] = [
            ("upload", self._upload),
            ("transcribe, follow, resume", self._transcribe),
            ("note", self._make_note),
            ("search", self._search),
            ("export", self._export),
        ]
        for label, action in steps:
            if not report.run(f"{name}: {label}", action):
                return

    def _upload(self) -> str:
        self._attachment_id = upload(self._sidecar, self._recording.file)
        return self._attachment_id

    def _transcribe(self) -> str:
        self._job_id = start_transcription(
            self._sidecar, self._attachment_id, self._recording.language
        )
        path = f"/api/media/transcriptions/{self._job_id}"
        events = follow_with_a_break(self._sidecar, f"{path}/events")
        require(events[-1].event == "Completed", f"ended in {events[-1].event}: {events[-1].data}")
        job = self._sidecar.get(path).check(200).json()
        require(job["status"] == "completed", f"status {job['status']}")
        require(job["segments"], "no segments")
        times = [(item["start_time"], item["end_time"]) for item in job["segments"]]
        require(times == sorted(times), f"segments out of order: {times}")
        self._text = job["text"]
        phrase = self._recording.phrase
        require(phrase in self._text, f"{phrase!r} was not heard in {self._text!r}")
        return f"{len(events)} events, {len(times)} segments, {self._text.strip()[:40]}"

    def _make_note(self) -> str:
        answer = self._sidecar.post(
            f"/api/media/transcriptions/{self._job_id}/notes",
            json={
                "title": f"Smoke {self._recording.file.stem}",
                "folder": "Recordings",
                "include_timestamps": True,
                "include_speakers": False,
                "template_id": None,
            },
        )
        self._note_id = answer.check().json()["note_id"]
        phrase = self._recording.phrase
        holding = [
            path for path in self._vault.rglob("*.md") if phrase in path.read_text(encoding="utf-8")
        ]
        require(len(holding) == 1, f"{len(holding)} files of the vault hold {phrase!r}")
        return str(holding[0].relative_to(self._vault))

    def _search(self) -> str:
        query = {"query": self._recording.phrase, "mode": "fts"}
        hits = self._sidecar.post("/api/search", json=query).check(200).json()["hits"]
        found = [hit for hit in hits if hit["note_id"] == self._note_id]
        require(found, f"{self._recording.phrase!r} not found in the note; {len(hits)} hits")
        return f"{len(hits)} hits, {found[0]['snippet'][:50]!r}"

    def _export(self) -> str:
        source = {"type": "note", "note_id": self._note_id}
        answer = self._sidecar.post("/api/exports", json={"source": source, "format": "html"})
        path = f"/api/exports/{answer.check(202).json()['job_id']}"
        job = wait_for_job(self._sidecar, path)
        require(job["status"] == "completed", f"{job['status']}: {job['error_code']}")
        document = self._sidecar.get(f"{path}/file").check(200)
        require(len(document.body) == job["file"]["size"], "the size is not the one that was told")
        media_type = document.headers.get_content_type()
        require(media_type == "text/html", f"media type {media_type}")
        require(self._recording.phrase in document.text, "the phrase is not in the document")
        return f"{job['file']['file_name']}, {len(document.body)} bytes"


def upload(sidecar: Sidecar, file: Path) -> str:
    """Upload a recording and give its attachment's id."""
    answer = sidecar.upload("/api/media/attachments", file, media_type="audio/flac")
    return str(answer.check().json()["attachment_id"])


def start_transcription(sidecar: Sidecar, attachment_id: str, language: str | None) -> str:
    """Ask for a transcript and give the job's id."""
    request = {
        "attachment_id": attachment_id,
        "language": language,
        "diarization": False,
        "word_timestamps": False,
    }
    answer = sidecar.post("/api/media/transcriptions", json=request).check(202)
    return str(answer.json()["job_id"])


def follow_with_a_break(sidecar: Sidecar, path: str) -> list[ServerEvent]:
    """Follow a stream, hang up after two events, and go on behind them.

    The sequences must be whole and exactly the last event a terminal one.
    """
    first = sidecar.events(path)
    events = [next(first), next(first)]
    first.close()
    events += sidecar.events(path, after=events[-1].id)
    sequences = [int(event.id) for event in events]
    expected = list(range(sequences[0], sequences[0] + len(sequences)))
    require(sequences == expected, f"sequences with a gap or repeated: {sequences}")
    terminal = [event.event for event in events if event.event in TERMINAL_EVENTS]
    require(len(terminal) == 1, f"terminal events: {terminal}")
    require(events[-1].event in TERMINAL_EVENTS, f"the last event is {events[-1].event}")
    return events


def wait_for_job(sidecar: Sidecar, path: str) -> dict[str, Any]:
    """Ask for a job until it has ended, for a bounded time."""
    deadline = time.monotonic() + _JOB_LIMIT_SECONDS
    while True:
        job: dict[str, Any] = sidecar.get(path).check(200).json()
        if job["status"] in ("completed", "failed", "cancelled"):
            return job
        require(time.monotonic() < deadline, f"{path} is still {job['status']}")
        time.sleep(_POLL_SECONDS)
