"""How one recording becomes segments: by the remote provider if there is one, else by the local model."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.engine import WORKER_CODES
from sidecar.kernel.logging import get_logger
from sidecar.local_models.service import LocalModels, SpeechModel
from sidecar.media.attachments.file_names import suffix_of
from sidecar.media.attachments.service import AttachmentFile, AttachmentService
from sidecar.media.remote import (
    REMOTE_SIZE_LIMIT,
    RemoteRecording,
    RemoteTranscriber,
    RemoteTranscript,
)
from sidecar.media.speakers.diarization import UNAVAILABLE, Diarizer, SpeakerListener, ToldApart
from sidecar.media.speakers.turns import with_speakers, without_words
from sidecar.media.transcription.note_terms import NoteTerms
from sidecar.media.transcription.profiles import TranscriptionProfile, TranscriptionProfiles
from sidecar.media.transcription.segments import Segment, segments_of
from sidecar.media.transcription.slots import Slots
from sidecar.media.whisper.client import FellBack, Position, Recognised, Started, Whisper
from sidecar.usage.service import LOCAL_PROVIDER, UsageLedger

log = get_logger(__name__)

FAILURE: Final = "TRANSCRIPTION_FAILED"


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """Which recording to transcribe, and how."""

    vault_id: str
    attachment_id: str
    language: str | None = None
    word_timestamps: bool = False
    diarization: bool = False
    profile_id: str = "default"

    @classmethod
    def of_job(cls, request: Mapping[str, Any]) -> "SpeechRequest":
        """Return the request that a job keeps."""
        return cls(**{name: request[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Transcribed:
    """A transcript, who made it, and what its reader should know (codes). ``duration`` in seconds."""

    segments: list[Segment]
    language: str | None
    duration: float
    source: Literal["api", "local"]
    fallback_reason: str | None
    warnings: tuple[str, ...]


class Listener(Protocol):
    """Who is told how a recognition goes on."""

    async def sent(self) -> None:
        """The provider has done it; no local model is needed."""

    async def fell_back(self, reason: str) -> None:
        """The provider could not do it (a project code), and the local model steps in."""

    async def loading(self, model: SpeechModel, device: str) -> None:
        """The local model is about to be loaded, on the *device* that the profile asks for."""

    async def started(self, step: Started) -> None:
        """The local model begins with the recording."""

    async def changed_device(self, step: FellBack) -> None:
        """The device of the local model could not do it, and the work begins anew on another."""

    async def reached(self, step: Position) -> None:
        """The local model has come as far as this."""

    async def recognised(self) -> None:
        """The local model has done its work."""


class Recogniser:
    """Turns recordings into transcripts."""

    def __init__(
        self,
        attachments: AttachmentService,
        models: LocalModels,
        whisper: Whisper,
        profiles: TranscriptionProfiles,
        ledger: UsageLedger,
    ) -> None:
        self._attachments = attachments
        self._models = models
        self._ledger = ledger
        self._whisper = whisper
        self.profiles = profiles
        self.terms: NoteTerms | None = None
        self.diarizer: Diarizer | None = None
        self.remote: RemoteTranscriber | None = None
        self._slots = Slots()

    async def model(self, profile_id: str) -> SpeechModel:
        """Return the model of a profile.

        Raises ``LOCAL_MODEL_NOT_INSTALLED``, or ``TRANSCRIPTION_MODEL_UNAVAILABLE`` for a damaged one.
        """
        return await self._model_of(self.profiles.get(profile_id))

    async def _model_of(self, profile: TranscriptionProfile) -> SpeechModel:
        model = await self._models.speech_model(profile.model)
        if model is None:
            raise ProjectError("LOCAL_MODEL_NOT_INSTALLED")
        if model.damaged:
            raise ProjectError("TRANSCRIPTION_MODEL_UNAVAILABLE")
        return model

    async def folders(self) -> set[Path]:
        """Return where the models lie that a job of any profile would take now."""
        names = {self.profiles.get(name).model for name in self.profiles.names}
        models = [await self._models.speech_model(name) for name in names]
        return {model.path for model in models if model}

    async def recognise(
        self,
        request: SpeechRequest,
        listener: Listener,
        speaker_listener: SpeakerListener | None = None,
    ) -> Transcribed:
        """Transcribe a recording. Cancelling the task that runs this ends the work, remote or local.

        *speaker_listener* hears how the speakers are told apart, for a request that asks for it.
        An error that follows a fallback names the reason of that in ``details.fallback_reason``.
        """
        recording = await self._attachments.file_of(request.vault_id, request.attachment_id)
        fallback_reason = None
        try:
            transcript = await self._remotely(request, recording)
        except ProjectError as error:
            fallback_reason = error.code
            log.warning("transcription.fell_back", extra={"reason": fallback_reason})
            await listener.fell_back(fallback_reason)
        else:
            if transcript is not None:
                await listener.sent()
                return await self._from_remote(request, recording, transcript, speaker_listener)
        try:
            return await self._locally(
                request, recording.path, listener, speaker_listener, fallback_reason
            )
        except ProjectError as error:
            if fallback_reason is None or error.code == "SHUTTING_DOWN":
                raise
            code = FAILURE if error.code in WORKER_CODES else error.code
            details = error.details | {"fallback_reason": fallback_reason}
            raise ProjectError(code, details=details, **error.params) from error

    # -- by the provider -----------------------------------------------------------------------

    async def _remotely(
        self, request: SpeechRequest, recording: AttachmentFile
    ) -> RemoteTranscript | None:
        if self.remote is None:
            return None
        if recording.attachment.size > REMOTE_SIZE_LIMIT:
            return None
        transcript = await self.remote.transcribe(
            RemoteRecording(
                recording.path,
                "recording" + suffix_of(recording.attachment.stored_name),
                recording.attachment.mime_type,
                request.language,
            )
        )
        if transcript is not None and not transcript.text.strip():
            raise ProjectError("PROVIDER_INVALID_RESPONSE")
        return transcript

    async def _from_remote(
        self,
        request: SpeechRequest,
        recording: AttachmentFile,
        transcript: RemoteTranscript,
        speaker_listener: SpeakerListener | None,
    ) -> Transcribed:
        duration = await self._attachments.duration(recording.path)
        raw: list[dict[str, Any]] = [
            {"text": part.text, "start": part.start, "end": part.end}
            for part in transcript.segments
        ]
        language = request.language or transcript.language
        warnings: tuple[str, ...] = ()
        if request.diarization and not raw:
            # Text alone says nothing about who spoke.
            warnings = (UNAVAILABLE,)
        elif request.diarization:
            async with self._slots.one_of(self.profiles.get(request.profile_id).parallel_jobs):
                told_apart = await self._told_apart(recording.path, speaker_listener)
            warnings = told_apart.warnings
            raw = with_speakers(raw, told_apart.turns) if told_apart.turns else raw
        raw = raw or [{"text": transcript.text, "start": 0.0, "end": duration}]
        return Transcribed(
            segments_of(raw, duration, language), language, duration, "api", None, warnings
        )

    async def _told_apart(
        self, recording: Path, speaker_listener: SpeakerListener | None
    ) -> ToldApart:
        if self.diarizer is None or speaker_listener is None:
            return ToldApart(None, (UNAVAILABLE,))
        return await self.diarizer.tell_apart(recording, speaker_listener)

    # -- by the local model --------------------------------------------------------------------

    async def _locally(
        self,
        request: SpeechRequest,
        recording: Path,
        listener: Listener,
        speaker_listener: SpeakerListener | None,
        fallback_reason: str | None,
    ) -> Transcribed:
        profile = self.profiles.get(request.profile_id)
        told_apart = ToldApart(None)
        async with self._slots.one_of(profile.parallel_jobs):
            model = await self._model_of(profile)
            await listener.loading(model, profile.device)
            if request.diarization:
                told_apart = await self._told_apart(recording, speaker_listener)
            # A segment with several speakers is cut between its words.
            wanted = replace(
                request, word_timestamps=request.word_timestamps or bool(told_apart.turns)
            )
            recognised = await self._recognised(wanted, recording, model, profile, listener)
        raw = recognised.segments
        if told_apart.turns:
            raw = with_speakers(raw, told_apart.turns)
        segments = segments_of(raw, recognised.duration, recognised.language)
        if not request.word_timestamps:
            segments = without_words(segments)
        warnings = list(told_apart.warnings)
        if not segments:
            warnings.append("NO_SPEECH_DETECTED")
        if recognised.truncated:
            warnings.append("AUDIO_TRUNCATED")
        warnings += recognised.warnings
        return Transcribed(
            segments,
            recognised.language,
            recognised.duration,
            "local",
            fallback_reason,
            tuple(warnings),
        )

    async def _recognised(
        self,
        request: SpeechRequest,
        recording: Path,
        model: SpeechModel,
        profile: TranscriptionProfile,
        listener: Listener,
    ) -> Recognised:
        recognised: Recognised | None = None
        terms: tuple[str, ...] = ()
        if self.terms is not None and profile.vault_terms:
            terms = await self.terms.of_vault(request.vault_id)
        work = self._whisper.transcribe(
            recording,
            model.path,
            profile,
            language=request.language,
            word_timestamps=request.word_timestamps,
            terms=terms,
        )
        attempt = self._ledger.attempt(
            source="transcription",
            capability="transcription",
            provider_id=LOCAL_PROVIDER,
            provider_name=None,
            model=model.name,
        )
        async with attempt as reported, aclosing(work) as steps:
            async for step in steps:
                if isinstance(step, Recognised):
                    recognised = step
                    reported.audio_seconds = step.duration
                    await listener.recognised()
                elif isinstance(step, Started):
                    await listener.started(step)
                elif isinstance(step, FellBack):
                    await listener.changed_device(step)
                else:
                    await listener.reached(step)
        assert recognised is not None, "a worker's last message is its result"
        return recognised
