"""The first line: settings, tokens, and what is refused."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from host_bridge.protocol import FIRST_LINE_LIMIT, new_token
from sidecar.kernel.catalogue import FATAL
from tests.host.conftest import Start
from tests.host.serving import Serving, Tokens, eventually

CANARY = "canary-5c0ffee"


@pytest.mark.proves("host.start.serve", "host.start.protocol-version")
def test_the_first_line_is_read_and_then_it_serves(spawn: Start) -> None:
    sidecar = spawn(line=b"")
    sidecar.write(json.dumps(sidecar.settings()).encode()[:20])
    # Half a line is no line yet: nothing is told before its end has come.
    with pytest.raises(subprocess.TimeoutExpired):
        sidecar.wait(1.0)
    assert sidecar.stdout() == b""
    sidecar.write(json.dumps(sidecar.settings()).encode()[20:] + b"\n")
    sidecar.wait_ready()
    assert sidecar.ready["protocol"] == 1
    assert sidecar.get("/api/system/info").status == 200


@pytest.mark.proves("host.start.tokens-from-line")
def test_the_tokens_of_the_line_are_the_ones_that_open(start: Start) -> None:
    # Padded base64url is base64url too, and stands for itself.
    tokens = Tokens(session=f"{new_token()}=", host=new_token())
    sidecar = start(tokens=tokens)
    assert sidecar.get("/api/system/info").status == 200
    assert sidecar.host_get("/host/status").status == 200
    assert sidecar.request("GET", "/api/system/info", token=new_token()).status == 401
    assert sidecar.request("GET", "/api/system/info", token=tokens.session[:-1]).status == 401


@pytest.mark.proves(
    "host.start.tokens-generated",
    "host.start.tokens-random",
    "host.start.ready-tells-own-session-token",
    "host.start.ready-tells-own-host-token",
)
def test_an_empty_object_gets_tokens_of_its_own(start: Start, tmp_path: Path) -> None:
    seen: set[str] = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        arguments = ("--data-dir", str(tmp_path / name / "data"))
        sidecar = start(tmp_path / name, line=b"{}\n", arguments=arguments)
        for field in ("session_token", "host_token"):
            assert re.fullmatch(r"[A-Za-z0-9_-]{43,}", sidecar.ready[field])
            seen.add(sidecar.ready[field])
        assert sidecar.get("/api/system/info").status == 200
        assert sidecar.host_get("/host/status").status == 200
    assert len(seen) == 4


@pytest.mark.proves(
    "host.start.ready-tells-own-session-token", "host.start.ready-tells-own-host-token"
)
@pytest.mark.parametrize("given", ["session_token", "host_token", "both"])
def test_a_supplied_token_is_never_told(start: Start, given: str) -> None:
    missing = {"session_token": "host_token", "host_token": "session_token"}.get(given)
    sidecar = start(settings={missing: None} if missing else {})
    told = {name for name in sidecar.ready if name.endswith("_token")}
    assert told == ({missing} if missing else set())
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    supplied = sidecar.tokens.host if given == "host_token" else sidecar.tokens.session
    assert supplied.encode() not in sidecar.stdout()


SAME = new_token()


@pytest.mark.proves("host.start.weak-token-refused")
@pytest.mark.parametrize(
    "tokens",
    [
        {"session_token": ""},
        {"host_token": "a" * 42},
        {"session_token": f"{'ab+/' * 11}"},
        {"session_token": SAME, "host_token": f"{SAME}="},
    ],
)
def test_weak_and_equal_tokens_are_refused(spawn: Start, tokens: dict[str, str]) -> None:
    sidecar = spawn(settings=tokens)
    message = sidecar.first_message()
    assert (message["event"], message["code"]) == ("fatal", "HANDSHAKE_INVALID")
    assert sidecar.wait() == FATAL["HANDSHAKE_INVALID"].exit_code
    for token in filter(None, tokens.values()):
        assert token not in json.dumps(message) + sidecar.stderr()
    assert not sidecar.data_dir.exists()


def _bad_lines() -> Iterator[Any]:
    lines: dict[str, bytes] = {
        "empty": b"",
        "broken": b'{"session_token": "' + CANARY.encode(),
        "array": json.dumps([CANARY]).encode(),
        "not utf-8": b'{"locale": "' + CANARY.encode() + b'\xff\xfe"}',
        "deep": b'{"locale": "' + CANARY.encode() + b'", "x": ' + b"[" * 30_000,
        "too long": json.dumps({"x": CANARY * (FIRST_LINE_LIMIT // len(CANARY) + 1)}).encode(),
    }
    wrong: dict[str, Any] = {
        "session_token": 5,
        "host_pid": f"12{CANARY}",
        "locale": {"name": CANARY},
        "data_dir": "",
        "vault_path": f"/tmp/{CANARY}\0",
    }
    lines |= {
        name: json.dumps({"log_level": CANARY, name: value}).encode()
        for name, value in wrong.items()
    }
    for name, line in lines.items():
        yield pytest.param(line, id=name)


@pytest.mark.proves("host.start.bad-first-line")
@pytest.mark.parametrize("line", list(_bad_lines()))
def test_a_line_that_is_no_settings_is_refused(spawn: Start, tmp_path: Path, line: bytes) -> None:
    sidecar = spawn(line=line + b"\n", arguments=("--data-dir", str(tmp_path / "data")))
    message = sidecar.first_message()
    assert (message["event"], message["code"]) == ("fatal", "HANDSHAKE_INVALID")
    assert sidecar.wait() == FATAL["HANDSHAKE_INVALID"].exit_code
    assert CANARY not in json.dumps(message) + sidecar.stderr()
    assert sidecar.stdout().count(b"\n") == 1
    assert not sidecar.data_dir.exists()


@pytest.mark.proves("host.start.bad-first-line")
def test_a_line_without_an_end_is_refused_once_it_is_too_long(spawn: Start) -> None:
    sidecar = spawn(line=b"x" * (FIRST_LINE_LIMIT + 70_000))
    assert sidecar.first_message()["code"] == "HANDSHAKE_INVALID"
    assert sidecar.wait() == FATAL["HANDSHAKE_INVALID"].exit_code


@pytest.mark.proves("host.start.bad-first-line")
def test_the_longest_allowed_line_is_taken(start: Start) -> None:
    tokens = Tokens()
    with_padding = {"session_token": tokens.session, "host_token": tokens.host, "padding": ""}
    size = len(json.dumps(with_padding))
    with_padding["padding"] = "x" * (FIRST_LINE_LIMIT - size - 100)
    sidecar = start(tokens=tokens, settings={"padding": with_padding["padding"][:-200]})
    assert sidecar.get("/api/system/info").status == 200


@pytest.mark.proves("host.start.no-first-line")
def test_silence_ends_the_start(spawn: Start) -> None:
    sidecar = spawn(line=b"")
    message = sidecar.first_message()
    assert (message["event"], message["code"]) == ("fatal", "HANDSHAKE_TIMEOUT")
    assert sidecar.wait() == FATAL["HANDSHAKE_TIMEOUT"].exit_code


@pytest.mark.proves("host.start.eof-before-line")
@pytest.mark.parametrize("sent", [b"", b'{"session_token"', b"{}"])
def test_stdin_ends_before_the_line_does(spawn: Start, sent: bytes) -> None:
    sidecar = spawn(line=sent)
    sidecar.close_stdin()
    message = sidecar.first_message()
    assert (message["event"], message["code"]) == ("fatal", "HANDSHAKE_INVALID")
    assert sidecar.wait() == FATAL["HANDSHAKE_INVALID"].exit_code
    assert b"ready" not in sidecar.stdout()


@pytest.mark.proves("host.start.unknown-settings")
def test_fields_of_a_newer_host_are_ignored(start: Start) -> None:
    sidecar = start(settings={"window_id": CANARY, "features": {"tabs": [1]}})
    assert sidecar.get("/api/system/info").status == 200
    warnings = [entry for entry in sidecar.log_entries() if entry["level"] == "warning"]
    assert any(entry["event"] == "serve.unknown_settings" for entry in warnings)
    assert CANARY not in sidecar.stderr()


@pytest.mark.proves("host.start.host-pid")
def test_the_end_of_the_host_is_noticed_while_stdin_stays_open(start: Start) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as host:
        sidecar = start(settings={"host_pid": host.pid})
        assert sidecar.serves()
        host.kill()
    # This test still holds the sidecar's stdin open.
    assert sidecar.wait() == 0
    assert '"reason": "host_gone"' in sidecar.log_file()


@pytest.mark.proves("host.start.host-pid")
def test_a_host_that_is_gone_already_stops_it(spawn: Start) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as host:
        pass
    sidecar = spawn(settings={"host_pid": host.pid})
    assert sidecar.wait() == 0


@pytest.mark.proves("host.start.host-pid")
def test_a_host_that_lives_leaves_it_alone(start: Start) -> None:
    sidecar = start(settings={"host_pid": os.getpid()})
    with pytest.raises(subprocess.TimeoutExpired):
        # Longer than the pause between two looks at the host.
        sidecar.wait(2.5)
    assert sidecar.serves()


@pytest.mark.proves("host.start.no-secret-in-argv", "host.start.no-secret-in-environment")
def test_no_secret_is_in_arguments_or_environment(start: Start) -> None:
    planted = {
        "SESSION_TOKEN": new_token(),
        "SIDECAR_HOST_TOKEN": new_token(),
        "APP_SESSION_TOKEN": new_token(),
        "OPENAI_API_KEY": f"sk-{CANARY}",
    }
    sidecar = start(
        command=(sys.executable, "-m", "tests.host.working_sidecar"), environment=planted
    )
    # None of them is read from the environment.
    for value in planted.values():
        assert sidecar.request("GET", "/api/system/info", token=value).status == 401
    assert sidecar.host_post("/host/trial/work", {"ignore_signals": False}).status == 201
    eventually(lambda: len(sidecar.descendants()) >= 2, "a worker with a child of its own")
    secrets = {*planted.values(), sidecar.tokens.session, sidecar.tokens.host}
    for child in sidecar.descendants():
        arguments, environment = child.cmdline(), child.environ()
        assert not secrets & set(environment.values())
        assert not any(secret in " ".join(arguments) for secret in secrets)
        assert not {name for name in environment if name.startswith("APP_")}
    own = psutil.Process(sidecar.pid)
    for token in (sidecar.tokens.session, sidecar.tokens.host):
        assert token not in " ".join([*own.cmdline(), *own.environ().values()])


@pytest.mark.proves("host.start.no-secret-in-argv")
@pytest.mark.parametrize("option", ["--session-token", "--host-token"])
def test_no_option_takes_a_token(spawn: Start, option: str) -> None:
    sidecar = spawn(arguments=(option, new_token()))
    assert sidecar.wait() == 2
    assert sidecar.stdout() == b""


@pytest.mark.proves("host.start.tokens-not-on-disk")
def test_no_file_holds_a_token(start: Start, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    sidecar = start(settings={"log_level": "debug", "vault_path": str(vault)})
    _use_tokens_everywhere(sidecar)
    for tokens in (None, (sidecar.tokens.session, sidecar.tokens.host)):
        found = [
            file
            for folder in (sidecar.data_dir, vault)
            for file in folder.rglob("*")
            if file.is_file()
            and any(token.encode() in file.read_bytes() for token in tokens or _all(sidecar))
        ]
        assert found == []
        if tokens is None:
            sidecar.close_stdin()
            assert sidecar.wait() == 0
    assert not any(token in sidecar.stderr() for token in _all(sidecar))


def _all(sidecar: Serving) -> tuple[str, str]:
    return sidecar.tokens.session, sidecar.tokens.host


def _use_tokens_everywhere(sidecar: Serving) -> None:
    for token in _all(sidecar):
        sidecar.request("GET", f"/?token={token}")
        sidecar.request("GET", f"/api/{token}?token={token}", token=token)
        sidecar.request("GET", "/api/system/info", headers=[("Authorization", f"Basic {token}")])
        sidecar.request("POST", "/api/tickets", token=token, json_body={"path": f"/x/{token}"})
        sidecar.request("POST", "/host/packages", token=token, json_body={"path": token})
        sidecar.request("GET", f"/{token}", token=token, headers=[("Referer", token)])
        sidecar.write(json.dumps({"type": token}).encode() + b"\n" + token.encode() + b"\n")
