"""What a client of the media paths does: upload, transcribe, follow, wait."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.app_client import RunningApp

ATTACHMENTS = "/api/media/attachments"
TRANSCRIPTIONS = "/api/media/transcriptions"
TERMINAL = {"Completed", "Failed", "Cancelled"}


@dataclass(frozen=True, slots=True)
class Event:
    """One frame of an event stream."""

    sequence: int
    name: str
    data: dict[str, Any]


class MediaClient:
    """Calls the media paths of a running application."""

    def __init__(self, app: RunningApp) -> None:
        self.app = app
        self.http = app.http

    async def send(self, name: str, content: bytes, *, key: str | None = None) -> httpx.Response:
        """Upload a file and return the answer."""
        headers = {"Idempotency-Key": key} if key is not None else {}
        return await self.http.post(ATTACHMENTS, files={"file": (name, content)}, headers=headers)

    async def upload(self, name: str, content: bytes | Path) -> dict[str, Any]:
        """Upload a file that must be taken and return the attachment."""
        if isinstance(content, Path):
            content = await asyncio.to_thread(content.read_bytes)
        answer = await self.send(name, content)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def start(self, attachment_id: str, **options: Any) -> dict[str, Any]:
        """Create a transcription and return the queued job."""
        answer = await self.http.post(
            TRANSCRIPTIONS, json={"attachment_id": attachment_id, **options}
        )
        assert answer.status_code == 202, answer.text
        return answer.json()

    async def events(self, job_id: str, after: int | None = None) -> AsyncIterator[Event]:
        """Follow a job until its stream ends."""
        headers = {"Last-Event-ID": str(after)} if after is not None else {}
        async with self.http.stream(
            "GET", f"{TRANSCRIPTIONS}/{job_id}/events", headers=headers
        ) as answer:
            assert answer.status_code == 200
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    envelope = json.loads(line.removeprefix("data: "))
                    assert envelope["resource_id"] == job_id
                    yield Event(envelope["sequence"], name, envelope["data"])

    async def until(self, job_id: str, name: str) -> Event:
        """Follow a job to the first event called *name*."""
        async for event in self.events(job_id):
            if event.name == name:
                return event
            assert event.name not in TERMINAL, f"{event.name} before {name}: {event.data}"
        raise AssertionError(f"the stream ended without {name}")

    async def finished(self, job_id: str) -> dict[str, Any]:
        """Wait for a job's end and return the job."""
        names = [event.name async for event in self.events(job_id)]
        assert names[-1] in TERMINAL
        return await self.job(job_id)

    async def job(self, job_id: str) -> dict[str, Any]:
        """Return a job."""
        answer = await self.http.get(f"{TRANSCRIPTIONS}/{job_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def transcribed(
        self, recording: Path | bytes, name: str = "talk.flac", **options: Any
    ) -> dict[str, Any]:
        """Upload a recording, transcribe it, and return the job at its end."""
        attachment = await self.upload(name, recording)
        return await self.finished(
            (await self.start(attachment["attachment_id"], **options))["job_id"]
        )

    def kept_files(self) -> set[str]:
        """Return the names of the files in the attachments folder, unfinished uploads included."""
        folders = (self.app.data_dir / "attachments", self.app.data_dir / "tmp")
        return {path.name for folder in folders for path in folder.iterdir()}

    async def count(self) -> int:
        """Return how many attachments there are."""
        return int((await self.http.get(ATTACHMENTS)).json()["page"]["total"])


async def eventually(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until *condition* holds; TimeoutError if it doesn't in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a change on disk tells nobody
            await asyncio.sleep(0.01)


def code_of(answer: httpx.Response) -> str:
    """Return the project code of an error answer, whose form is checked."""
    body = answer.json()
    assert set(body) == {"error"}, body
    assert set(body["error"]) == {"code", "message", "details"}
    assert isinstance(body["error"]["details"], dict)
    return str(body["error"]["code"])
