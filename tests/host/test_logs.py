"""Logs: where they go, how large they grow, and what never stands in them."""

import json
import threading
from pathlib import Path

import pytest

from host_bridge.protocol import new_token
from sidecar.kernel.logging import LOG_FILE_BYTES, LOG_FILES_KEPT
from tests.host.conftest import Start
from tests.host.serving import Serving, eventually


@pytest.mark.proves("host.logs.stderr-and-file")
def test_each_line_goes_to_stderr_and_to_the_file(start: Start) -> None:
    sidecar = start(settings={"future": 1})
    sidecar.write(b"nonsense\n")
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    in_file = [
        json.loads(line)
        for line in (sidecar.data_dir / "logs" / "sidecar.log").read_text("utf-8").splitlines()
    ]
    on_stderr = sidecar.log_entries()
    events = [entry["event"] for entry in in_file]
    assert {"serve.ready", "lifecycle.line_ignored", "serve.stopped"} <= set(events)
    # The file begins once the data directory is known.
    assert all(entry in on_stderr for entry in in_file)
    assert all({"time", "level", "logger", "event"} <= set(entry) for entry in in_file)


@pytest.mark.proves("host.logs.rotation")
def test_the_defaults_of_the_rotation(start: Start) -> None:
    assert (LOG_FILE_BYTES, LOG_FILES_KEPT) == (10 * 1024 * 1024, 5)
    sidecar = start()
    logs = sidecar.data_dir / "logs"
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    # Six full files of earlier runs: the next line makes room by dropping the oldest.
    full = b"x" * (LOG_FILE_BYTES - 10)
    for name in ("sidecar.log", *(f"sidecar.log.{number}" for number in range(1, 6))):
        (logs / name).write_bytes(name.encode() + full)
    again = start()
    names = {f"sidecar.log.{number}" for number in range(1, 6)} | {"sidecar.log"}
    eventually(lambda: "serve.ready" in (logs / "sidecar.log").read_text("utf-8"), "a new file")
    assert {file.name for file in logs.iterdir()} == names
    assert (logs / "sidecar.log").stat().st_size < LOG_FILE_BYTES
    assert (logs / "sidecar.log.1").read_bytes().startswith(b"sidecar.logx")
    assert (logs / "sidecar.log.5").read_bytes().startswith(b"sidecar.log.4x")
    again.close_stdin()
    assert again.wait() == 0


@pytest.mark.proves("host.logs.no-tokens")
def test_no_token_stands_in_a_log(start: Start) -> None:
    sidecar = start(settings={"log_level": "debug"})
    refused = new_token()
    ticket = new_token()
    for token in (sidecar.tokens.session, sidecar.tokens.host, refused):
        for path in (f"/?token={token}", f"/api/notes?token={token}", f"/{token}"):
            sidecar.request("GET", path)
            sidecar.request("GET", path, token=token)
        for header in (f"Bearer {token}", f"Basic {token}", token, f"Bearer  {token}"):
            sidecar.request("GET", "/api/system/info", headers=[("Authorization", header)])
        sidecar.request("GET", "/api/system/info", headers=[("Cookie", f"session={token}")])
        sidecar.request("GET", "/api/system/info", host=token)
        sidecar.request("GET", "/api/system/info", headers=[("Origin", f"http://{token}")])
        sidecar.request("POST", "/api/tickets", token=token, body=token.encode())
        sidecar.write(json.dumps({"type": "unknown", "token": token}).encode() + b"\n")
    sidecar.request("GET", f"/api/system/info?ticket={ticket}")
    cookie = sidecar.cookie()[1].partition("=")[2]
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    for secret in (sidecar.tokens.session, sidecar.tokens.host, refused, ticket, cookie):
        assert secret not in sidecar.stderr()
        assert secret not in sidecar.log_file()
        assert secret.encode() not in sidecar.stdout()


@pytest.mark.proves("host.logs.stderr-not-read")
def test_a_host_that_reads_nothing_loses_no_request(spawn: Start) -> None:
    """Both pipes are full after a while: what is not read is dropped, and nothing waits for it."""
    sidecar = spawn(read_pipes=False, settings={"log_level": "debug"}).wait_ready()
    statuses: list[int] = []

    def ask() -> None:
        statuses.extend(sidecar.get(f"/api/nothing/{number}").status for number in range(100))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    # A warning for each line: far more than a pipe holds.
    for _ in range(4):
        sidecar.write(b"nonsense\n" * 500)
    for thread in threads:
        thread.join(120)
    assert statuses == [404] * 400
    eventually(lambda: sidecar.log_file().count("line_ignored") >= 2000, "all lines in the file")
    assert sidecar.log_file().count('"event"') * 100 > 2 * 65536
    assert sidecar.serves()
    sidecar.write(b'{"type":"shutdown"}\n')
    assert sidecar.wait() == 0


@pytest.mark.proves("host.logs.stderr-not-read")
def test_a_host_that_closed_its_end_loses_no_request(spawn: Start) -> None:
    sidecar = spawn(read_pipes=False).wait_ready()
    assert sidecar.popen.stderr is not None
    assert sidecar.popen.stdout is not None
    sidecar.popen.stderr.close()
    sidecar.popen.stdout.close()
    sidecar.write(b"nonsense\n" * 100)
    for _ in range(20):
        assert sidecar.get("/api/system/info").status == 200
    sidecar.write(b'{"type":"shutdown"}\n')
    assert sidecar.wait() == 0


def test_records_of_a_child_or_a_library_are_one_line_each(
    tmp_path: Path, serving: Serving
) -> None:
    serving.write(b"two\\nlines\n")
    eventually(lambda: "line_ignored" in serving.log_file(), "the warning")
    for line in serving.log_file().splitlines():
        assert isinstance(json.loads(line), dict)
