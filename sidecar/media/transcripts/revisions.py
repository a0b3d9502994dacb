"""Revisions of a transcript: the recogniser's own result, and what a user made of it."""

from typing import TYPE_CHECKING

from sidecar.kernel.database import Database, Transaction
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.jobs.store import Job
from sidecar.kernel.paging import PageQuery, page_of
from sidecar.media import store
from sidecar.media.input_errors import invalid
from sidecar.media.schemas import Revision, RevisionDetail, RevisionEdit, RevisionList
from sidecar.media.store import StoredRevision
from sidecar.media.transcription.segments import Segment
from sidecar.media.transcripts.revision_edits import edited_segments

if TYPE_CHECKING:
    from sidecar.media.transcription.service import TranscriptionService

LONGEST_NAME = 100


def labels_of(segments: list[Segment]) -> list[str]:
    """Return the speaker labels in the order of their first appearance."""
    return list(dict.fromkeys(segment["speaker"] for segment in segments if segment["speaker"]))


def named_segments(revision: StoredRevision) -> list[Segment]:
    """Return the segments with the names that were given to their speakers."""
    return [
        segment | {"speaker": revision.speakers.get(segment["speaker"], segment["speaker"])}
        for segment in revision.segments
    ]


class RevisionService:
    """Reads and makes revisions."""

    def __init__(self, database: Database, transcriptions: "TranscriptionService") -> None:
        self._database = database
        self._transcriptions = transcriptions

    async def current(self, job_id: str) -> tuple[Job, StoredRevision]:
        """Return a completed job and its current revision, or raise ``TRANSCRIPT_NOT_READY``."""
        job = await self._transcriptions.completed_job(job_id)
        revision = await self._database.read(lambda conn: store.get_revision(conn, job_id))
        assert revision is not None, "a job is completed together with its first revision"
        return job, revision

    async def stored(self, job_id: str, number: int | None) -> tuple[Job, StoredRevision]:
        """Return a completed job and a revision of its transcript, by default the current one.

        Raises ``RESOURCE_NOT_FOUND`` or ``TRANSCRIPT_NOT_READY``.
        """
        job = await self._transcriptions.completed_job(job_id)
        revision = await self._database.read(lambda conn: store.get_revision(conn, job_id, number))
        if revision is None:
            raise ProjectError("RESOURCE_NOT_FOUND")
        return job, revision

    async def list(self, job_id: str, query: PageQuery) -> RevisionList:
        """Return a page of a transcript's revisions, newest first."""
        await self._transcriptions.completed_job(job_id)
        found, total = await self._database.read(
            lambda conn: store.page_revisions(conn, job_id, query.limit, query.offset)
        )
        return RevisionList(
            items=[Revision.model_validate(item) for item in found], page=page_of(total, query)
        )

    async def get(self, job_id: str, revision: str) -> RevisionDetail:
        """Return one revision, or raise ``RESOURCE_NOT_FOUND``."""
        await self._transcriptions.completed_job(job_id)
        number = (
            int(revision) if revision.isascii() and revision.isdigit() and len(revision) < 10 else 0
        )
        found = await self._database.read(lambda conn: store.get_revision(conn, job_id, number))
        if found is None:
            raise ProjectError("RESOURCE_NOT_FOUND")
        return _detail(found)

    async def edit(self, job_id: str, edit: RevisionEdit) -> RevisionDetail:
        """Make a revision with the changes of *edit* and return it.

        Raises ``TRANSCRIPT_REVISION_CONFLICT`` if *edit* is based on an older revision.
        """
        await self._transcriptions.completed_job(job_id)

        def change(tx: Transaction) -> StoredRevision:
            current = store.get_revision(tx, job_id)
            assert current is not None, "a job is completed together with its first revision"
            if edit.base_revision != current.revision:
                raise ProjectError(
                    "TRANSCRIPT_REVISION_CONFLICT", details={"current_revision": current.revision}
                )
            segments = edited_segments(current.segments, edit, current.revision + 1)
            speakers = current.speakers | _checked_names(segments, edit)
            if segments == current.segments and speakers == current.speakers:
                raise invalid("Nothing is changed.", "body")
            return store.insert_revision(tx, job_id, current, segments, speakers)

        return _detail(await self._database.write(change))


def _checked_names(segments: list[Segment], edit: RevisionEdit) -> dict[str, str]:
    labels = labels_of(segments)
    names: dict[str, str] = {}
    for label, name in edit.speakers.items():
        if label not in labels:
            raise invalid("No such speaker label.", "body", "speakers", label)
        names[label] = " ".join(name.split())
        if not 0 < len(names[label]) <= LONGEST_NAME:
            raise invalid("A name has 1 to 100 characters.", "body", "speakers", label)
    return names


def _detail(revision: StoredRevision) -> RevisionDetail:
    return RevisionDetail.model_validate(
        {
            "revision": revision.revision,
            "base_revision": revision.base_revision,
            "origin": revision.origin,
            "created_at": revision.created_at,
            "segments": named_segments(revision),
            "speakers": {
                label: revision.speakers.get(label, label) for label in labels_of(revision.segments)
            },
        }
    )
