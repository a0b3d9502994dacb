"""A running application with a provider, which a fake server plays."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel import credentials
from sidecar.providers.schemas.wire import ProviderCreateRequest
from tests.app_client import RunningApp, running_app
from tests.fakes.openai_models import FakeModels, fake_models

KEY = "canary-7d20b4-key-of-the-provider"
CREDENTIAL = "provider.routed"


@dataclass(slots=True)
class Routing:
    """The application, and the provider that routes may lead to."""

    app: RunningApp
    fake: FakeModels
    provider_id: str

    async def config(self) -> dict[str, Any]:
        """Return the configuration."""
        config: dict[str, Any] = (await self.app.http.get("/api/model-routing")).json()["config"]
        return config

    def route(self, **fields: Any) -> dict[str, Any]:
        """Return a route to the provider."""
        return {"provider_id": self.provider_id, "model": "routed-model", **fields}

    async def set(self, **routes: Any) -> dict[str, Any]:
        """Set routes and return the configuration."""
        answer = await self.app.http.put(
            "/api/model-routing", json={**await self.config(), **routes}
        )
        assert answer.status_code == 200, answer.text
        config: dict[str, Any] = answer.json()
        return config

    async def attempts(self) -> list[dict[str, Any]]:
        """Return the rows of the ledger."""
        answer = await self.app.http.get("/api/usage/export", params={"format": "json"})
        rows: list[dict[str, Any]] = answer.json()["items"]
        return rows


async def new_provider(app: RunningApp, base_url: str, **fields: Any) -> str:
    """Store a provider and return its id."""
    request = {"name": "Routed", "provider_type": "openai_compatible", "base_url": base_url}
    created = await app.services.providers.create(
        ProviderCreateRequest.model_validate({**request, **fields})
    )
    return created.provider_id


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets go to the encrypted file: the machine's keyring is the user's."""
    monkeypatch.setattr(credentials, "_keyring_works", lambda: False)


@pytest.fixture
async def fake() -> AsyncIterator[FakeModels]:
    """The provider's server."""
    async with fake_models() as server:
        yield server


@pytest.fixture
async def routing(tmp_path: Path, fake: FakeModels) -> AsyncIterator[Routing]:
    """An application without local models."""
    async with running_app(tmp_path, models_dirs=()) as app:
        await app.services.credentials.set(CREDENTIAL, KEY)
        provider_id = await new_provider(app, fake.url, credential_id=CREDENTIAL)
        yield Routing(app, fake, provider_id)
