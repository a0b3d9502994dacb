"""A provider service with a server that plays the provider, for tests below HTTP."""

import contextlib
import functools
import importlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from sidecar.kernel.credentials import CredentialStore
from sidecar.kernel.database import Database
from sidecar.kernel.migrations import migrate
from sidecar.providers.calls.retries import RetryPolicy
from sidecar.providers.calls.transport import Timeouts
from sidecar.providers.schemas.model_call import (
    ChatTarget,
    Message,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ToolDefinition,
)
from sidecar.providers.schemas.wire import ProviderCreateRequest
from sidecar.providers.service import ProviderService, StreamControl
from sidecar.usage.service import UsageLedger
from tests.fakes.upstream import FakeUpstream, fake_upstream

PROTOCOLS: Final = ("openai_chat", "openai_responses", "anthropic", "ollama")

SEARCH: Final = ToolDefinition(
    "rag.search",
    "Looks notes up.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
HELLO: Final = ModelRequest((Message("user", "你好"),))
SEARCHING: Final = ModelRequest((Message("user", "查一下"),), tools=(SEARCH,))

QUICK: Final = Timeouts(connect=5, first_byte=10, silence=10, whole=10)
NO_WAIT: Final = RetryPolicy(first_wait=0.001)


def fake(protocol: str) -> ModuleType:
    """The module that plays a protocol."""
    return importlib.import_module(f"tests.fakes.{protocol}")


@dataclass
class Bench:
    """A service, its database, and what plays the provider."""

    service: ProviderService
    database: Database
    credentials: CredentialStore
    upstream: FakeUpstream
    folder: Path
    targets: dict[str, ChatTarget] = field(default_factory=dict)

    async def target(self, protocol: str = "openai_chat", **changes: Any) -> ChatTarget:
        """Create a provider that speaks a protocol and return what is called."""
        values = {
            "name": "某服务",
            "provider_type": fake(protocol).PROVIDER_TYPE,
            "base_url": self.upstream.url,
            "default_model": "m",
            "capabilities": ["chat", "streaming", "tool_calling", "reasoning", "vision"],
            **changes,
        }
        provider = await self.service.create(ProviderCreateRequest(**values))
        return await self.service.target(provider.provider_id, None)

    async def stream(
        self,
        target: ChatTarget,
        request: ModelRequest = HELLO,
        control: StreamControl | None = None,
    ) -> list[ModelEvent]:
        """Follow a stream to its end."""
        return [event async for event in self.service.stream(target, request, control=control)]

    async def complete(self, target: ChatTarget, request: ModelRequest = HELLO) -> ModelReply:
        """Ask for a whole answer."""
        return await self.service.complete(target, request)

    async def attempts(self) -> list[dict[str, Any]]:
        """The rows of the ledger, oldest first."""
        return await self.database.read(
            lambda conn: [
                dict(row)
                for row in conn.execute("SELECT * FROM usage_attempts ORDER BY attempt_no")
            ]
        )


@functools.cache
def _empty_database() -> bytes:
    """A database without content, made once: each of its migrations waits for the disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.db"
        migrate(path)
        return path.read_bytes()


@contextlib.asynccontextmanager
async def bench_in(
    folder: Path, *, timeouts: Timeouts = QUICK, retries: RetryPolicy = NO_WAIT, **options: Any
) -> AsyncIterator[Bench]:
    """A service with its data in *folder*."""
    path = folder / "app.db"
    path.write_bytes(_empty_database())
    database = Database(path)
    database.open()
    credentials = CredentialStore(folder / "credentials")
    service = ProviderService(
        database, credentials, UsageLedger(database), timeouts=timeouts, retries=retries, **options
    )
    try:
        with fake_upstream() as upstream:
            try:
                yield Bench(service, database, credentials, upstream, folder)
            finally:
                await service.close()
    finally:
        await database.close()


def names(events: list[ModelEvent]) -> list[str]:
    """The events' names, in order."""
    return [event.event for event in events]


def joined(events: list[ModelEvent], name: str = "TextDelta") -> str:
    """The text of all events of a name."""
    return "".join(event.data["text"] for event in events if event.event == name)


def calls(events: list[ModelEvent]) -> list[tuple[str, dict[str, Any]]]:
    """The finished tool calls: name and arguments."""
    return [
        (event.data["name"], event.data["arguments"])
        for event in events
        if event.event == "ToolCallEnd"
    ]


def failure(events: list[ModelEvent]) -> str:
    """The code of a stream that failed as it should: one Error, then Done and nothing more."""
    assert names(events).count("Error") == 1 and names(events).count("Done") == 1
    assert names(events)[-2:] == ["Error", "Done"]
    assert events[-1].data["status"] == "failed"
    return str(events[-2].data["code"])
