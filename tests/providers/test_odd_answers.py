"""Answers with any part replaced by something else: understood, or refused as invalid, and never a failure of ours."""

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.providers.failures import UpstreamError
from sidecar.providers.protocols.adapter import ChatCall
from sidecar.providers.protocols.adapters import ADAPTERS
from sidecar.providers.protocols.frames import Frame
from sidecar.providers.protocols.profiles import DEFAULT, PROFILES
from sidecar.providers.schemas.model_call import ModelEvent, ModelReply
from tests.fakes.upstream import Call, Turn
from tests.providers.bench import PROTOCOLS, SEARCHING, fake

TURN = Turn(
    text=["好", "的"],
    thinking=["想"],
    calls=[Call("a", "rag_search", ['{"q"', ": 1}"]), Call("b", "rag_search", ["{}"])],
    usage=(2, 3),
)
ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**30, "", "x", "\ud83c", "\0", [], [None], [[]], {}, {"a": 1}),
    *([{"index": "0"}], [{"function": None}], {"type": 7}, {"error": 1}, [1, "x", {}]),
]


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [place]
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            found += places(item, (*place, key))
    return found


def replaced(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    if not place:
        return copy.deepcopy(odd)
    changed = copy.deepcopy(value)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = copy.deepcopy(odd)
    return changed


def check_event(event: ModelEvent) -> None:
    """What comes out can be sent on."""
    json.dumps(event.data, allow_nan=False, ensure_ascii=False).encode("utf-8")
    if event.event in ("TextDelta", "ThinkingDelta"):
        assert event.data["text"]
    if event.event == "ToolCallEnd":
        assert isinstance(event.data["arguments"], dict) and event.data["tool_call_id"]


@pytest.mark.proves("providers.stream.invalid-response")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_streamed_answer_with_an_odd_part(protocol: str, data: st.DataObject) -> None:
    adapter = ADAPTERS[fake(protocol).PROVIDER_TYPE]
    profile = data.draw(st.sampled_from([DEFAULT, *PROFILES]))
    frames = fake(protocol).frames(TURN)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(frames) - 1))
        place = data.draw(st.sampled_from(places(frames[at])))
        frames[at] = replaced(frames[at], place, data.draw(st.sampled_from(ODD)))
    decoder = adapter.decoder(ChatCall.of("m", SEARCHING, profile))
    # Any other exception fails the test.
    with contextlib.suppress(UpstreamError):
        for frame in frames:
            for event in decoder.decode(Frame(json.dumps(frame))):
                check_event(event)
            if decoder.ended:
                break
        for event in decoder.finish():
            check_event(event)


def check_reply(reply: ModelReply) -> None:
    f"{reply.content}{reply.reasoning_content}".encode()
    assert reply.reasoning_content != ""
    for call in reply.tool_calls:
        assert isinstance(call.arguments, dict)
        call.arguments_text().encode()


@pytest.mark.proves("providers.errors.invalid-response")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_whole_answer_with_an_odd_part(protocol: str, data: st.DataObject) -> None:
    adapter = ADAPTERS[fake(protocol).PROVIDER_TYPE]
    answer = json.loads(b"".join(fake(protocol).whole(TURN).pieces))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([place for place in places(answer) if place]))
        answer = replaced(answer, place, data.draw(st.sampled_from(ODD)))
    with contextlib.suppress(UpstreamError):
        check_reply(adapter.reply(ChatCall.of("m", SEARCHING, DEFAULT), answer))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_list_of_models_with_an_odd_part(protocol: str, data: st.DataObject) -> None:
    adapter = ADAPTERS[fake(protocol).PROVIDER_TYPE]
    profile = data.draw(st.sampled_from([DEFAULT, *PROFILES]))
    names = (
        "id",
        "name",
        "model",
        "context_length",
        "capabilities",
        "architecture",
        "meta",
        "details",
    )
    item = {name: data.draw(st.sampled_from([*ODD, "m"])) for name in names}
    answer = {"data": [item], "models": [item]}
    place = data.draw(st.sampled_from([place for place in places(answer) if place]))
    answer = replaced(answer, place, data.draw(st.sampled_from(ODD)))
    with contextlib.suppress(UpstreamError):
        for model in adapter.models(answer, profile):
            model.model_dump_json()
            assert model.model and model.display_name
