"""Every stream of resource events: frames, cursors, replay and live, and its end."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.kernel.http import sse
from tests.protocol.conftest import Answers
from tests.protocol.frames import Frame, open_stream, replay
from tests.protocol.jobs import Jobs
from tests.protocol.live import Hold, LiveApp, error_of
from tests.protocol.operations import BY_NAME, KINDS, STREAMS, Operation
from tests.protocol.specimens import OTHER_STREAMS, SHOWN_JOBS
from tests.protocol.test_specimens import UTC, check_times

every_stream = pytest.mark.parametrize("operation", STREAMS, ids=str)

STREAMING = [
    kind
    for kind in sorted(SHOWN_JOBS)
    if f"GET {SHOWN_JOBS[kind].collection}/{{job_id}}/events" in BY_NAME
]
TERMINAL_NAMES = {
    ("Completed", "Failed", "Cancelled"),
    ("RunCompleted", "RunFailed", "RunCancelled"),
}
ENVELOPE = {"sequence", "resource_id", "data", "timestamp"}


@pytest.fixture(params=STREAMING)
def jobs(request: pytest.FixtureRequest, app: LiveApp) -> Jobs:
    return Jobs(app, request.param)


@pytest.fixture
def hold(app: LiveApp, jobs: Jobs) -> Iterator[Hold]:
    jobs.completed()
    with app.holding(jobs.kind) as held:
        yield held


def test_every_stream_belongs_to_jobs_that_are_tried() -> None:
    paths = {f"{SHOWN_JOBS[kind].collection}/{{job_id}}/events" for kind in STREAMING}
    paths |= OTHER_STREAMS
    assert {operation.path for operation in STREAMS} == paths
    assert {o.path for o in BY_NAME.values() if o.path.endswith("/events")} == paths


@pytest.mark.proves("protocol.sse.terminal-names")
def test_names_of_terminal_events() -> None:
    for kind in (KINDS[name] for name in SHOWN_JOBS):
        names = (kind.completed_event, kind.failed_event, kind.cancelled_event)
        assert names in TERMINAL_NAMES and names == SHOWN_JOBS[kind.name].terminal_events


def check_frame(frame: Frame, resource_id: str) -> None:
    """Check the one form of a frame."""
    fields = [line.partition(": ")[0] for line in frame.lines]
    assert fields == ["id", "event", "data"], frame.raw
    envelope = frame.envelope
    assert set(envelope) == ENVELOPE
    assert type(envelope["sequence"]) is int and frame.value("id") == str(envelope["sequence"])
    assert envelope["resource_id"] == resource_id
    assert isinstance(envelope["data"], dict)
    assert UTC.fullmatch(envelope["timestamp"])
    check_times(envelope)


@pytest.mark.proves(
    "protocol.sse.headers",
    "protocol.sse.frame",
    "protocol.sse.id-is-sequence",
    "protocol.sse.data-fields",
    "protocol.cursor.monotonic",
    "protocol.time.utc-iso8601",
)
def test_headers_and_frames(jobs: Jobs) -> None:
    job_id = jobs.completed()["job_id"]
    with open_stream(jobs.app.session, jobs.events_path(job_id)) as stream:
        headers = stream.response.headers
        assert headers["content-type"] in ("text/event-stream", "text/event-stream; charset=utf-8")
        assert headers["cache-control"] in ("no-cache", "no-store")
        assert "content-encoding" not in headers
        frames = list(stream.events())
    for frame in frames:
        check_frame(frame, job_id)
    sequences = [frame.sequence for frame in frames]
    assert sequences == sorted(set(sequences))


@pytest.mark.proves(
    "protocol.sse.finished-resource",
    "protocol.sse.one-terminal",
    "protocol.sse.ends-after-terminal",
    "protocol.sse.terminal-names",
)
def test_stream_of_a_finished_resource(jobs: Jobs) -> None:
    job = jobs.completed()
    frames = replay(jobs.app.session, jobs.events_path(job["job_id"]))
    stored = jobs.stored_events(job["job_id"])
    assert [(f.sequence, f.event, f.data) for f in frames] == [
        (e.sequence, e.event, e.wire_data()) for e in stored
    ]
    terminal = [frame for frame in frames if frame.event in jobs.specimen.terminal_events]
    assert terminal == [frames[-1]]
    assert frames[-1].event == "Completed" and frames[-1].data["status"] == job["status"]


@pytest.mark.proves(
    "protocol.sse.last-event-id",
    "protocol.sse.after-sequence",
    "protocol.sse.header-wins",
    "protocol.cursor.strictly-greater",
)
def test_cursors(jobs: Jobs) -> None:
    path, client = jobs.events_path(jobs.completed()["job_id"]), jobs.app.session
    frames = replay(client, path)
    assert len(frames) >= 3
    for index, frame in enumerate(frames[:-1]):
        rest = frames[index + 1 :]
        assert replay(client, path, after=frame.sequence) == rest
        assert replay(client, path, last_event_id=frame.sequence) == rest
        assert replay(client, path, last_event_id=frame.sequence, after=0) == rest
        assert replay(client, path, last_event_id=frame.sequence, after="x") == rest
        assert replay(client, path, last_event_id="", after=frame.sequence) == rest
    assert replay(client, path, after="") == replay(client, path, after=0) == frames


@pytest.mark.proves("protocol.sse.cursor-at-terminal")
def test_cursor_at_the_terminal_event(jobs: Jobs) -> None:
    path = jobs.events_path(jobs.completed()["job_id"])
    last = str(replay(jobs.app.session, path)[-1].sequence)
    for answer in (
        jobs.app.session.get(path, params={"after_sequence": last}),
        jobs.app.session.get(path, headers={"Last-Event-ID": last}),
    ):
        assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.proves("protocol.cursor.invalid", "protocol.cursor.future", "protocol.status.400")
@every_stream
def test_cursors_that_cannot_be(answers: Answers, operation: Operation) -> None:
    request, answer = answers.of(operation)
    last = max(json.loads(line[4:]) for line in answer.text.splitlines() if line[:4] == "id: ")
    path = operation.address(request.path)
    for cursor in ("-1", "abc", "1.5", "1e3", " ", "0x1", "१", "9" * 30, str(last + 1), "+1"):
        for options in (
            {"params": {"after_sequence": cursor}},
            {"headers": {"Last-Event-ID": cursor}},
        ):
            if "headers" in options and not (cursor.isascii() and cursor.strip()):
                # No header can hold this.
                continue
            answer = answers.client(operation).get(path, **options)  # type: ignore[arg-type]
            assert answer.status_code == 400, (cursor, answer.text)
            assert error_of(answer)["code"] == "TRACE_CURSOR_INVALID"


@pytest.mark.proves("protocol.sse.not-found")
@pytest.mark.parametrize("operation", [o for o in STREAMS if o.parameters("path")], ids=str)
def test_stream_of_an_unknown_resource(answers: Answers, operation: Operation) -> None:
    for query in ({}, {"after_sequence": "1"}):
        answer = answers.client(operation).get(operation.address(), params=query)
        assert answer.status_code == 404
        assert error_of(answer)["code"] in operation.codes(404)


@pytest.mark.proves(
    "protocol.sse.replay-then-live", "protocol.sse.headers", "protocol.sse.ends-after-terminal"
)
def test_replay_then_live(app: LiveApp, jobs: Jobs, hold: Hold) -> None:
    job_id = jobs.new()["job_id"]
    context = hold.running(job_id)
    for number in range(3):
        app.call(context.emit("Step", {"number": number}))
    with open_stream(app.session, jobs.events_path(job_id)) as stream:
        assert [frame.event for frame in stream.take(4)] == ["Queued", "Step", "Step", "Step"]
        for number in range(3, 6):
            # Each one is there before the next one happens.
            app.call(context.emit("Step", {"number": number}))
            assert stream.take(1)[0].data == {"number": number}
        jobs.cancel(job_id)
        assert [frame.event for frame in stream.events()] == ["Cancelled"]


@pytest.mark.proves("protocol.sse.replay-then-live", "protocol.sse.disconnect-harmless")
def test_nothing_is_lost_while_events_are_appended(app: LiveApp, jobs: Jobs, hold: Hold) -> None:
    job_id = jobs.new()["job_id"]
    context = hold.running(job_id)
    followers, count = 6, 400
    half_way = threading.Event()

    async def append() -> None:
        for number in range(count):
            await context.emit("Step", {"number": number})
            if number == count // 2:
                half_way.set()

    def follow(index: int) -> list[int]:
        if index % 2:
            assert half_way.wait(20)
        with httpx.Client(base_url=app.app.base_url, headers=app.session.headers) as client:
            frames = replay(client, jobs.events_path(job_id))
        return [frame.data["number"] for frame in frames if frame.event == "Step"]

    with ThreadPoolExecutor(followers) as pool:
        following = [pool.submit(follow, index) for index in range(followers)]
        app.call(append())
        jobs.cancel(job_id)
        for future in following:
            assert future.result(30) == list(range(count))


@pytest.mark.proves("protocol.sse.disconnect-harmless")
def test_leaving_followers_harm_nobody(app: LiveApp, jobs: Jobs, hold: Hold) -> None:
    job_id = jobs.new()["job_id"]
    context = hold.running(job_id)
    path = jobs.events_path(job_id)
    with open_stream(app.session, path) as staying:
        staying.take(1)
        for number in range(5):
            with open_stream(app.session, path) as leaving:
                leaving.take(1)
            app.call(context.emit("Step", {"number": number}))
            assert jobs.get(job_id)["status"] == "running"
        hold.release(job_id, jobs.outcome())
        assert jobs.ended(job_id)["status"] == "completed"
        events = [frame.event for frame in staying.events()]
    assert events[:5] == ["Step"] * 5 and events[-1] == "Completed"


@pytest.mark.proves("protocol.jobs.event-matches-state")
@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_reader_of_the_terminal_event_finds_the_state(
    app: LiveApp, jobs: Jobs, hold: Hold, state: str
) -> None:
    outcome = jobs.outcome()
    job_id = jobs.new()["job_id"]
    hold.running(job_id)
    with open_stream(app.session, jobs.events_path(job_id)) as stream:
        if state == "cancelled":
            jobs.cancel(job_id)
        else:
            hold.release(job_id, RuntimeError() if state == "failed" else outcome)
        for frame in stream.events():
            if frame.event in jobs.specimen.terminal_events:
                assert jobs.get(job_id)["status"] == state == frame.data["status"]
                break
        else:
            pytest.fail("no terminal event")


@pytest.mark.proves("protocol.sse.heartbeat-comment", "protocol.sse.heartbeat-interval")
def test_heartbeat(app: LiveApp, jobs: Jobs, hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sse.HEARTBEAT_SECONDS < 15
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    job_id = jobs.new()["job_id"]
    context = hold.running(job_id)
    before = jobs.stored_events(job_id)
    with open_stream(app.session, jobs.events_path(job_id)) as stream:
        sequence = stream.take(1)[0].sequence
        for _ in range(3):
            beat = stream.next_frame()
            assert beat.is_comment and all(line.startswith(":") for line in beat.lines)
        assert jobs.stored_events(job_id) == before
        app.call(context.emit("Step", {}))
        assert stream.take(1)[0].sequence == sequence + 1


TEXTS = st.text(
    st.one_of(
        st.sampled_from('\r\n\0\u2028\u2029\u0085\x0b\x0c\x1e\ufeff:\\"</\u00a0\U0001f600'),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
)


@pytest.mark.proves("protocol.sse.frame-safe", "protocol.json.utf-8")
@given(
    tree=st.dictionaries(
        TEXTS,
        st.recursive(
            TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5
        ),
        max_size=4,
    )
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_text_breaks_a_frame(app: LiveApp, jobs: Jobs, hold: Hold, tree: dict[str, Any]) -> None:
    job_id = app.once(f"texts {id(hold)}", lambda _: str(jobs.new()["job_id"]))
    context = hold.running(job_id)
    app.call(context.emit("Text", {"tree": tree}))
    last = jobs.stored_events(job_id)[-1]
    with open_stream(app.session, jobs.events_path(job_id), after=last.sequence - 1) as stream:
        frame = stream.next_frame()
    check_frame(frame, job_id)
    assert frame.data == {"tree": tree} == last.data
    # A reader that takes more characters for the end of a line sees the same three lines.
    assert len(frame.raw.decode("utf-8").splitlines()) == 3
