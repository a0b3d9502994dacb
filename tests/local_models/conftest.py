"""An application whose catalogue leads to a server of the test's own."""

import asyncio
import hashlib
import json
import random
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.events import StoredEvent
from tests.app_client import RunningApp, running_app
from tests.fakes.model_source import ModelSource, Served, model_source

MODEL = "test-small"
GATED = "test-gated"
UNKNOWN = "test-unhashed"
WAIT = 30.0


def weights(size: int = 400_000) -> bytes:
    """Return a speech model's weights as CTranslate2 lays them out; they hold nothing of use."""

    def text(value: str) -> bytes:
        data = value.encode() + b"\0"
        return struct.pack("<H", len(data)) + data

    # Like real weights it doesn't let itself be compressed.
    data = random.Random(size).randbytes(size)
    head = struct.pack("<I", 6) + text("WhisperSpec") + struct.pack("<II", 3, 1)
    variable = text("weights") + struct.pack("<B", 1) + struct.pack("<IB", size, 0)
    return head + variable + struct.pack("<I", len(data)) + data


CONTENTS = {
    "config.json": b'{"alignment_heads": []}',
    "model.bin": weights(),
    "tokenizer.json": b'{"model": {"type": "BPE"}}',
    "vocabulary.txt": b"one\ntwo\n",
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(model_id: str, mirrors: list[str], **fields: Any) -> dict[str, Any]:
    """Return a model of the catalogue with the files of CONTENTS."""
    hashed = fields.pop("hashed", True)
    files = [
        {
            "path": name,
            "size": len(content) if hashed else None,
            "sha256": sha256(content) if hashed else None,
        }
        for name, content in CONTENTS.items()
    ]
    return {
        "model_id": model_id,
        "display_name": model_id,
        "purpose": "transcription",
        "format": "whisper",
        "licence": "MIT",
        "repository": f"test/{model_id}",
        "size_bytes": sum(map(len, CONTENTS.values())),
        "mirrors": mirrors,
        "files": files,
    } | fields


@dataclass
class Desk:
    """The application, the server that its models come from, and what tests ask of both."""

    app: RunningApp
    source: ModelSource
    mirror: ModelSource

    @property
    def managed(self) -> Path:
        """The managed folder."""
        return self.app.data_dir / "models"

    def folder(self, model_id: str = MODEL) -> Path:
        """Where a model is installed."""
        return self.managed / model_id

    def served(self, name: str, model_id: str = MODEL, mirror: bool = False) -> Served:
        """A file as the first source (or the mirror) serves it."""
        source = self.mirror if mirror else self.source
        return source.files[f"/test/{model_id}/resolve/main/{name}"]

    async def post(self, what: str, model_id: str = MODEL, **options: Any) -> Any:
        """POST to a path below the model; returns the answer."""
        return await self.app.http.post(f"/api/local-models/{model_id}/{what}", **options)

    async def model(self, model_id: str = MODEL) -> dict[str, Any]:
        """Return the model as the list shows it."""
        answer = await self.app.http.get("/api/local-models", params={"limit": 200})
        assert answer.status_code == 200, answer.text
        assert str(self.app.data_dir) not in answer.text
        found: dict[str, Any] = next(
            item for item in answer.json()["items"] if item["model_id"] == model_id
        )
        return found

    async def downloaded(self, model_id: str = MODEL) -> dict[str, Any]:
        """Download a model to whatever end and return it."""
        answer = await self.post("download", model_id)
        assert answer.status_code == 202, answer.text
        return await self.ended(model_id)

    async def verified(self, model_id: str = MODEL) -> dict[str, Any]:
        """Verify a model to whatever end and return it."""
        answer = await self.post("verify", model_id)
        assert answer.status_code == 202, answer.text
        return await self.ended(model_id, "verification")

    async def ended(self, model_id: str = MODEL, what: str = "download") -> dict[str, Any]:
        """Wait until the newest transfer, or verification, has ended and return the model."""
        return await self.until(
            lambda model: model[what]["status"] not in ("queued", "running"), model_id
        )

    async def until(self, check: Any, model_id: str = MODEL) -> dict[str, Any]:
        """Wait until the model passes *check* and return it."""
        async with asyncio.timeout(WAIT):
            while True:
                model = await self.model(model_id)
                if check(model):
                    return model
                await asyncio.sleep(0.01)

    async def partly(self, count: int, name: str = "model.bin", model_id: str = MODEL) -> Path:
        """Wait until so many bytes of a file are there, and return the unfinished file."""
        part = self.managed / ".staging" / model_id / "download" / f"{name}.part"
        async with asyncio.timeout(WAIT):
            while True:
                if part.exists() and part.stat().st_size >= count:
                    return part
                await asyncio.sleep(0.01)

    async def events(self, model_id: str = MODEL) -> list[StoredEvent]:
        """Return everything that was told of the model."""
        return (await self.app.services.events.page(model_id, 0, 1000))[0]

    async def package(self, path: Path) -> str:
        """Register a folder or archive as the host does."""
        answer = await self.app.host.post("/host/packages", json={"path": str(path)})
        package_id: str = answer.json()["package_id"]
        return package_id

    async def imported(self, path: Path, model_id: str = MODEL) -> dict[str, Any]:
        """Import a folder or archive to whatever end and return the model."""
        answer = await self.post("import", model_id, json={"package_id": await self.package(path)})
        assert answer.status_code == 202, answer.text
        return await self.ended(model_id)


def fill(source: ModelSource, *model_ids: str) -> None:
    """Serve the files of the models."""
    for model_id in model_ids:
        for name, content in CONTENTS.items():
            source.files[f"/test/{model_id}/resolve/main/{name}"] = Served(content)


def write_catalogue(models_dir: Path, mirrors: list[str]) -> None:
    """Put the test's catalogue where a user's own lies."""
    models_dir.mkdir(parents=True, exist_ok=True)
    models = [
        entry(MODEL, mirrors),
        entry(GATED, mirrors, gated=True, page="https://example.org/agree"),
        entry(UNKNOWN, mirrors, hashed=False),
    ]
    document = {"version": 1, "mirrors": mirrors, "models": models}
    (models_dir / "catalogue.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def sources() -> Iterator[tuple[ModelSource, ModelSource]]:
    with model_source() as first, model_source() as second:
        fill(first, MODEL, GATED, UNKNOWN)
        fill(second, MODEL, GATED, UNKNOWN)
        yield first, second


@pytest.fixture
async def desk(tmp_path: Path, sources: tuple[ModelSource, ModelSource]) -> AsyncIterator[Desk]:
    write_catalogue(tmp_path / "data" / "models", [source.url for source in sources])
    async with running_app(tmp_path, models_dirs=()) as app:
        service = app.services.local_models
        service.jobs.options = replace(service.jobs.options, read_seconds=1.0, retry_seconds=0.01)
        yield Desk(app, *sources)
