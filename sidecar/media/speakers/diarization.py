"""Tells the speakers of a recording apart, in a worker that the managed runtime's interpreter runs."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.logging import get_logger
from sidecar.kernel.processes import plain_command
from sidecar.kernel.workers.client import WorkerPool, WorkerSpec
from sidecar.local_models.service import (
    Attempt,
    AttemptLog,
    InstalledModel,
    InstalledModels,
    ModelUse,
)
from sidecar.media.speakers.turns import Turn, Turns
from sidecar.media.speakers.voices import Voices
from sidecar.runtime.service import RuntimePython

log = get_logger(__name__)

PURPOSE: Final = "diarization"
WORKER: Final = "speakers"
WORKER_MODULE: Final = "sidecar.media.speakers.diarization_worker"
UNAVAILABLE: Final = "DIARIZATION_UNAVAILABLE"
MODEL_UNAVAILABLE: Final = "DIARIZATION_MODEL_UNAVAILABLE"
# What a reader of the transcript is told besides.
_EXPLAINED: Final = frozenset({MODEL_UNAVAILABLE, "RUNTIME_OUTDATED"})
# Importing torch and pyannote has taken half a minute on a busy machine.
IDLE_SECONDS: Final = 300.0

Device = Literal["auto", "cpu", "cuda"]


class Runtime(Protocol):
    """Who has the interpreter that torch is installed for."""

    async def worker_python(self) -> RuntimePython | None:
        """Return it once it is known whether it works; None if there is none."""
        ...


class SpeakerListener(Protocol):
    """Who is told how the telling apart goes on."""

    async def diarization_started(self, device: str) -> None:
        """The pipeline is loaded, on this device."""

    async def diarization_reached(self, fraction: float) -> None:
        """So much of it is done, from 0 to 1."""

    async def diarization_completed(self, speakers: int) -> None:
        """It is done."""


@dataclass(frozen=True, slots=True)
class ToldApart:
    """The turns, or the warnings (codes) that say why there are none."""

    turns: Turns | None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Facts:
    """What is noted of an attempt."""

    model_id: str | None = None
    requested_device: str | None = None
    device: str | None = None
    load_ms: int | None = None
    began: float | None = None
    fallbacks: list[str] = field(default_factory=list)


class Diarizer:
    """Runs one recording at a time."""

    def __init__(
        self,
        database: Database,
        workers: WorkerPool,
        voices: Voices,
        models: InstalledModels,
        runtime: Runtime | None,
        temporary: Path,
        *,
        device: Device = "auto",
    ) -> None:
        """*temporary* is a folder for the sound that the worker reads."""
        self._database = database
        self._workers = workers
        self._voices = voices
        self._models = models
        self._runtime = runtime
        self._temporary = temporary
        self._device = device
        self._attempts = AttemptLog(database)
        self._use = ModelUse()

    async def check_usable(self) -> None:
        """Raise what keeps speakers from being told apart now.

        ``CAPABILITY_NOT_AVAILABLE`` without the runtime, else ``DIARIZATION_MODEL_UNAVAILABLE``.
        """
        await self._python()
        await self._model()

    def folders_at_work(self) -> set[Path]:
        """Return the folders of the models that work right now."""
        return self._use.folders()

    async def default_folder(self) -> set[Path]:
        """Return where the model lies that the next recording would take."""
        model = await self._models.installed(PURPOSE)
        return {model.folder} if model else set()

    async def tell_apart(self, recording: Path, listener: SpeakerListener) -> ToldApart:
        """Return who talks when. A failure is told by warnings; cancelling the task ends the work."""
        facts, status, code = _Facts(), "cancelled", None
        try:
            turns = await self._turns(recording, listener, facts)
            status = "completed"
        except ProjectError as error:
            if error.code == "SHUTTING_DOWN":
                raise
            status, code = "failed", error.code
            log.warning("diarization.failed", extra={"code": code})
            return ToldApart(None, (UNAVAILABLE, *({code} & _EXPLAINED)))
        finally:
            written = self._database.submit(lambda tx: self._note(tx, facts, status, code))
            if status != "cancelled":
                await asyncio.wrap_future(written)
        return ToldApart(turns)

    async def _turns(self, recording: Path, listener: SpeakerListener, facts: _Facts) -> Turns:
        python = await self._python()
        model = await self._model()
        facts.model_id = model.folder.name
        wants_cuda = self._device == "cuda" or (self._device == "auto" and python.cuda_available)
        facts.requested_device = "cuda" if wants_cuda else "cpu"
        sound = self._temporary / f"{new_id('sound')}.wav"
        with self._use.of(model.folder):
            try:
                await self._voices.write_wave(recording, sound)
                params = {
                    "wav": str(sound),
                    "model": str(model.folder),
                    "device": facts.requested_device,
                    "speakers": None,
                }
                async with aclosing(self._messages(python, params)) as messages:
                    return await self._follow(messages, listener, facts)
            finally:
                await asyncio.to_thread(sound.unlink, missing_ok=True)

    async def _messages(
        self, python: RuntimePython, params: dict[str, Any]
    ) -> AsyncGenerator[dict[str, Any], None]:
        # A runtime that was installed anew has another interpreter, and gets another process.
        command = plain_command(python.path, WORKER_MODULE, write_bytecode=not python.custom)
        spec = WorkerSpec(WORKER, tuple(command), idle_seconds=IDLE_SECONDS)
        worker = await self._workers.replace(spec)
        async with aclosing(worker.request("diarize", params)) as messages:
            async for message in messages:
                yield message

    async def _follow(
        self,
        messages: AsyncGenerator[dict[str, Any], None],
        listener: SpeakerListener,
        facts: _Facts,
    ) -> Turns:
        told_start = False
        async for message in messages:
            data: Mapping[str, Any] = message["data"]
            if message["type"] == "result":
                turns = Turns(
                    (Turn(**turn) for turn in data["overlapping"]),
                    (Turn(**turn) for turn in data["turns"]),
                )
                await listener.diarization_completed(len(turns.speakers))
                return turns
            if data["stage"] == "fell_back":
                facts.fallbacks.append(data["reason"])
            elif data["stage"] == "position":
                await listener.diarization_reached(data["fraction"])
            else:
                facts.device, facts.load_ms = data["device"], data["load_ms"]
                facts.began = time.monotonic()
                if not told_start:
                    told_start = True
                    await listener.diarization_started(data["device"])
        raise ProjectError("WORKER_CRASHED")

    async def _python(self) -> RuntimePython:
        python = await self._runtime.worker_python() if self._runtime else None
        if python is None:
            raise ProjectError("CAPABILITY_NOT_AVAILABLE")
        return python

    async def _model(self) -> InstalledModel:
        model = await self._models.installed(PURPOSE)
        # The weights are pickles: nothing is loaded that isn't what was checked when it came.
        if model is None or model.damaged or not await self._models.is_usable(model.folder):
            raise ProjectError(MODEL_UNAVAILABLE)
        return model

    def _note(self, tx: Transaction, facts: _Facts, status: str, code: str | None) -> None:
        for reason in facts.fallbacks:
            self._attempts.add(
                tx,
                Attempt(
                    "fallback",
                    PURPOSE,
                    status,
                    model_id=facts.model_id,
                    requested_device=facts.requested_device,
                    fallback_reason=reason,
                ),
            )
        began = facts.began
        self._attempts.add(
            tx,
            Attempt(
                "call",
                PURPOSE,
                status,
                model_id=facts.model_id,
                requested_device=facts.requested_device,
                actual_device=facts.device,
                load_ms=facts.load_ms,
                duration_ms=None if began is None else round(1000 * (time.monotonic() - began)),
                error_code=code,
            ),
        )
