"""Paths of attachments, transcriptions and what is made of them."""

from fastapi import APIRouter

from sidecar.media.attachments import router as attachments
from sidecar.media.service import MediaService
from sidecar.media.speakers import router as speakers
from sidecar.media.transcription import router as transcription
from sidecar.media.transcripts import router as transcripts


def build_router(service: MediaService) -> APIRouter:
    """Return the routes of the domain."""
    router = APIRouter(prefix="/api/media", tags=["media"])
    attachments.add_routes(router, service.attachments)
    transcription.add_routes(router, service)
    transcripts.add_routes(router, service)
    speakers.add_routes(router, service.speaker_matching)
    return router
