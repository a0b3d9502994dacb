"""The line protocol: what is read, what is refused, and that nothing is repeated."""

import base64
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_bridge.protocol import (
    FIRST_LINE_LIMIT,
    FatalMessage,
    HandshakeInvalid,
    ProtocolViolation,
    ReadyMessage,
    SessionSettings,
    ShutdownRequest,
    is_strong_token,
    new_token,
    parse_event,
    parse_request,
)

SECRET = "s3cret-" + "A" * 40
tokens = st.binary(min_size=32, max_size=80).map(
    lambda raw: base64.urlsafe_b64encode(raw).decode("ascii")
)
plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
paths = plain_text.filter(lambda text: bool(text.strip()))


def line_of(**settings: object) -> bytes:
    return json.dumps(settings).encode("utf-8") + b"\n"


@given(
    st.none() | tokens,
    st.none() | tokens,
    st.none() | st.integers(1, 2**32 - 1),
    st.none() | plain_text,
    st.none() | paths,
)
def test_settings_survive_the_line(
    session: str | None, host: str | None, pid: int | None, locale: str | None, path: str | None
) -> None:
    if session is not None and host is not None and session.rstrip("=") == host.rstrip("="):
        return
    settings = SessionSettings(session, host, pid, locale, data_dir=path, vault_path=path)
    line = settings.to_line()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert SessionSettings.from_line(line) == (settings, ())


@given(st.binary(max_size=200))
def test_any_bytes_give_settings_or_a_refusal(line: bytes) -> None:
    try:
        settings, _ = SessionSettings.from_line(line)
    except HandshakeInvalid:
        return
    assert isinstance(settings, SessionSettings)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
known_names = st.sampled_from(list(SessionSettings.__dataclass_fields__))


@given(st.dictionaries(known_names | st.text(max_size=8), json_values, max_size=7))
def test_any_object_gives_typed_settings_or_a_refusal(given_settings: dict[str, Any]) -> None:
    try:
        settings, unknown = SessionSettings.from_line(line_of(**given_settings))
    except HandshakeInvalid:
        return
    assert set(unknown) == set(given_settings) - set(SessionSettings.__dataclass_fields__)
    assert settings.host_pid is None or type(settings.host_pid) is int
    for name in ("session_token", "host_token", "locale", "data_dir", "vault_path", "log_level"):
        assert isinstance(getattr(settings, name), str | None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff\xfe{}\n", "line_not_utf8"),
        (b"\n", "line_not_json"),
        (b"", "line_not_json"),
        (b"{} {}\n", "line_not_json"),
        (b"[" * 40000, "line_not_json"),
        (b'{"host_pid": ' + b"9" * 6000 + b"}", "line_not_json"),
        (b"[]\n", "line_not_object"),
        (b'"text"\n', "line_not_object"),
        (b'{"a": "' + b"x" * FIRST_LINE_LIMIT + b'"}\n', "line_too_long"),
        (line_of(session_token=5), "setting_type"),
        (line_of(host_pid="5"), "setting_type"),
        (line_of(host_pid=True), "setting_type"),
        (line_of(host_pid=1.0), "setting_type"),
        (line_of(host_pid=0), "setting_type"),
        (line_of(locale=["en"]), "setting_type"),
        (line_of(data_dir={}), "setting_type"),
        (line_of(data_dir=""), "setting_empty"),
        (line_of(vault_path=" "), "setting_empty"),
        (line_of(data_dir="a\0b"), "setting_text"),
        (line_of(data_dir="a\ud800b"), "setting_text"),
        (line_of(session_token=""), "token_weak"),
        (line_of(session_token="A" * 42), "token_weak"),
        (line_of(session_token="A" * 45), "token_weak"),
        (line_of(session_token="A" * 43 + "=="), "token_weak"),
        (line_of(session_token="A" * 43 + "\n"), "token_weak"),
        (line_of(session_token="A" * 42 + "+"), "token_weak"),
        (line_of(session_token="\u0391" * 43), "token_weak"),
        (line_of(session_token="A" * 43, host_token="A" * 43), "tokens_equal"),
        (line_of(session_token="A" * 43, host_token="A" * 43 + "="), "tokens_equal"),
    ],
)
def test_a_bad_first_line_is_refused_with_its_reason(line: bytes, reason: str) -> None:
    with pytest.raises(HandshakeInvalid) as caught:
        SessionSettings.from_line(line)
    assert caught.value.reason_key == reason


@pytest.mark.parametrize(
    "line",
    [
        f'{{"session_token": "{SECRET}", oops}}\n'.encode(),
        line_of(session_token=SECRET + "!"),
        line_of(session_token=SECRET, host_token=SECRET),
        line_of(locale=[SECRET]),
        f'["{SECRET}"]'.encode(),
    ],
)
def test_a_refusal_never_repeats_the_line(line: bytes) -> None:
    with pytest.raises(HandshakeInvalid) as caught:
        SessionSettings.from_line(line)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in f"{error!r} {error} {vars(error)}"
        error = error.__cause__


def test_a_line_of_exactly_the_limit_is_read() -> None:
    line = b'{"a":"' + b"x" * (FIRST_LINE_LIMIT - 8) + b'"}'
    assert len(line) == FIRST_LINE_LIMIT
    assert SessionSettings.from_line(line + b"\r\n") == (SessionSettings(), ("a",))


def test_unknown_fields_are_named_and_null_is_absent() -> None:
    settings, unknown = SessionSettings.from_line(line_of(theme="dark", locale=None, accent=1))
    assert settings == SessionSettings()
    assert unknown == ("accent", "theme")


def test_a_byte_order_mark_is_skipped() -> None:
    assert SessionSettings.from_line(b"\xef\xbb\xbf{}\r\n") == (SessionSettings(), ())


def test_a_path_of_raw_bytes_survives() -> None:
    path = os.fsdecode(b"/tmp/\xe4")
    assert SessionSettings.from_line(SessionSettings(data_dir=path).to_line())[0].data_dir == path


def test_new_tokens_are_strong_and_differ() -> None:
    made = {new_token() for _ in range(50)}
    assert len(made) == 50
    assert all(is_strong_token(token) and len(token) >= 43 for token in made)


@given(tokens)
def test_tokens_are_taken_with_and_without_padding(token: str) -> None:
    assert is_strong_token(token)
    assert is_strong_token(token.rstrip("="))


def test_no_repr_shows_a_token() -> None:
    settings = SessionSettings(SECRET, SECRET + "x")
    ready = ReadyMessage(1, 2, "1.0", "http://127.0.0.1:1", SECRET, SECRET)
    assert "s3cret" not in f"{settings!r} {settings} {ready!r} {ready}"


def test_events_survive_the_line() -> None:
    ready = ReadyMessage(8123, 77, "1.2.3", "http://127.0.0.1:8123")
    assert parse_event(ready.to_line()) == ready
    assert json.loads(ready.to_line()) == {
        "event": "ready",
        "protocol": 1,
        "port": 8123,
        "pid": 77,
        "version": "1.2.3",
        "base_url": "http://127.0.0.1:8123",
    }
    own = ReadyMessage(1, 2, "1", "u", new_token(), new_token())
    assert parse_event(own.to_line()) == own
    fatal = FatalMessage("PORT_IN_USE", "\u7aef\u53e3 8123\nis taken")
    assert fatal.to_line().count(b"\n") == 1
    assert parse_event(fatal.to_line()) == fatal


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"hello\n", "line_not_json"),
        (line_of(event="started"), "event_unknown"),
        (line_of(event="fatal", code=1, message="m"), "event_fields"),
        (line_of(event="ready", protocol=2), "protocol_version"),
        (
            line_of(event="ready", protocol=1, port="1", pid=1, version="", base_url=""),
            "event_fields",
        ),
        (
            line_of(
                event="ready", protocol=1, port=1, pid=1, version="", base_url="", session_token=1
            ),
            "event_fields",
        ),
    ],
)
def test_a_bad_event_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parse_event(line)
    assert caught.value.reason_key == reason


def test_requests_after_the_first_line() -> None:
    assert parse_request(ShutdownRequest().to_line()) == ShutdownRequest()
    with pytest.raises(ProtocolViolation):
        parse_request(b'{"type":"dance"}\n')
    with pytest.raises(ProtocolViolation):
        parse_request(b"shutdown\n")


def test_the_module_imports_nothing_heavy() -> None:
    code = (
        "import sys; import host_bridge.protocol; "
        "print(sorted({'asyncio','http','pydantic','subprocess','email'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert result.stdout.strip() == "[]"
