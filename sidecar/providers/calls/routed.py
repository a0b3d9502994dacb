"""The calls that model routing makes: embedding, transcription and speaker matching, one attempt each.

Nothing is repeated unless the caller says so: a local model steps in at once.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

from sidecar.kernel.errors import ProjectError
from sidecar.providers.calls.request_rules import with_overrides
from sidecar.providers.calls.retries import RetryPolicy, wait_before_repeat
from sidecar.providers.calls.transport import FilePart, Transport, Upstream
from sidecar.providers.failures import UpstreamError
from sidecar.providers.lookup import ProviderLookup
from sidecar.providers.protocols.openai_models import (
    TranscriptionAnswer,
    Used,
    embedding_body,
    match_fields,
    read_embeddings,
    read_match,
    read_transcription,
    transcription_fields,
    used_of,
)
from sidecar.providers.schemas.wire import Provider, ProviderType
from sidecar.usage.service import Reported, UsageLedger

RoutedCapability = Literal["embedding", "transcription", "speaker_matching"]

ROUTABLE_TYPES: Final[frozenset[ProviderType]] = frozenset({"openai_chat", "openai_compatible"})
"""The protocols that have these calls."""

LARGEST_FILE: Final = 25 * 1024 * 1024
_MATCH_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class RoutedModel:
    """A provider's model, and the path below the provider's address that it is asked at."""

    provider_id: str
    model: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class SoundFile:
    """A recording as a provider gets it: its content under a name that tells nothing of its user."""

    path: Path
    file_name: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class _Reached:
    provider: Provider
    upstream: Upstream


class RoutedCalls:
    """Makes the calls and writes each to the ledger.

    Every call raises :class:`ProjectError`: the provider's failure as a ``PROVIDER_…`` or ``MODEL_…``
    code; before anything leaves also ``RESOURCE_NOT_FOUND``, ``PROVIDER_DISABLED``,
    ``MODEL_CAPABILITY_MISMATCH``, ``PROVIDER_AUTH_FAILED`` and ``CREDENTIAL_NAMESPACE_RESERVED``.
    Cancelling one closes its request.
    """

    def __init__(self, lookup: ProviderLookup, transport: Transport, ledger: UsageLedger) -> None:
        self._lookup = lookup
        self._transport = transport
        self._ledger = ledger

    async def embed(
        self,
        routed: RoutedModel,
        texts: Sequence[str],
        dimensions: int | None,
        *,
        source: str,
        seconds: float,
        retries: RetryPolicy | None = None,
    ) -> list[list[float]]:
        """Return a vector for each text, in order; *seconds* is the limit of each attempt.

        Raises ``EMBEDDING_DIMENSION_MISMATCH`` for vectors of another length than *dimensions*.
        """
        reached = await self._reach(routed)
        body = embedding_body(routed.model, texts, dimensions)
        body, _ = with_overrides(body, reached.provider.request_overrides, "embedding")
        repeats = 0
        while True:
            try:
                async with self._attempt(reached, routed, "embedding", source) as reported:
                    answer = await self._transport.post_json(
                        reached.upstream, routed.endpoint, body, seconds=seconds
                    )
                    _note(reported, used_of(answer))
                    return read_embeddings(answer, len(texts), dimensions)
            except UpstreamError as error:
                wait = wait_before_repeat(error, repeats, retries) if retries else None
                if wait is None:
                    raise
            repeats += 1
            await asyncio.sleep(wait)

    async def transcribe(
        self, routed: RoutedModel, recording: SoundFile, language: str | None, *, source: str
    ) -> TranscriptionAnswer:
        """Return the transcript of a recording; raises ``ATTACHMENT_TOO_LARGE`` before it is sent."""
        reached = await self._reach(routed)
        fields = _form_fields(
            reached, transcription_fields(routed.model, language), "transcription"
        )
        with _opened(recording) as file:
            async with self._attempt(reached, routed, "transcription", source) as reported:
                answer = await self._transport.post_multipart(
                    reached.upstream, routed.endpoint, fields, {"file": _part(recording, file)}
                )
                _note(reported, used_of(answer))
                return read_transcription(answer)

    async def match(
        self, routed: RoutedModel, recording: SoundFile, reference: SoundFile, *, source: str
    ) -> float:
        """Return how alike two voices are, from 0 to 1; raises ``ATTACHMENT_TOO_LARGE`` before it asks."""
        reached = await self._reach(routed)
        fields = _form_fields(reached, match_fields(routed.model), "speaker_matching")
        with _opened(recording) as file, _opened(reference) as reference_file:
            files = {
                "file": _part(recording, file),
                "reference_file": _part(reference, reference_file),
            }
            async with self._attempt(reached, routed, "speaker_matching", source) as reported:
                answer = await self._transport.post_multipart(
                    reached.upstream, routed.endpoint, fields, files, seconds=_MATCH_SECONDS
                )
                _note(reported, used_of(answer))
                return read_match(answer)

    async def _reach(self, routed: RoutedModel) -> _Reached:
        provider = await self._lookup.usable(routed.provider_id)
        if provider.provider_type not in ROUTABLE_TYPES:
            raise ProjectError(
                "MODEL_CAPABILITY_MISMATCH", details={"provider_id": routed.provider_id}
            )
        return _Reached(provider, await self._lookup.upstream(provider, routed.model))

    def _attempt(
        self, reached: _Reached, routed: RoutedModel, capability: RoutedCapability, source: str
    ) -> AbstractAsyncContextManager[Reported]:
        return self._ledger.attempt(
            source=source,
            capability=capability,
            provider_id=reached.provider.provider_id,
            provider_name=reached.provider.name,
            model=routed.model,
        )


def _note(reported: Reported, used: Used) -> None:
    reported.input_tokens = used.input_tokens
    reported.output_tokens = used.output_tokens
    reported.total_tokens = used.total_tokens
    reported.audio_seconds = used.audio_seconds


def _form_fields(
    reached: _Reached, fields: Mapping[str, Any], capability: RoutedCapability
) -> dict[str, str | list[str]]:
    """Return the fields with the provider's rules applied, as a form can carry them."""
    changed, _ = with_overrides(dict(fields), reached.provider.request_overrides, capability)
    return {
        name: [_text(item) for item in value] if isinstance(value, list) else _text(value)
        for name, value in changed.items()
        if value is not None
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _opened(recording: SoundFile) -> IO[bytes]:
    file = recording.path.open("rb")
    if os.fstat(file.fileno()).st_size > LARGEST_FILE:
        file.close()
        raise ProjectError("ATTACHMENT_TOO_LARGE")
    return file


def _part(recording: SoundFile, file: IO[bytes]) -> FilePart:
    return FilePart(recording.file_name, file, recording.mime_type)
