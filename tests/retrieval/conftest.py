"""A running application with an empty vault, and models that tests can see through."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import running_app
from tests.fakes.embedders import HashEmbedder, Models
from tests.vault.conftest import Vault, eventually


@dataclass(slots=True)
class Library(Vault):
    """A vault whose notes have vectors."""

    models: Models

    @property
    def embedder(self) -> HashEmbedder:
        """The local model."""
        assert self.models.embedder is not None
        return self.models.embedder

    async def search(self, query: str, mode: str = "vector", **fields: Any) -> list[dict[str, Any]]:
        """Search and return the hits."""
        status, body = await self.try_search(query, mode, **fields)
        assert status == 200, body
        hits: list[dict[str, Any]] = body["hits"]
        return hits

    async def try_search(
        self, query: str, mode: str = "vector", **fields: Any
    ) -> tuple[int, dict[str, Any]]:
        """Search and return status and body."""
        answer = await self.app.http.post(
            "/api/search", json={"query": query, "mode": mode, **fields}
        )
        return answer.status_code, answer.json()

    async def error(self, mode: str = "vector") -> str | None:
        """Return the code that a search in *mode* answers, None if it has hits."""
        status, body = await self.try_search("word", mode)
        return None if status == 200 else body["error"]["code"]

    async def index(self) -> dict[str, Any]:
        """Return the state of the index."""
        return (await self.app.http.get("/api/index/status")).json()

    async def at_rest(self) -> dict[str, Any]:
        """Wait until nothing is going on and return the state."""

        async def is_at_rest() -> bool:
            return (await self.index())["status"] != "running"

        await eventually(is_at_rest)
        return await self.index()

    async def rebuild(self, scope: str = "vectors") -> dict[str, Any]:
        """Build the index anew and return its state afterwards."""
        answer = await self.app.http.post("/api/index/rebuild", json={"scope": scope})
        assert answer.status_code == 202, answer.text
        return await self.at_rest()


@pytest.fixture
async def vault(tmp_path: Path) -> AsyncIterator[Vault]:
    """A running application with an empty vault and no models."""
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        yield Vault(app, app.vault)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    """The models of every application that the test runs: at first one local model."""
    found = Models(HashEmbedder())
    for name in ("LocalModelSource", "RoutedModelSource"):
        monkeypatch.setattr(f"sidecar.services.{name}", lambda *_, **__: found)
    return found


@pytest.fixture
async def library(tmp_path: Path, models: Models) -> AsyncIterator[Library]:
    """A running application with a local model and an empty vault."""
    async with running_app(tmp_path, models_dirs=()) as app:
        assert app.vault is not None
        yield Library(app, app.vault, models)
