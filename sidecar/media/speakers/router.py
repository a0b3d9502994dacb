"""Paths of voices."""

from fastapi import APIRouter, Request

from sidecar.kernel.errors import error_responses
from sidecar.kernel.http.hang_up import unless_hung_up
from sidecar.media.schemas import SpeakerMatch, SpeakerMatchRequest
from sidecar.media.speakers.matching import SpeakerMatching


def add_routes(router: APIRouter, service: SpeakerMatching) -> None:
    """Add the paths of voices."""

    @router.post(
        "/speaker-matches",
        response_model=SpeakerMatch,
        summary="Compare two voices",
        description="Tells how probable it is that two recordings are of one speaker: by the provider of the "
        "speaker matching route, else by the local speaker model. Closing the request ends the work.",
        responses=error_responses(
            "ATTACHMENT_NOT_FOUND",
            "UNSUPPORTED_AUDIO_FORMAT",
            "AUDIO_TOO_SHORT",
            "LOCAL_MODEL_NOT_INSTALLED",
            "VAULT_NOT_OPEN",
        ),
    )
    async def match_speakers(body: SpeakerMatchRequest, request: Request) -> SpeakerMatch:
        return await unless_hung_up(request, service.match(body))
