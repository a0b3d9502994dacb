"""A running application, a model server that says what a test wants, and short names for what tests do often."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from sidecar.kernel.paging import PageQuery
from sidecar.providers.schemas.wire import ProviderCreateRequest
from tests.app_client import RunningApp, running_app
from tests.fakes import openai_chat
from tests.fakes.upstream import Answer, Call, FakeUpstream, Received, Turn, fake_upstream, sse

PATIENCE_SECONDS = 20.0
CAPABILITIES = ("chat", "streaming", "tool_calling")
SEARCH = "rag_search"
"""The name under which `rag.search` goes upstream."""


@dataclass(frozen=True)
class Event:
    """An event of a chat stream."""

    event: str
    sequence: int
    data: dict[str, Any]


def events_of(text: str) -> list[Event]:
    """Read whole frames."""
    found = []
    for frame in text.split("\n\n"):
        if not frame or frame.startswith(":"):
            continue
        name, data = frame.split("\n")
        body = json.loads(data.removeprefix("data: "))
        assert body["event"] == name.removeprefix("event: ")
        found.append(Event(body["event"], body["sequence"], body["data"]))
    return found


@dataclass
class Told:
    """All that a client was told."""

    events: list[Event]

    def named(self, *names: str) -> list[Event]:
        """The events of these names."""
        return [event for event in self.events if event.event in names]

    @property
    def names(self) -> list[str]:
        """The names in their order."""
        return [event.event for event in self.events]

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(event.data["text"] for event in self.named("TextDelta"))

    @property
    def done(self) -> dict[str, Any]:
        """The data of the one `Done`, which is the last."""
        assert self.names.count("Done") == 1 and self.names[-1] == "Done", self.names
        return self.events[-1].data

    @property
    def error(self) -> dict[str, Any]:
        """The data of the one `Error`, which is the last but one."""
        assert self.names.count("Error") == 1 and self.names[-2] == "Error", self.names
        return self.events[-2].data

    def kinds(self) -> list[str]:
        """The kinds of `ContextStatus`."""
        return [event.data["kind"] for event in self.named("ContextStatus")]

    def ends(self) -> list[str]:
        """The status of each tool call's end."""
        return [event.data["status"] for event in self.named("ToolCallEnd")]


class Reading:
    """A stream that is being read."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.told = Told([])
        self._lines = response.aiter_lines()

    async def next(self) -> Event:
        """The next event."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                name = await anext(self._lines)
                if name.startswith("event: "):
                    frame = f"{name}\n{await anext(self._lines)}"
                    event = events_of(frame)[0]
                    self.told.events.append(event)
                    return event

    async def until(self, name: str) -> Event:
        """Read up to an event of this name."""
        while (event := await self.next()).event != name:
            assert event.event != "Done", event
        return event

    async def rest(self) -> Told:
        """Read to the end."""
        with contextlib.suppress(StopAsyncIteration):
            while True:
                await self.next()
        return self.told


@dataclass
class Chat:
    """A running application with a provider whose model is the test's."""

    app: RunningApp
    upstream: FakeUpstream
    provider_id: str
    folder: Path = field(default_factory=Path)

    def says(self, *turns: Turn | Answer) -> None:
        """Prepare the model's next answers."""
        self.upstream.answers += [
            openai_chat.stream(turn) if isinstance(turn, Turn) else turn for turn in turns
        ]

    async def provider(self, *capabilities: str, **fields: Any) -> str:
        """Make another provider of the same model server."""
        return await new_provider(self.app, self.upstream, capabilities, **fields)

    async def conversation(self, **fields: Any) -> str:
        """Begin a conversation."""
        answer = await self.app.http.post("/api/chat/conversations", json=fields)
        assert answer.status_code == 201, answer.text
        conversation_id: str = answer.json()["conversation_id"]
        return conversation_id

    def body(self, question: str | None = "What is new?", **fields: Any) -> dict[str, Any]:
        """A request."""
        messages = [] if question is None else [{"role": "user", "content": question}]
        return {"provider_id": self.provider_id, "model": "m", "messages": messages, **fields}

    async def post(self, question: str | None = "What is new?", **fields: Any) -> httpx.Response:
        """Send a request and read the whole answer."""
        return await self.app.http.post("/api/chat", json=self.body(question, **fields))

    async def ask(self, question: str | None = "What is new?", **fields: Any) -> Told:
        """Ask and read to the end."""
        answer = await self.post(question, **fields)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        return Told(events_of(answer.text))

    @contextlib.asynccontextmanager
    async def reading(
        self, question: str | None = "What is new?", **fields: Any
    ) -> AsyncIterator[Reading]:
        """Ask, and read piece by piece; the request is closed when the block ends."""
        body = self.body(question, **fields)
        async with self.app.http.stream("POST", "/api/chat", json=body) as response:
            assert response.status_code == 200, await response.aread()
            yield Reading(response)

    async def messages(self, conversation_id: str) -> list[dict[str, Any]]:
        """Read the active branch."""
        answer = await self.app.http.get(f"/api/chat/conversations/{conversation_id}/messages")
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    async def contents(self, conversation_id: str) -> list[str]:
        """Read the texts of the active branch."""
        return [message["content"] for message in await self.messages(conversation_id)]

    async def select(self, conversation_id: str, message_id: str) -> list[dict[str, Any]]:
        """Choose a version."""
        path = f"/api/chat/conversations/{conversation_id}/messages/{message_id}/select"
        answer = await self.app.http.post(path)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    async def note(self, title: str, content: str, **fields: Any) -> dict[str, Any]:
        """Write a note."""
        body = {"title": title, "content": content, **fields}
        answer = await self.app.http.post("/api/notes", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def attach(self, path: Path, name: str | None = None) -> str:
        """Upload a file and return its id."""
        content = await asyncio.to_thread(path.read_bytes)
        files = {"file": (name or path.name, content)}
        answer = await self.app.http.post("/api/media/attachments", files=files)
        assert answer.status_code == 201, answer.text
        attachment_id: str = answer.json()["attachment_id"]
        return attachment_id

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The bodies of the requests that reached the model."""
        return [received.json for received in self.received]

    @property
    def received(self) -> list[Received]:
        """The chat requests that reached the model server."""
        return [one for one in self.upstream.received if one.path == openai_chat.PATH]

    async def arrived(self, count: int) -> None:
        """Wait until so many requests have reached the model."""
        await eventually(lambda: len(self.received) >= count)


async def eventually(check: Any) -> None:
    """Wait until *check* says yes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = check()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)


async def new_provider(
    app: RunningApp, upstream: FakeUpstream, capabilities: Sequence[str], **fields: Any
) -> str:
    """Make a provider of the model server."""
    request = ProviderCreateRequest.model_validate(
        {
            "name": "Model server",
            "provider_type": openai_chat.PROVIDER_TYPE,
            "base_url": upstream.url,
            "capabilities": list(capabilities),
            **fields,
        }
    )
    return (await app.services.providers.create(request)).provider_id


def hanging(turn: Turn) -> Answer:
    """An answer that says all of this but its end, and then nothing until its reader hangs up."""
    frames = [frame for frame in openai_chat.frames(turn) if frame["choices"]][:-1]
    return Answer(pieces=[sse(*frames)], content_type="text/event-stream", end="hold")


def searching(*queries: str, text: Sequence[str] = (), **fields: Any) -> Turn:
    """A turn in which the model searches."""
    calls = [
        Call(f"call_{number}", SEARCH, (json.dumps({"query": query}),))
        for number, query in enumerate(queries, 1)
    ]
    return Turn(text=text, calls=calls, **fields)


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    """A model server of the test's own."""
    with fake_upstream() as server:
        yield server


@contextlib.asynccontextmanager
async def running_chat(
    folder: Path, upstream: FakeUpstream, *, open_vault: bool = True, **options: Any
) -> AsyncIterator[Chat]:
    """Serve the application; a second call goes on with the same data."""
    options.setdefault("models_dirs", ())
    async with running_app(folder, open_vault=open_vault, **options) as app:
        known = (await app.services.providers.list(PageQuery())).items
        provider_id = (
            known[0].provider_id if known else await new_provider(app, upstream, CAPABILITIES)
        )
        yield Chat(app, upstream, provider_id, folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_chat(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    """One application for all tests of a file."""
    with fake_upstream() as server:
        async with running_chat(tmp_path_factory.mktemp("chat"), server) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="module")
async def chat(shared_chat: Chat) -> Chat:
    """An application without notes and conversations, no embedding model, and a provider that calls tools."""
    http = shared_chat.app.http
    for path, key in (("/api/chat/conversations", "conversation_id"), ("/api/notes", "note_id")):
        for item in (await http.get(path, params={"limit": 200})).json()["items"]:
            assert (await http.delete(f"{path}/{item[key]}")).status_code == 204
    shared_chat.upstream.reset()
    return shared_chat


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that share an application in the event loop that it runs in."""
    for item in items:
        if "tests/chat/" in item.path.as_posix() and "shared_chat" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
