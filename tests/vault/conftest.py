"""A running application with an empty vault, and short names for what its tests do often."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import RunningApp, running_app

PATIENCE_SECONDS = 20.0


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait until *check* says yes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await check():
                return
            await asyncio.sleep(0.02)


@dataclass(slots=True)
class Vault:
    """The vault of a running application."""

    app: RunningApp
    folder: Path

    async def create(self, title: str, content: str = "", **fields: Any) -> dict[str, Any]:
        """Create a note and return it."""
        answer = await self.app.http.post(
            "/api/notes", json={"title": title, "content": content, **fields}
        )
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def get(self, note_id: str) -> dict[str, Any]:
        """Read a note."""
        answer = await self.app.http.get(f"/api/notes/{note_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def put(self, note_id: str, content: str, **fields: Any) -> dict[str, Any]:
        """Replace a note's text."""
        answer = await self.app.http.put(
            f"/api/notes/{note_id}", json={"content": content, **fields}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def patch(self, note_id: str, **fields: Any) -> dict[str, Any]:
        """Change a note."""
        answer = await self.app.http.patch(f"/api/notes/{note_id}", json=fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def delete(self, note_id: str) -> None:
        """Move a note to the trash."""
        answer = await self.app.http.delete(f"/api/notes/{note_id}")
        assert answer.status_code == 204, answer.text

    async def notes(self, **filters: Any) -> list[dict[str, Any]]:
        """List notes."""
        answer = await self.app.http.get("/api/notes", params=filters)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    async def titles(self, **filters: Any) -> list[str]:
        """List the titles of notes."""
        return [note["title"] for note in await self.notes(**filters)]

    async def found(self, query: str, **filters: Any) -> list[dict[str, Any]]:
        """Search by full text."""
        answer = await self.app.http.post(
            "/api/search", json={"query": query, "mode": "fts", **filters}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["hits"]

    def path(self, note: dict[str, Any]) -> Path:
        """Return where a note's file lies."""
        return self.folder / note["file_path"]

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file as another program does."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    async def note_at(self, path: str) -> dict[str, Any]:
        """Wait until the file at a path is a note, and return it."""
        found: list[dict[str, Any]] = []

        async def is_there() -> bool:
            found[:] = [note for note in await self.notes(limit=200) if note["file_path"] == path]
            return bool(found)

        await eventually(is_there)
        return found[0]

    async def state(self) -> dict[str, Any]:
        """Return the state of the vault."""
        return (await self.app.http.get("/api/vault")).json()

    async def scanned(self) -> None:
        """Wait until all that lies in the vault is known."""

        async def is_ready() -> bool:
            return (await self.state())["state"] == "ready"

        await eventually(is_ready)

    async def skipped(self) -> list[tuple[str, str]]:
        """Return the path and reason of each file that was skipped."""
        answer = await self.app.http.get("/api/vault/skipped")
        return [(item["file_path"], item["reason"]) for item in answer.json()["items"]]


@pytest.fixture
async def vault(tmp_path: Path) -> AsyncIterator[Vault]:
    """A running application with an empty vault."""
    async with running_app(tmp_path) as app:
        assert app.vault is not None
        yield Vault(app, app.vault)
