"""What the media paths take and give."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sidecar.kernel.jobs.schemas import JobProgress
from sidecar.kernel.jobs.store import JobStatus
from sidecar.kernel.paging import Page, PageQuery, empty_as_absent
from sidecar.media.attachments.types import Kind
from sidecar.vault.schemas import StoredText


class Attachment(BaseModel):
    """A file that was uploaded into the open vault's attachments."""

    attachment_id: str = Field(description="Opaque id.")
    file_name: str = Field(
        description="The base name of the uploaded file, cleaned; for people to read."
    )
    mime_type: str = Field(description="The media type, by the file's content.")
    kind: Kind = Field(description="What kind of file it is; a recording with pictures is `video`.")
    size: int = Field(description="Size in bytes.")
    sha256: str = Field(description="SHA-256 of the content, lower-case hex.")
    created_at: str = Field(description="When it was uploaded, UTC.")


class AttachmentList(BaseModel):
    """A page of attachments, newest first."""

    items: list[Attachment]
    page: Page


class AttachmentQuery(PageQuery):
    """Which attachments to list."""

    kind: Annotated[Kind | None, BeforeValidator(empty_as_absent)] = Field(
        None, description="Only attachments of this kind."
    )


SubtitleFormat = Literal["srt", "vtt"]


class TranscriptWord(BaseModel):
    """One word of a segment."""

    text: str
    start_time: float = Field(description="Seconds from the beginning of the recording.")
    end_time: float = Field(description="Seconds from the beginning of the recording.")
    confidence: float | None = Field(description="The recogniser's probability, 0 to 1.")


class TranscriptSegment(BaseModel):
    """A passage of the transcript. Passages are in order and don't overlap."""

    segment_id: str = Field(description="Unique within the job, the same at every read.")
    speaker: str | None = Field(description="A label such as SPEAKER_00, or the name given to it.")
    start_time: float = Field(description="Seconds from the beginning of the recording.")
    end_time: float = Field(description="Seconds from the beginning of the recording.")
    text: str
    confidence: float | None = Field(description="The recogniser's own probability, 0 to 1.")
    words: list[TranscriptWord] = Field(description="Empty unless word_timestamps was asked for.")


class TranscriptionRequest(BaseModel):
    """What to transcribe, and how. Model and device are the server's profile's, never the request's."""

    model_config = ConfigDict(extra="forbid")

    attachment_id: str = Field(
        description="A recording or video among the open vault's attachments."
    )
    language: str | None = Field(
        None, description="Code of the spoken language, such as zh or en; null to have it detected."
    )
    diarization: bool = Field(False, description="Tell the speakers apart.")
    word_timestamps: bool = Field(False, description="Give the times of each word, too.")
    profile_id: str = Field("default", description="Name of a transcription profile of the server.")
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="Kept with the job as it is, given to no model. At most 16 KiB of JSON.",
    )


class TranscriptionSummary(BaseModel):
    """A transcription job without its transcript."""

    job_id: str = Field(description="Opaque id.")
    attachment_id: str = Field(description="The recording.")
    status: JobStatus
    progress: JobProgress | None = Field(description="The latest progress; null before the first.")
    language: str | None = Field(description="The language given, else the one detected.")
    diarization_enabled: bool = Field(description="Whether speakers were asked for.")
    word_timestamps: bool = Field(description="Whether times of words were asked for.")
    profile_id: str = Field(description="The profile that was asked for.")
    metadata: dict[str, Any] = Field(description="As it was given.")
    warnings: list[str] = Field(description="Codes of what a reader of the transcript should know.")
    error: str | None = Field(
        description="Why the job failed, for a person; null unless it failed."
    )
    error_code: str | None = Field(description="The code of a failed or cancelled job.")
    source: Literal["api", "local", "sidecar"] | None = Field(
        description="Who transcribed it: a remote provider or a local model. `sidecar` on old records only."
    )
    fallback_reason: str | None = Field(
        description="The code of the remote failure that made the local model step in."
    )
    revision: int | None = Field(
        description="The transcript's current revision; null until completed."
    )
    created_at: str
    started_at: str | None
    updated_at: str
    completed_at: str | None


class TranscriptionJob(TranscriptionSummary):
    """A transcription job with the current revision of its transcript."""

    segments: list[TranscriptSegment] = Field(description="Empty until the job is completed.")
    text: str | None = Field(
        description="The text of all segments; null until the job is completed."
    )


class TranscriptionJobListResponse(BaseModel):
    """A page of transcription jobs, newest first. A transcript is read from its job."""

    items: list[TranscriptionSummary]
    page: Page


class TranscriptionQuery(PageQuery):
    """Which jobs to list."""

    status: Annotated[JobStatus | None, BeforeValidator(empty_as_absent)] = Field(
        None, description="Only jobs with this status."
    )


class TranscriptNoteRequest(BaseModel):
    """How a transcript becomes a note."""

    model_config = ConfigDict(extra="forbid")

    title: StoredText | None = Field(
        None, max_length=200, description="The note's title; by default the recording's file name."
    )
    folder: StoredText = Field(
        "", description="A folder of the vault, relative; made if it isn't there."
    )
    include_timestamps: bool = Field(True, description="Show the time of each passage in the text.")
    include_speakers: bool = Field(
        True, description="Show the speaker of each passage in the text."
    )
    template_id: str | None = Field(
        None,
        description="`passages`, a paragraph for each passage, which null stands for too; or `dialogue`, "
        "a paragraph for each turn of a speaker.",
    )
    update_existing: bool = Field(
        False,
        description="Write into the note made earlier with the same options, unless its text was changed since.",
    )


class SubtitleQuery(BaseModel):
    """Which subtitles to make."""

    format: SubtitleFormat = Field(description="srt (SubRip) or vtt (WebVTT).")
    revision: Annotated[int | None, BeforeValidator(empty_as_absent)] = Field(
        None,
        ge=1,
        le=2**53,
        description="A revision of the transcript; the current one by default.",
    )
    speakers: bool = Field(True, description="Say who speaks.")


class Revision(BaseModel):
    """One revision of a transcript, in a list."""

    revision: int = Field(description="1 is the recogniser's own result; each edit is one higher.")
    origin: Literal["recognizer", "user"]
    created_at: str


class RevisionList(BaseModel):
    """A page of revisions, newest first."""

    items: list[Revision]
    page: Page


class RevisionDetail(Revision):
    """One whole revision. It never changes."""

    base_revision: int | None = Field(
        description="The revision that was edited; null for the first."
    )
    segments: list[TranscriptSegment]
    speakers: dict[str, str] = Field(description="Label of a speaker → the name given to it.")


class SegmentEdit(BaseModel):
    """A new text or another speaker for one segment; what isn't given stays."""

    model_config = ConfigDict(extra="forbid")

    segment_id: str
    text: StoredText | None = Field(None, max_length=20_000)
    speaker: str | None = Field(
        None, description="A label such as SPEAKER_00, a new one too; null for nobody's."
    )


class SegmentSplit(BaseModel):
    """Makes two segments of one. The first keeps the id."""

    model_config = ConfigDict(extra="forbid")

    segment_id: str
    offset: int = Field(gt=0, description="How many characters of the text stay in the first part.")
    time: float | None = Field(
        None,
        allow_inf_nan=False,
        description="Seconds at which the second part begins; by default where its first word does.",
    )


class SegmentMerge(BaseModel):
    """Makes one segment of several that follow one another. It has the id and speaker of the first."""

    model_config = ConfigDict(extra="forbid")

    segment_ids: list[str] = Field(min_length=2, max_length=1000)


class RevisionEdit(BaseModel):
    """Changes to the current revision: texts and speakers first, then splits, then merges."""

    model_config = ConfigDict(extra="forbid")

    base_revision: int = Field(
        description="The revision that was edited; it has to be the current one."
    )
    segments: list[SegmentEdit] = Field(default_factory=list, description="Segments to change.")
    splits: list[SegmentSplit] = Field(default_factory=list, max_length=1000)
    merges: list[SegmentMerge] = Field(default_factory=list, max_length=1000)
    speakers: dict[str, StoredText] = Field(
        default_factory=dict, description="Speaker label → its new name."
    )


class SpeakerMatchRequest(BaseModel):
    """Which two recordings to compare. Each should hold one voice."""

    model_config = ConfigDict(extra="forbid")

    attachment_id: str = Field(description="A recording among the open vault's attachments.")
    reference_attachment_id: str = Field(description="The recording to compare it with.")


class SpeakerMatch(BaseModel):
    """Whether two recordings are of one voice."""

    score: float = Field(
        ge=0,
        le=1,
        description="How probable it is that both are one speaker. The local model's is calibrated; from "
        "0.3 to 0.7 it is uncertain. A provider's is as the provider gives it.",
    )
    source: Literal["api", "local"] = Field(description="A remote provider or the local model.")
    fallback_reason: str | None = Field(
        description="The code of the remote failure that made the local model step in."
    )
