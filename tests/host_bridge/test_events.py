"""Reading event streams: the format, and what happens when connections break."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_bridge.errors import SidecarRequestError, SidecarUnavailableError
from host_bridge.event_reader import EventParser, ServerEvent
from tests.host_bridge.fake import LaunchFake

STREAM = (
    '\ufeff: comment\nretry: 1500\n\nid: 1\nevent: Started\ndata: {"a":1}\n\n'
    "data:first\ndata: second\r\n\r\nid:3\rdata: \u6b7b\u9501\r\revent: Lonely\n\n"
    "id: a\0b\nunknown: x\ndata\n\ndata: cut off"
).encode()
EVENTS = [
    ServerEvent("1", "Started", '{"a":1}'),
    ServerEvent("1", "message", "first\nsecond"),
    ServerEvent("3", "message", "\u6b7b\u9501"),
    ServerEvent("3", "message", ""),
]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_the_cuts_between_packets_do_not_matter(cuts: list[int]) -> None:
    parser = EventParser()
    borders = [0, *sorted(set(cuts)), len(STREAM)]
    events = [
        event
        for start, end in itertools.pairwise(borders)
        for event in parser.feed(STREAM[start:end])
    ]
    assert events == EVENTS
    assert parser.retry_seconds == 1.5
    assert parser.last_id == "3"


@given(st.binary(max_size=100))
def test_any_bytes_are_read(data: bytes) -> None:
    for event in EventParser().feed(data):
        assert isinstance(event.data, str)


def test_a_stream_is_followed_across_broken_connections(launch_fake: LaunchFake) -> None:
    events = list(launch_fake("good").events("/events"))
    assert [event.id for event in events] == ["1", "2", "3", "4", "5", "6"]
    assert {event.event for event in events} == {"Progress"}
    assert events[3].json() == {"sequence": 4, "text": "\u4f60\u597d"}


def test_a_stream_is_taken_up_behind_a_cursor(launch_fake: LaunchFake) -> None:
    events = launch_fake("good").events("/events", after=4)
    assert [event.id for event in events] == ["5", "6"]


def test_a_finished_stream_gives_nothing(launch_fake: LaunchFake) -> None:
    assert list(launch_fake("good").events("/events", after=6)) == []


def test_a_refused_stream_is_an_error(launch_fake: LaunchFake) -> None:
    with pytest.raises(SidecarRequestError, match="NOTE_NOT_FOUND"):
        list(launch_fake("good").events("/error"))


def test_a_stop_ends_the_following(launch_fake: LaunchFake) -> None:
    sidecar = launch_fake("good")
    events = sidecar.events("/events")
    assert next(events).id == "1"
    sidecar.stop()
    with pytest.raises(SidecarUnavailableError):
        list(events)


def test_a_stream_that_cannot_be_had_is_given_up(launch_fake: LaunchFake) -> None:
    with pytest.raises(SidecarUnavailableError):
        list(launch_fake("good").events("/hang-up", give_up_after=0.1))
