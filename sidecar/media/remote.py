"""What transcription needs of a remote provider, and what it gives it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

REMOTE_SIZE_LIMIT: Final = 25 * 1024 * 1024
"""Larger files are sent to no provider, whatever may be uploaded for local use."""


@dataclass(frozen=True, slots=True)
class RemoteRecording:
    """A recording as a provider gets it: a managed file of at most 25 MiB, and nothing about its user.

    ``file_name`` is a neutral one with the right suffix; ``language`` only if one was asked for.
    """

    path: Path
    file_name: str
    mime_type: str
    language: str | None


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """A passage with its times in seconds, if the provider tells them."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RemoteTranscript:
    """What a provider answered. Blank text counts as an invalid answer."""

    text: str
    language: str | None = None
    segments: Sequence[RemoteSegment] = ()


class RemoteTranscriber(Protocol):
    """Transcribes through the provider of the user's choice."""

    async def transcribe(self, recording: RemoteRecording) -> RemoteTranscript | None:
        """Return the provider's answer; None where no route is configured.

        Raises a ``PROVIDER_…`` error, which becomes the job's ``fallback_reason``. Cancelling the task
        that runs it must close the provider's request.
        """
        ...
