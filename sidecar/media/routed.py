"""Sound through the routes of the user's choice."""

from sidecar.media.remote import RemoteRecording, RemoteSegment, RemoteTranscript
from sidecar.model_routing.service import ModelRoutingService, SoundFile


class RoutedTranscriber:
    """Transcribes by the provider that transcription is routed to."""

    def __init__(self, routing: ModelRoutingService) -> None:
        self._routing = routing

    async def transcribe(self, recording: RemoteRecording) -> RemoteTranscript | None:
        """Return the provider's transcript; None where no route is configured."""
        answer = await self._routing.transcribe(_sound(recording), recording.language)
        if answer is None:
            return None
        segments = [RemoteSegment(part.text, part.start, part.end) for part in answer.segments]
        return RemoteTranscript(answer.text, answer.language, segments)


class RoutedSpeakerMatcher:
    """Compares voices by the provider that speaker matching is routed to."""

    def __init__(self, routing: ModelRoutingService) -> None:
        self._routing = routing

    async def match(self, recording: RemoteRecording, reference: RemoteRecording) -> float | None:
        """Return the provider's score; None where no route is configured."""
        return await self._routing.match_speakers(_sound(recording), _sound(reference))


def _sound(recording: RemoteRecording) -> SoundFile:
    return SoundFile(recording.path, recording.file_name, recording.mime_type)
