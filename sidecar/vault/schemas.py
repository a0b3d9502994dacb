"""Wire models of notes, folders and tags."""

import unicodedata
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from sidecar.kernel.paging import Page


@dataclass(frozen=True, slots=True)
class TranscriptPassage:
    """A stretch of a recording as a note shows it. Times are seconds."""

    text: str
    start_time: float
    end_time: float
    speaker: str | None


@dataclass(frozen=True, slots=True)
class TranscriptOrigin:
    """The recording that a note was made from. ``source_audio`` is the attachment's id."""

    job_id: str
    revision: int
    source_audio: str
    passages: tuple[TranscriptPassage, ...]


def _storable(text: str) -> str:
    """Refuse what no UTF-8 text file can hold."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError
    return text


def _title(text: str) -> str:
    if not text.strip() or any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError
    return text


def _tag(text: str) -> str:
    cleaned = text.strip().removeprefix("#").strip()
    if (
        not cleaned
        or "," in cleaned
        or any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in cleaned)
    ):
        raise ValueError
    return cleaned


StoredText = Annotated[str, AfterValidator(_storable)]
Title = Annotated[StoredText, Field(min_length=1, max_length=200), AfterValidator(_title)]
Tag = Annotated[StoredText, Field(min_length=1, max_length=100), AfterValidator(_tag)]
Tags = Annotated[list[Tag], Field(max_length=200)]

CONTENT = "The whole Markdown text, front matter included; at most 8 MiB of UTF-8."
EXPECTED_HASH = (
    "The `content_hash` that the change is based on. If the note has another by now, nothing is "
    "changed and the answer is `NOTE_CONTENT_CONFLICT`. Left out: the change is made in any case."
)
FOLDER = 'The folder, relative to the vault, with `/` between names; "" is the vault itself.'


class TranscriptReference(BaseModel):
    """What a note was made from."""

    job_id: str = Field(description="The transcription.")
    revision: int = Field(description="The revision of the transcript that the text shows.")


class NoteSummary(BaseModel):
    """A note without its text."""

    note_id: str = Field(description="Stays the same over edits, renames and moves.")
    title: str
    folder: str = Field(description=FOLDER)
    file_path: str = Field(description="The file, relative to the vault.")
    tags: list[str] = Field(
        description="The front matter's tags and the `#tags` of the text, as they are written."
    )
    content_hash: str = Field(
        description="Lower-case hex SHA-256 of the UTF-8 bytes of the whole `content`."
    )
    created_at: str
    updated_at: str
    transcript: TranscriptReference | None = Field(
        None, description="Set on a note that was made from a recording."
    )


class Note(NoteSummary):
    """A note."""

    content: str = Field(
        description="The whole text as it stands in the file, line endings and front matter "
        "included; a byte order mark is left out."
    )


class NoteList(BaseModel):
    """A page of notes."""

    items: list[NoteSummary]
    page: Page


class NoteCreate(BaseModel):
    """A new note."""

    title: Title = Field(description="Shown as it is typed; the file gets a name that is safe.")
    content: StoredText = Field("", description=CONTENT)
    folder: str = Field("", description=f"{FOLDER} It is made if it doesn't exist.")
    tags: Tags = Field([], description="Written into the front matter, if there are any.")


class NotePut(BaseModel):
    """A note's new text."""

    content: StoredText = Field(description=CONTENT)
    title: Title | None = Field(None, description="A new title; the file is renamed.")
    tags: Tags | None = Field(None, description="Written into the front matter of the new text.")
    expected_content_hash: str | None = Field(None, description=EXPECTED_HASH)


class NotePatch(BaseModel):
    """What is to change of a note; what is left out or null stays as it is."""

    title: Title | None = Field(None, description="A new title; the file is renamed.")
    tags: Tags | None = Field(
        None, description="The new tags of the front matter; its other keys stay as they are."
    )
    content: StoredText | None = Field(None, description=CONTENT)
    expected_content_hash: str | None = Field(None, description=EXPECTED_HASH)


class NoteMove(BaseModel):
    """Where a note goes."""

    folder: str = Field(description=f"{FOLDER} It is made if it doesn't exist.")
    expected_content_hash: str | None = Field(None, description=EXPECTED_HASH)


NoteSort = Literal["updated_at", "created_at", "title"]


class Folder(BaseModel):
    """A folder of the vault."""

    path: str = Field(description="Relative to the vault.")
    name: str
    note_count: int = Field(description="Notes in it and in the folders below it.")


class FolderList(BaseModel):
    """All folders, in the order of their paths."""

    items: list[Folder]


class TagCount(BaseModel):
    """A tag in use."""

    tag: str = Field(description="As it is written where it was found first.")
    note_count: int


class TagList(BaseModel):
    """All tags, in alphabetical order."""

    items: list[TagCount]


class SkippedFile(BaseModel):
    """A file of the vault that isn't a note."""

    file_path: str = Field(description="Relative to the vault.")
    reason: str = Field(
        description="`symlink`, `too_large` (over 8 MiB), `binary` (not UTF-8 text), "
        "`unreadable` or `not_a_file`."
    )
    size: int = Field(description="In bytes; 0 where it wasn't looked at.")


class VaultStatus(BaseModel):
    """How far the vault has been looked through."""

    state: Literal["closed", "scanning", "ready", "unavailable"] = Field(
        description="`scanning`: notes are still being taken in; everything can be used meanwhile."
    )
    scanned: int = Field(
        description="New and changed files that were taken in since the vault was opened."
    )
    total: int | None = Field(
        description="Those, and the ones that wait for it; null until the folder was looked through."
    )
    note_count: int
    skipped_count: int
    watching: Literal["events", "polling", "off"] = Field(
        description="How changes of other programs are noticed."
    )


class SkippedList(BaseModel):
    """A page of files that were skipped."""

    items: list[SkippedFile]
    page: Page


class TrashedNote(BaseModel):
    """A note in the trash."""

    note_id: str
    title: str
    folder: str = Field(description="Where it lay.")
    deleted_at: str


class TrashList(BaseModel):
    """A page of the notes in the trash, the last deleted first."""

    items: list[TrashedNote]
    page: Page
