"""Compares the voices of two recordings: by the remote provider if there is one, else by the local model."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.local_models.service import (
    Attempt,
    AttemptLog,
    InstalledModel,
    InstalledModels,
    ModelUse,
)
from sidecar.media.attachments.file_names import suffix_of
from sidecar.media.attachments.service import AttachmentFile, AttachmentService, CurrentVault
from sidecar.media.remote import REMOTE_SIZE_LIMIT, RemoteRecording
from sidecar.media.schemas import SpeakerMatch, SpeakerMatchRequest
from sidecar.media.speakers.voice_worker import DESCRIPTION
from sidecar.media.speakers.voices import Voice, Voices
from sidecar.usage.service import LOCAL_PROVIDER, UsageLedger

log = get_logger(__name__)

PURPOSE: Final = "speaker_matching"
NOT_INSTALLED: Final = "LOCAL_MODEL_NOT_INSTALLED"
_OF_A_RECORDING: Final = frozenset(
    {"ATTACHMENT_NOT_FOUND", "UNSUPPORTED_AUDIO_FORMAT", "AUDIO_TOO_SHORT"}
)


class RemoteSpeakerMatcher(Protocol):
    """Compares voices through the provider of the user's choice."""

    async def match(self, recording: RemoteRecording, reference: RemoteRecording) -> float | None:
        """Return the provider's score, from 0 to 1; None where no route is configured.

        Raises a ``PROVIDER_…`` error, which becomes the ``fallback_reason``. Cancelling the task that
        runs this must close the provider's request.
        """
        ...


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes a probability of the cosine of two voices; measured for one model, and stored with it."""

    slope: float
    offset: float

    def score(self, cosine: float) -> float:
        """Return how probable it is that both are one speaker, from 0 to 1."""
        return 1.0 / (1.0 + math.exp(-(self.slope * cosine + self.offset)))


@dataclass(slots=True)
class _Facts:
    """What is noted of a local attempt."""

    model_id: str | None = None
    device: str | None = None
    load_ms: int | None = None
    duration_ms: int | None = None


class SpeakerMatching:
    """Matches speakers for the open vault."""

    def __init__(
        self,
        database: Database,
        attachments: AttachmentService,
        vault: CurrentVault,
        voices: Voices,
        models: InstalledModels,
        ledger: UsageLedger,
    ) -> None:
        self._ledger = ledger
        self._database = database
        self._attachments = attachments
        self._vault = vault
        self._voices = voices
        self._models = models
        self.remote: RemoteSpeakerMatcher | None = None
        self._attempts = AttemptLog(database)
        self._use = ModelUse()

    async def check_usable(self) -> None:
        """Raise ``LOCAL_MODEL_NOT_INSTALLED`` unless there is a whole model."""
        await self._model()

    def folders_at_work(self) -> set[Path]:
        """Return the folders of the models that work right now."""
        return self._use.folders()

    async def match(self, request: SpeakerMatchRequest) -> SpeakerMatch:
        """Compare two recordings. Cancelling the task that runs this ends the work, remote or local.

        Raises ``ATTACHMENT_NOT_FOUND``, ``UNSUPPORTED_AUDIO_FORMAT`` or ``AUDIO_TOO_SHORT`` with the
        field in its details, or ``LOCAL_MODEL_NOT_INSTALLED`` where nobody can do it.
        """
        recording = await self._recording(request.attachment_id, "attachment_id")
        reference = await self._recording(
            request.reference_attachment_id, "reference_attachment_id"
        )
        fallback_reason = None
        try:
            score = await self._remotely(recording, reference)
        except ProjectError as error:
            fallback_reason = error.code
            log.warning("speaker_matching.fell_back", extra={"reason": fallback_reason})
        else:
            if score is not None:
                return SpeakerMatch(score=score, source="api", fallback_reason=None)
        score = await self._noted(recording.path, reference.path, fallback_reason)
        return SpeakerMatch(score=score, source="local", fallback_reason=fallback_reason)

    async def _recording(self, attachment_id: str, field: str) -> AttachmentFile:
        with _told_of(field):
            file = await self._attachments.file_of(self._vault.require_vault_id(), attachment_id)
            if file.attachment.kind not in ("audio", "video"):
                raise ProjectError("UNSUPPORTED_AUDIO_FORMAT")
            return file

    async def _remotely(self, recording: AttachmentFile, reference: AttachmentFile) -> float | None:
        sizes = (recording.attachment.size, reference.attachment.size)
        if self.remote is None or max(sizes) > REMOTE_SIZE_LIMIT:
            return None
        return await self.remote.match(_sent(recording, "recording"), _sent(reference, "reference"))

    # -- by the local model --------------------------------------------------------------------

    async def _noted(self, recording: Path, reference: Path, reason: str | None) -> float:
        """Compare locally, and note how that went and what was tried before."""
        facts, status, code = _Facts(), "cancelled", None
        try:
            score = await self._locally(recording, reference, facts)
            status = "completed"
            return score
        except ProjectError as error:
            status, code = "failed", error.code
            if reason is None or error.code == "SHUTTING_DOWN":
                raise
            details = error.details | {"fallback_reason": reason}
            raise ProjectError(error.code, details=details, **error.params) from error
        finally:
            written = self._database.submit(lambda tx: self._note(tx, facts, status, code, reason))
            if status != "cancelled":
                await asyncio.wrap_future(written)

    async def _locally(self, recording: Path, reference: Path, facts: _Facts) -> float:
        model = await self._model()
        facts.model_id = model.model_id
        calibration = await asyncio.to_thread(_calibration, model.folder)
        began = time.monotonic()
        attempt = self._ledger.attempt(
            source=PURPOSE,
            capability=PURPOSE,
            provider_id=LOCAL_PROVIDER,
            provider_name=None,
            model=model.model_id,
        )
        with self._use.of(model.folder):
            async with attempt:
                with _told_of("attachment_id"):
                    voice = await self._voices.voice(recording, model.folder)
                facts.device, facts.load_ms = voice.device, voice.load_ms
                with _told_of("reference_attachment_id"):
                    other = await self._voices.voice(reference, model.folder)
        facts.duration_ms = round(1000 * (time.monotonic() - began)) - (voice.load_ms or 0)
        return calibration.score(_cosine(voice, other))

    async def _model(self) -> InstalledModel:
        model = await self._models.installed(PURPOSE)
        if model is None or model.damaged or not await self._models.is_usable(model.folder):
            raise ProjectError(NOT_INSTALLED)
        return model

    def _note(
        self, tx: Transaction, facts: _Facts, status: str, code: str | None, reason: str | None
    ) -> None:
        if reason is not None:
            fallback = Attempt(
                "fallback",
                PURPOSE,
                status,
                model_id=facts.model_id,
                requested_device="cpu",
                fallback_reason=reason,
            )
            self._attempts.add(tx, fallback)
        call = Attempt(
            "call",
            PURPOSE,
            status,
            model_id=facts.model_id,
            requested_device="cpu",
            actual_device=facts.device,
            load_ms=facts.load_ms,
            duration_ms=facts.duration_ms,
            error_code=code,
        )
        self._attempts.add(tx, call)


@contextmanager
def _told_of(field: str) -> Iterator[None]:
    """Say which of the two recordings it is that can't be used."""
    try:
        yield
    except ProjectError as error:
        if error.code not in _OF_A_RECORDING:
            raise
        raise ProjectError(error.code, details=error.details | {"field": field}) from error


def _sent(file: AttachmentFile, name: str) -> RemoteRecording:
    suffix = suffix_of(file.attachment.stored_name)
    return RemoteRecording(file.path, name + suffix, file.attachment.mime_type, None)


def _calibration(folder: Path) -> Calibration:
    try:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        return Calibration(**described["calibration"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Without it a cosine says nothing.
        raise ProjectError(NOT_INSTALLED) from error


def _cosine(one: Voice, other: Voice) -> float:
    return sum(a * b for a, b in zip(one.vector, other.vector, strict=True))
