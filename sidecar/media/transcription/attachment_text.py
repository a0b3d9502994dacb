"""The words of an attached recording, for who needs the text alone: a chat message, an agent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.database import Database, Readable
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.ids import new_id
from sidecar.kernel.jobs import store as job_store
from sidecar.kernel.jobs.engine import WORKER_CODES
from sidecar.local_models.service import SpeechModel
from sidecar.media import store
from sidecar.media.attachments.service import TRANSCRIPTION, AttachmentService, CurrentVault
from sidecar.media.transcription.attempt_notes import AttemptNotes
from sidecar.media.transcription.recognition import FAILURE, Recogniser, SpeechRequest
from sidecar.media.transcription.segments import transcript_text
from sidecar.media.transcripts.revisions import named_segments
from sidecar.media.whisper.client import FellBack, Position, Started

TextProgress = Callable[[float, float], Awaitable[None]]
"""Is told the seconds of the recording that are done, and how many it has."""

TRUNCATED: Final = "AUDIO_TRUNCATED"


@dataclass(frozen=True, slots=True)
class AttachmentText:
    """What is said in a recording. ``truncated``: its end is missing or damaged.

    ``warnings`` are codes of the catalogue (``warning.…``), as a transcription job has them.
    """

    text: str
    truncated: bool
    warnings: tuple[str, ...]


class AttachmentTexts:
    """Transcribes attachments outside the list of jobs."""

    def __init__(
        self,
        database: Database,
        attachments: AttachmentService,
        vault: CurrentVault,
        recogniser: Recogniser,
        notes: AttemptNotes,
    ) -> None:
        self._database = database
        self._attachments = attachments
        self._vault = vault
        self._recogniser = recogniser
        self._notes = notes

    async def text(
        self, attachment_id: str, *, progress: TextProgress | None = None
    ) -> AttachmentText:
        """Return the words of a recording of the open vault.

        A transcript that was made of it before is taken as it is now, edits included; else it is
        transcribed, in turn with the recordings that wait. Cancelling the task ends the work.
        Raises ``ATTACHMENT_NOT_FOUND``, ``UNSUPPORTED_AUDIO_FORMAT`` for what is no recording, and
        what a transcription job would fail with.
        """
        vault_id = self._vault.require_vault_id()
        attachment = await self._attachments.get(attachment_id)
        if attachment.kind not in ("audio", "video"):
            raise ProjectError("UNSUPPORTED_AUDIO_FORMAT")
        known = await self._database.read(lambda conn: _known_text(conn, attachment_id))
        if known is not None:
            return known
        work_id = new_id("attachment_text")
        listener = _Listener(work_id, self._notes, progress)
        request = SpeechRequest(vault_id, attachment_id)
        status, code = "cancelled", None
        try:
            transcribed = await self._recogniser.recognise(request, listener)
            status = "completed"
        except ProjectError as error:
            status, code = "failed", FAILURE if error.code in WORKER_CODES else error.code
            raise ProjectError(code, details=error.details, **error.params) from error
        finally:
            self._database.submit(lambda tx: self._notes.ended(tx, work_id, status, code))
        return AttachmentText(
            transcript_text(transcribed.segments),
            TRUNCATED in transcribed.warnings,
            transcribed.warnings,
        )


def _known_text(conn: Readable, attachment_id: str) -> AttachmentText | None:
    found = store.newest_transcript(conn, attachment_id)
    job = job_store.get(conn, TRANSCRIPTION, found[0]) if found else None
    if found is None or job is None:
        return None
    text = transcript_text(named_segments(found[1]))
    return AttachmentText(text, TRUNCATED in job.warnings, tuple(job.warnings))


class _Listener:
    def __init__(self, work_id: str, notes: AttemptNotes, progress: TextProgress | None) -> None:
        self._work_id = work_id
        self._notes = notes
        self._progress = progress
        self._duration = 0.0

    async def sent(self) -> None:
        self._notes.left_to_provider(self._work_id)

    async def fell_back(self, reason: str) -> None:
        self._notes.fell_back(self._work_id, reason)

    async def loading(self, model: SpeechModel, device: str) -> None:
        self._notes.chosen(self._work_id, model.path, device)

    async def started(self, step: Started) -> None:
        self._notes.started(self._work_id, step.device, step.load_ms)
        self._duration = step.duration
        await self._tell(0.0)

    async def changed_device(self, step: FellBack) -> None:
        self._notes.fell_back(self._work_id, step.reason)

    async def reached(self, step: Position) -> None:
        await self._tell(step.seconds)

    async def recognised(self) -> None:
        self._notes.stopped(self._work_id)
        await self._tell(self._duration)

    async def _tell(self, seconds: float) -> None:
        if self._progress is not None:
            await self._progress(min(seconds, self._duration), self._duration)
