"""Calls of chat models, streamed or not, and of the lists of models."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.logging import get_logger
from sidecar.providers.calls.attempts import AttemptRecord, UsageRecorder
from sidecar.providers.calls.request_rules import with_overrides
from sidecar.providers.calls.retries import Repeats, RetryPolicy
from sidecar.providers.calls.streaming import (
    Draining,
    StreamControl,
    StreamedCall,
    done_event,
    error_event,
    model_events,
)
from sidecar.providers.calls.transport import Transport, Upstream
from sidecar.providers.failures import UpstreamError
from sidecar.providers.lookup import Configuration, ProviderLookup
from sidecar.providers.protocols.adapter import Adapter, ChatCall
from sidecar.providers.protocols.profiles import profile_of
from sidecar.providers.schemas.model_call import ChatTarget, ModelEvent, ModelReply, ModelRequest
from sidecar.providers.schemas.wire import ModelInfo, Provider

log = get_logger(__name__)

_LIST_SECONDS: Final = 30.0
_SHOWN_AT_ONCE: Final = 8
_MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class PreparedChat:
    """A call of a configuration, its body made."""

    adapter: Adapter
    call: ChatCall
    body: dict[str, Any]
    unplaced_rules: tuple[int, ...] = ()


def prepare_chat(
    configuration: Configuration,
    model: str,
    request: ModelRequest,
    *,
    stream: bool,
    max_output_tokens: int | None = None,
) -> PreparedChat:
    """Return a call with its body, the configuration's rules applied last."""
    from sidecar.providers.protocols.adapters import ADAPTERS  # noqa: PLC0415 - not needed before ready

    adapter = ADAPTERS[configuration.provider_type]
    base_url = configuration.base_url
    call = ChatCall.of(model, request, profile_of(base_url), max_output_tokens, base_url)
    body = adapter.chat_body(call, stream=stream)
    body, unplaced = with_overrides(body, configuration.request_overrides, "chat")
    return PreparedChat(adapter, call, body, tuple(unplaced))


class ModelCalls:
    """Makes calls and writes each attempt to the ledger."""

    def __init__(
        self,
        lookup: ProviderLookup,
        transport: Transport,
        recorder: UsageRecorder,
        retries: RetryPolicy,
    ) -> None:
        self._lookup = lookup
        self._transport = transport
        self._recorder = recorder
        self._retries = retries
        self._draining = Draining()
        self._open: set[StreamControl] = set()

    async def close(self) -> None:
        """Interrupt the streams that are open."""
        for control in tuple(self._open):
            control.interrupt()
        await self._draining.close()

    async def stream(
        self, target: ChatTarget, request: ModelRequest, control: StreamControl | None
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of a call of a stored provider."""
        try:
            provider = await self._lookup.usable(target.provider_id)
        except ProjectError as error:
            yield error_event(error)
            yield done_event("failed")
            return
        record = self._record(request.source, provider, target.model)
        events = self.stream_of(provider, target, request, record, control)
        async with aclosing(events):
            async for event in events:
                yield event

    async def stream_of(
        self,
        configuration: Configuration,
        target: ChatTarget,
        request: ModelRequest,
        record: AttemptRecord,
        control: StreamControl | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of a call of a configuration, stored or not."""
        if configuration.provider_type == "mock":
            from sidecar.providers.calls.mock import mock_events  # noqa: PLC0415

            for event in mock_events(request):
                yield event
            return
        control = control or StreamControl()
        self._open.add(control)
        try:
            try:
                prepared = prepare_chat(
                    configuration,
                    target.model,
                    request,
                    stream=True,
                    max_output_tokens=target.max_output_tokens,
                )
                upstream = await self._lookup.upstream(configuration, target.model)
            except ProjectError as error:
                yield error_event(error)
                yield done_event("failed")
                return
            streamed = StreamedCall(
                prepared.adapter, prepared.call, upstream, prepared.body, record
            )
            events = model_events(streamed, self._transport, control, self._draining, self._retries)
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._open.discard(control)

    async def complete(self, target: ChatTarget, request: ModelRequest) -> ModelReply:
        """Return the whole answer of a stored provider; raises :class:`ProjectError`."""
        provider = await self._lookup.usable(target.provider_id)
        record = self._record(request.source, provider, target.model)
        return await self.complete_of(provider, target, request, record)

    async def complete_of(
        self,
        configuration: Configuration,
        target: ChatTarget,
        request: ModelRequest,
        record: AttemptRecord,
    ) -> ModelReply:
        """Return the whole answer of a configuration, stored or not; raises :class:`ProjectError`."""
        if configuration.provider_type == "mock":
            from sidecar.providers.calls.mock import mock_reply  # noqa: PLC0415

            return mock_reply(request)
        prepared = prepare_chat(
            configuration,
            target.model,
            request,
            stream=False,
            max_output_tokens=target.max_output_tokens,
        )
        upstream = await self._lookup.upstream(configuration, target.model)
        repeats = Repeats(prepared.body, self._retries)
        while True:
            record.begin()
            try:
                answer = await self._transport.post_json(
                    upstream, prepared.adapter.chat_path, repeats.body
                )
                reply = _reply(prepared, answer)
            except UpstreamError as error:
                error.details = {**upstream.about, **error.details}
                await record.failed(error)
                wait = repeats.wait_after(error)
                if wait is None:
                    raise
            except asyncio.CancelledError:
                await record.cancelled()
                raise
            else:
                await record.completed(reply.usage)
                return reply
            await asyncio.sleep(wait)

    async def list_models(self, configuration: Configuration) -> list[ModelInfo]:
        """Return the models that a provider lists now; raises :class:`ProjectError`."""
        from sidecar.providers.calls.mock import mock_models  # noqa: PLC0415
        from sidecar.providers.protocols.adapters import ADAPTERS  # noqa: PLC0415 - not needed before ready
        from sidecar.providers.protocols.ollama import Ollama  # noqa: PLC0415

        self._lookup.check(configuration)
        if configuration.provider_type == "mock":
            return mock_models()
        adapter = ADAPTERS[configuration.provider_type]
        upstream = await self._lookup.upstream(configuration)
        answer = await self._transport.get_json(
            upstream, adapter.models_path, seconds=_LIST_SECONDS
        )
        try:
            found = adapter.models(_object(answer), profile_of(configuration.base_url))
        except UpstreamError as error:
            error.details = {**upstream.about, **error.details}
            raise
        return await self._with_details(upstream, found) if isinstance(adapter, Ollama) else found

    async def _with_details(self, upstream: Upstream, found: list[ModelInfo]) -> list[ModelInfo]:
        """Ask what each model can do, a few at a time; a model that isn't shown stays as listed."""
        from sidecar.providers.protocols.ollama import SHOW_PATH, with_details  # noqa: PLC0415

        path, few = SHOW_PATH, asyncio.Semaphore(_SHOWN_AT_ONCE)

        async def shown(model: ModelInfo) -> ModelInfo:
            async with few:
                try:
                    told = await self._transport.post_json(
                        upstream, path, {"model": model.model}, seconds=_LIST_SECONDS
                    )
                except UpstreamError:
                    return model
            return with_details(model, told)

        details = await asyncio.gather(*map(shown, found[:_MOST_SHOWN]))
        return [*details, *found[_MOST_SHOWN:]]

    def _record(self, source: str, provider: Provider, model: str) -> AttemptRecord:
        return AttemptRecord(self._recorder, source, provider.provider_id, provider.name, model)


def _object(answer: Any) -> dict[str, Any]:
    if isinstance(answer, list):
        # A list without the object around it.
        return {"data": answer}
    if not isinstance(answer, dict):
        raise UpstreamError("PROVIDER_INVALID_RESPONSE", {})
    return answer


def _reply(prepared: PreparedChat, answer: Any) -> ModelReply:
    if not isinstance(answer, dict):
        raise UpstreamError("PROVIDER_INVALID_RESPONSE", {})
    try:
        return prepared.adapter.reply(prepared.call, answer)
    except ProjectError:
        raise
    except Exception as error:
        log.exception("provider.answer_not_understood")
        raise UpstreamError("PROVIDER_INVALID_RESPONSE", {}) from error
