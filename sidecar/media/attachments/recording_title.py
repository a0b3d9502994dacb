"""What a recording is called, for what is made of it."""

from sidecar.kernel.errors import ProjectError
from sidecar.media.attachments.file_names import stem_of
from sidecar.media.attachments.service import AttachmentService


async def recording_title(attachments: AttachmentService, attachment_id: str) -> str:
    """Return the name of a recording's file without its suffix."""
    try:
        attachment = await attachments.get(attachment_id)
    except ProjectError:
        # The recording was deleted since; its transcript is still there.
        return "Transcript"
    return stem_of(attachment.file_name)
