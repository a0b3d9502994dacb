"""One turn of a chat, from the question's material to the stored reply."""

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from sidecar.chat.citations import Sources
from sidecar.chat.conversations import INTERRUPTED, Conversations, Reserved
from sidecar.chat.reply import Reply
from sidecar.chat.rounds import Ending, Rounds
from sidecar.chat.schemas import MessageStatus
from sidecar.chat.store import Snapshot
from sidecar.chat.turn_tools import ChatEvent
from sidecar.kernel.database import DatabaseClosedError
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.providers.schemas.model_call import ModelEvent

log = get_logger(__name__)

CHECKPOINT_SECONDS: Final = 2.0
# A client that left before its stream began: nobody will ever read it.
UNREAD_SECONDS: Final = 10.0

StopReason = Literal["deleted", "shutdown"]
AnyEvent = ModelEvent | ChatEvent


class Preparation(Protocol):
    """Makes the rounds of a turn ready."""

    def events(self) -> AsyncGenerator[ChatEvent, None]:
        """Yield what is to be told before the model is asked."""
        ...

    def rounds(self, reply: Reply, sources: Sources) -> Rounds:
        """Return the rounds, once the events are over."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a turn's reply is stored."""

    conversations: Conversations
    reserved: Reserved
    snapshot: Snapshot | None


class Turn:
    """A reply that is being generated. Its events are read once; whoever closes them cancels it."""

    def __init__(
        self,
        preparation: Preparation,
        sources: Sources,
        kept: Kept | None,
        on_end: Callable[["Turn"], None],
    ) -> None:
        self._preparation = preparation
        self._sources = sources
        self._kept = kept
        self._on_end = on_end
        self._reply = Reply()
        self._ending = Ending()
        self._task: asyncio.Task[Any] | None = None
        self._working = False
        self._handing_over = False
        self._stop: StopReason | None = None
        self._stored = False
        self._status: MessageStatus | None = None
        self._checkpoint_at = 0.0
        self._begun_at = time.monotonic()
        self.ended = asyncio.Event()
        self._unread = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self._give_up)

    @property
    def conversation_id(self) -> str | None:
        """The conversation that it belongs to."""
        return self._kept.reserved.draft.conversation_id if self._kept else None

    def stop(self, reason: StopReason) -> None:
        """End it from this side; its client is told."""
        self._stop = self._stop or reason
        if self._task is None:
            self._give_up()
        elif self._working and not self._handing_over:
            self._task.cancel()

    def _give_up(self) -> None:
        """Store a turn that nobody began to read."""
        if self._task is None:
            self._unread.cancel()
            self._task = asyncio.create_task(self._close("cancelled"), name="chat-unread")

    # -- the stream ----------------------------------------------------------------------------

    async def events(self) -> AsyncGenerator[AnyEvent, None]:
        """Yield what the client is told, ``Done`` last."""
        if self._task is not None:
            return
        self._unread.cancel()
        self._task = asyncio.current_task()
        try:
            async with aclosing(self._guarded()) as told:
                async for event in told:
                    self._handing_over = True
                    yield event
                    self._handing_over = False
                    if self._stop is not None:
                        break
            status: MessageStatus = self._settle()
            if not await self._store(status):
                self._stop, status = "deleted", "cancelled"
            self._status = status
            for event in self._closing(status):
                yield event
        finally:
            await self._close("failed" if self._stop == "shutdown" else "cancelled")

    async def _guarded(self) -> AsyncGenerator[AnyEvent, None]:
        """Yield the events of the work; what goes wrong in it becomes the ending's error."""
        self._working = True
        try:
            async with aclosing(self._work()) as told:
                async for event in told:
                    yield event
        except asyncio.CancelledError:
            if self._stop is None:
                raise
            assert self._task is not None
            # It was our own cancel, and the client is still there to be told.
            self._task.uncancel()
        except ProjectError as error:
            self._ending.error = error.body()["error"]
        except DatabaseClosedError:
            self._stop = "shutdown"
        except Exception as error:  # noqa: BLE001 - the client is told that something failed
            # The error's message and its frames may hold private text.
            log.error(
                "chat.turn_failed", extra={"reason": type(error).__name__, "place": _place(error)}
            )
            self._ending.error = ProjectError("INTERNAL_ERROR").body()["error"]
        finally:
            self._working = False

    async def _work(self) -> AsyncGenerator[AnyEvent, None]:
        async with aclosing(self._preparation.events()) as prepared:
            async for status in prepared:
                yield status
        rounds = self._preparation.rounds(self._reply, self._sources)
        self._ending = rounds.ending
        async with aclosing(rounds.events()) as told:
            async for event in told:
                yield event
                self._keep_now_and_then()

    def _settle(self) -> MessageStatus:
        """Return how it ended."""
        if self._stop == "shutdown":
            self._ending.error = ProjectError(INTERRUPTED).body()["error"]
        elif self._stop == "deleted" or self._ending.cancelled:
            return "cancelled"
        return "failed" if self._ending.error is not None else "completed"

    def _closing(self, status: MessageStatus) -> list[ChatEvent]:
        ending, reserved = self._ending, self._kept.reserved if self._kept else None
        events = [ChatEvent("Usage", dict(ending.usage))] if ending.usage else []
        if status == "failed" and ending.error is not None:
            events.append(ChatEvent("Error", ending.error))
        stored = reserved if self._stop != "deleted" else None
        done = {
            "status": status,
            "finish_reason": ending.finish_reason if status == "completed" else None,
            "conversation_id": stored.draft.conversation_id if stored else None,
            "message_id": stored.draft.message_id if stored else None,
            "user_message_id": stored.question.message_id if stored else None,
        }
        return [*events, ChatEvent("Done", done)]

    # -- storing -------------------------------------------------------------------------------

    def _keep_now_and_then(self) -> None:
        """Keep what has come so far for the case that the process dies; never for each piece."""
        now = time.monotonic()
        if now - self._checkpoint_at < CHECKPOINT_SECONDS:
            return
        if self._kept is not None and self._checkpoint_at:
            self._fill_draft()
            self._kept.conversations.checkpoint(self._kept.reserved.draft)
        self._checkpoint_at = now

    def _fill_draft(self) -> None:
        assert self._kept is not None
        draft, reply = self._kept.reserved.draft, self._reply
        draft.content = str(reply.text)
        draft.thinking = reply.thinking
        draft.tool_calls = reply.tool_records()
        draft.activity = reply.activity()
        draft.citations = [citation.model_dump(mode="json") for citation in self._sources.citations]

    async def _store(self, status: MessageStatus) -> bool:
        """Store the reply, once; False if its conversation is gone."""
        if self._kept is None or self._stored:
            return True
        self._stored = True
        self._fill_draft()
        draft = self._kept.reserved.draft
        draft.status = status
        if status == "failed":
            draft.error_code = self._ending.error["code"] if self._ending.error else INTERRUPTED
        try:
            return await self._kept.conversations.finish(draft, self._kept.snapshot)
        except DatabaseClosedError:
            # The next start finds the draft.
            return True

    async def _close(self, status: MessageStatus) -> None:
        """Store what isn't stored yet, and be over."""
        try:
            await self._store(status)
        finally:
            self._on_end(self)
            self.ended.set()
            log.info(
                "chat.turn_ended",
                extra={
                    "status": self._status or status,
                    "error_code": self._ending.error["code"] if self._ending.error else None,
                    "tools": len(self._reply.tools),
                    "duration_ms": round((time.monotonic() - self._begun_at) * 1000),
                },
            )


def _place(error: BaseException) -> str:
    """Return where in the program an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
