"""Tries configurations out, and shows what would be sent for them. Nothing of it is stored."""

import asyncio
import time
from contextlib import aclosing
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.redaction import redactor
from sidecar.providers.calls.attempts import AttemptRecord, UsageRecorder
from sidecar.providers.calls.chat import ModelCalls, prepare_chat
from sidecar.providers.calls.request_rules import with_overrides
from sidecar.providers.failures import UpstreamError
from sidecar.providers.lookup import ProviderLookup, capabilities_of
from sidecar.providers.protocols.openai_models import (
    embedding_body,
    match_fields,
    transcription_fields,
)
from sidecar.providers.schemas.model_call import ChatTarget, Message, ModelRequest
from sidecar.providers.schemas.wire import (
    Preview,
    PreviewRequest,
    ProbeResult,
    ProviderCreateRequest,
    ProviderTestResult,
)

PROBE_SECONDS: Final = 45.0
TEST_SECONDS: Final = 30.0
PROBE_TEXT: Final = "Reply with the single word: OK"
HIDDEN: Final = "[hidden]"
# A model that thinks first needs room for that, too.
_PROBE_TOKENS: Final = 1024
_TEST_TOKENS: Final = 16
_SHOWN_CHARACTERS: Final = 2000

# What is wrong with the request itself, or here; a test tells of anything else as its result.
_OURS: Final = ("VALIDATION_ERROR", "CREDENTIAL_NAMESPACE_RESERVED", "CREDENTIAL_STORE_ERROR")


class ProviderChecks:
    """Tests, probes and previews."""

    def __init__(
        self,
        lookup: ProviderLookup,
        calls: ModelCalls,
        recorder: UsageRecorder,
        *,
        probe_seconds: float = PROBE_SECONDS,
    ) -> None:
        self._lookup = lookup
        self._calls = calls
        self._recorder = recorder
        self._probe_seconds = probe_seconds

    async def test(self, configuration: ProviderCreateRequest) -> ProviderTestResult:
        """Call the provider for real: its default model, or its list of models where none is named."""
        self._lookup.check(configuration)
        began = time.monotonic()
        model = configuration.default_model
        failure: ProjectError | None = None
        try:
            async with asyncio.timeout(TEST_SECONDS):
                if model is not None and "chat" in capabilities_of(configuration):
                    request = _request(_TEST_TOKENS)
                    target = _target(configuration, model)
                    record = self._record(configuration, model)
                    await self._calls.complete_of(configuration, target, request, record)
                else:
                    models = await self._calls.list_models(configuration)
                    model = model or next((item.model for item in models), None)
        except TimeoutError:
            failure = UpstreamError("PROVIDER_TIMEOUT", {})
        except ProjectError as error:
            if error.code in _OURS:
                raise
            failure = error
        return ProviderTestResult(
            success=failure is None,
            model=model,
            duration_ms=round((time.monotonic() - began) * 1000),
            error_code=failure.code if failure else None,
            message=failure.message() if failure else None,
        )

    async def probe(self, configuration: ProviderCreateRequest, *, stream: bool) -> ProbeResult:
        """Have a short conversation with the default model.

        Whatever the provider does wrong is raised with status 502, running out of time with 504, and
        an answer without content as ``PROVIDER_EMPTY_RESPONSE`` with 422.
        """
        self._lookup.check(configuration)
        model = configuration.default_model
        if model is None:
            raise _missing_model()
        request, record = _request(_PROBE_TOKENS), self._record(configuration, model)
        target = _target(configuration, model)
        try:
            async with asyncio.timeout(self._probe_seconds):
                if stream:
                    content = await self._streamed(configuration, target, request, record)
                else:
                    reply = await self._calls.complete_of(configuration, target, request, record)
                    content = reply.content
        except TimeoutError:
            raise UpstreamError("PROVIDER_TIMEOUT", {"model": model}) from None
        except ProjectError as error:
            if error.code not in _OURS:
                error.status = 504 if error.code == "PROVIDER_TIMEOUT" else 502
            raise
        if not content.strip():
            raise ProjectError("PROVIDER_EMPTY_RESPONSE", details={"model": model})
        shown = redactor.text(content.strip()[:_SHOWN_CHARACTERS])
        return ProbeResult(success=True, stream=stream, model=model, message=shown)

    async def _streamed(
        self,
        configuration: ProviderCreateRequest,
        target: ChatTarget,
        request: ModelRequest,
        record: AttemptRecord,
    ) -> str:
        parts = []
        events = self._calls.stream_of(configuration, target, request, record)
        async with aclosing(events):
            async for event in events:
                if event.event == "TextDelta":
                    parts.append(event.data["text"])
                elif event.event == "Error":
                    raise ProjectError(event.data["code"], details=event.data["details"])
        return "".join(parts)

    def preview(self, request: PreviewRequest) -> Preview:
        """Return the body of a request, its content hidden; nothing is sent and no key is looked up."""
        configuration = request.provider
        self._lookup.check(configuration)
        body, unplaced = _body(request)
        # Rules are the user's words too, and may hold a key by mistake.
        return Preview(
            capability=request.capability, body=redactor.value(body), unplaced_rules=unplaced
        )

    def _record(self, configuration: ProviderCreateRequest, model: str) -> AttemptRecord:
        return AttemptRecord(self._recorder, "probe", None, configuration.name, model)


def _body(request: PreviewRequest) -> tuple[dict[str, Any], list[int]]:
    configuration, capability = request.provider, request.capability
    model = configuration.default_model or HIDDEN
    if capability == "chat":
        asked = ModelRequest((Message("system", HIDDEN), Message("user", HIDDEN)))
        prepared = prepare_chat(configuration, model, asked, stream=request.stream)
        return prepared.body, list(prepared.unplaced_rules)
    if configuration.provider_type not in ("openai_chat", "openai_compatible"):
        raise ProjectError("MODEL_CAPABILITY_MISMATCH", details={"capability": capability})
    bodies: dict[str, dict[str, Any]] = {
        "embedding": embedding_body(model, [HIDDEN], None),
        "transcription": {**transcription_fields(model, None), "file": HIDDEN},
        "speaker_matching": {**match_fields(model), "file": HIDDEN, "reference_file": HIDDEN},
    }
    return with_overrides(bodies[capability], configuration.request_overrides, capability)


def _request(most_tokens: int) -> ModelRequest:
    return ModelRequest(
        (Message("user", PROBE_TEXT),), max_output_tokens=most_tokens, source="probe"
    )


def _target(configuration: ProviderCreateRequest, model: str) -> ChatTarget:
    return ChatTarget("", configuration.name, model, capabilities_of(configuration))


def _missing_model() -> ProjectError:
    error = {"loc": ["body", "provider", "default_model"], "message": "A model is needed."}
    return ProjectError("VALIDATION_ERROR", details={"errors": [error]})
