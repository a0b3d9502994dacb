"""The main job end to end, through the same calls that a host and its webview make."""

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from host_bridge.launcher import Sidecar, launch
from sidecar.demo.progress import StepBar, timed_step
from sidecar.kernel.catalogue import text
from sidecar.kernel.processes import own_command

HAN_PHRASE_LENGTH: Final = 6
LATIN_PHRASE_WORDS: Final = 4
_HAN_RUN = re.compile(r"[\u4e00-\u9fff]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


class DemoFailed(Exception):
    """The demo can't go on; the message is for the person who runs it."""


@dataclass(slots=True)
class Report:
    """What the demo made."""

    recording: str
    language: str = ""
    transcript: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    note: dict[str, Any] = field(default_factory=dict)
    query: str = ""
    hit: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a demo keeps its files."""

    root: Path

    @property
    def data(self) -> Path:
        """The app data directory."""
        return self.root / "data"

    @property
    def vault(self) -> Path:
        """The vault."""
        return self.root / "vault"


def launch_own(folders: Folders, models_dirs: tuple[Path, ...], locale: str) -> Sidecar:
    """Start this program as the server, as a host would."""
    arguments = [part for path in models_dirs for part in ("--models-dir", str(path))]
    return launch(own_command(), data_dir=folders.data, locale=locale, extra_args=arguments)


def search_phrase(transcript: str) -> str:
    """Return a phrase of a transcript that is worth searching for; "" if it has no words."""
    han = max(_HAN_RUN.findall(transcript), key=len, default="")
    if len(han) >= HAN_PHRASE_LENGTH:
        return han[:HAN_PHRASE_LENGTH]
    words = _WORD.findall(transcript)
    middle = max(0, len(words) // 2 - LATIN_PHRASE_WORDS // 2)
    return " ".join(words[middle : middle + LATIN_PHRASE_WORDS])


class Walk:
    """One walk through the slice; fills its report as it goes."""

    def __init__(
        self, recording: Path, language: str | None, folders: Folders, models_dirs: tuple[Path, ...]
    ) -> None:
        self._recording = recording
        self._language = language
        self._folders = folders
        self._models_dirs = models_dirs
        self.report = Report(recording=str(recording))

    def _step(self, name: str, **params: object) -> AbstractContextManager[StepBar]:
        return timed_step(self.report.seconds, name, **params)

    def run(self, locale: str) -> Report:
        """Walk from launch to stop. Raises :class:`DemoFailed` or an error of the host's side."""
        with self._step("launch"):
            sidecar = launch_own(self._folders, self._models_dirs, locale)
        try:
            sidecar.host_post("/host/vault", json={"path": str(self._folders.vault)}).check()
            self._check_model(sidecar)
            job_id = self._transcribe(sidecar, self._upload(sidecar))
            self._write_note(sidecar, job_id)
            self._search(sidecar)
            self._export(sidecar)
        finally:
            with self._step("stop"):
                sidecar.stop()
        return self.report

    def _check_model(self, sidecar: Sidecar) -> None:
        info = sidecar.get("/api/system/info").check().json()
        if not info["capabilities"]["transcription"]["available"]:
            raise DemoFailed(text("demo.model_missing", None, path=self._folders.data / "models"))

    def _upload(self, sidecar: Sidecar) -> str:
        with self._step("upload"):
            answer = sidecar.upload("/api/media/attachments", self._recording).check()
        attachment_id: str = answer.json()["attachment_id"]
        return attachment_id

    def _transcribe(self, sidecar: Sidecar, attachment_id: str) -> str:
        request = {"attachment_id": attachment_id, "language": self._language}
        with self._step("transcribe") as bar:
            job = sidecar.post("/api/media/transcriptions", json=request).check().json()
            path = f"/api/media/transcriptions/{job['job_id']}"
            _follow(sidecar, path, bar.show)
            job = sidecar.get(path).check().json()
        if job["status"] != "completed":
            raise DemoFailed(job["error"] or job["status"])
        if not job["segments"]:
            raise DemoFailed(text("demo.no_speech"))
        self.report.language = job["language"]
        self.report.warnings = job["warnings"]
        self.report.transcript = [
            {key: segment[key] for key in ("start_time", "end_time", "text")}
            for segment in job["segments"]
        ]
        job_id: str = job["job_id"]
        return job_id

    def _write_note(self, sidecar: Sidecar, job_id: str) -> None:
        request = {"title": self._recording.stem, "folder": "Recordings"}
        with self._step("note"):
            path = f"/api/media/transcriptions/{job_id}/notes"
            note = sidecar.post(path, json=request).check().json()
        self.report.note = {
            "note_id": note["note_id"],
            "title": note["title"],
            "path": str(self._folders.vault / note["file_path"]),
        }

    def _search(self, sidecar: Sidecar) -> None:
        phrase = search_phrase(" ".join(segment["text"] for segment in self.report.transcript))
        self.report.query = phrase
        request = {"query": phrase, "mode": "fts", "limit": 10}
        with self._step("search", phrase=phrase):
            hits = sidecar.post("/api/search", json=request).check().json()["hits"]
        own = [hit for hit in hits if hit["note_id"] == self.report.note["note_id"]]
        if not own:
            raise DemoFailed(text("demo.no_hit", None, phrase=phrase))
        self.report.hit = own[0]

    def _export(self, sidecar: Sidecar) -> None:
        request = {
            "source": {"type": "note", "note_id": self.report.note["note_id"]},
            "format": "html",
        }
        with self._step("export") as bar:
            job = sidecar.post("/api/exports", json=request).check().json()
            path = f"/api/exports/{job['job_id']}"
            job = _poll(sidecar, path, bar.show)
            if job["status"] != "completed":
                raise DemoFailed(job["error"] or job["status"])
            target = self._folders.root / job["file"]["file_name"]
            size = sidecar.download(f"{path}/file", target)
        self.report.document = {"path": str(target), "bytes": size, "sha256": job["file"]["sha256"]}


Show = Callable[[float | None, str], None]


def _follow(sidecar: Sidecar, path: str, show: Show) -> None:
    """Follow a job's events to the terminal one."""
    for event in sidecar.events(f"{path}/events"):
        if event.event == "Progress":
            progress = event.json()["data"]
            show(progress["percent"], progress["message"])


def _poll(sidecar: Sidecar, path: str, show: Show) -> dict[str, Any]:
    """Ask for a job that has no event stream until it has ended."""
    while True:
        job: dict[str, Any] = sidecar.get(path).check().json()
        if job["status"] not in ("queued", "running"):
            return job
        progress = job["progress"]
        if progress is not None:
            show(progress["percent"], progress["message"])
        time.sleep(0.05)
