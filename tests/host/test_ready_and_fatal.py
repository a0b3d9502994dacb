"""What a start tells: the ready line or the fatal line, the port, and the exit status."""

import json
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from sidecar.kernel.catalogue import FATAL
from sidecar.kernel.catalogue.locales import Locale
from sidecar.kernel.migrations import migrate
from tests.app_client import ROOT
from tests.host.conftest import Start
from tests.host.serving import Serving

EXIT_CODE_TABLE = ROOT / "host_bridge" / "README.md"


@pytest.mark.proves("host.ready.fields", "host.ready.values", "host.bind.random-port")
def test_the_ready_line(start: Start) -> None:
    sidecar = start()
    assert set(sidecar.ready) == {"event", "protocol", "port", "pid", "version", "base_url"}
    version = subprocess.run(
        [sys.executable, "-m", "sidecar", "--version"],
        check=True,
        capture_output=True,
        cwd=ROOT,
        encoding="utf-8",
    )
    assert sidecar.ready == {
        "event": "ready",
        "protocol": 1,
        "port": sidecar.port,
        "pid": sidecar.pid,
        "version": version.stdout.strip(),
        "base_url": f"http://127.0.0.1:{sidecar.port}",
    }
    listening = {c.laddr.port for c in _listening(sidecar)}
    assert listening == {sidecar.port}


@pytest.mark.proves("host.ready.once", "host.stdout.nothing-else")
def test_stdout_carries_the_ready_line_and_nothing_else(start: Start) -> None:
    sidecar = start(settings={"log_level": "debug"})
    for path in ("/api/system/info", "/api/system/health", "/docs", "/openapi.json", "/nothing"):
        sidecar.get(path)
    sidecar.host_post("/host/packages", {"path": str(sidecar.folder)})
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    lines = sidecar.stdout().split(b"\n")
    assert lines[1:] == [b""]
    assert json.loads(lines[0])["event"] == "ready"


@pytest.mark.proves("host.bind.loopback-only")
def test_it_listens_on_the_loopback_address_alone(serving: Serving) -> None:
    assert {connection.laddr.ip for connection in _listening(serving)} == {"127.0.0.1"}
    others = {
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    } - {"127.0.0.1"}
    for other in others:
        family = socket.AF_INET6 if ":" in other else socket.AF_INET
        with socket.socket(family) as connection:
            connection.settimeout(2)
            assert connection.connect_ex((other, serving.port)) != 0, other


def _listening(sidecar: Serving) -> list[Any]:
    connections = psutil.Process(sidecar.pid).net_connections("inet")
    return [c for c in connections if c.status == psutil.CONN_LISTEN]


@pytest.mark.proves("host.bind.port-option")
def test_the_port_option(start: Start) -> None:
    port = _free_port()
    sidecar = start(arguments=("--port", str(port)))
    assert sidecar.port == port
    assert sidecar.ready["base_url"] == f"http://127.0.0.1:{port}"
    assert sidecar.get("/api/system/info").status == 200


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.proves("host.bind.port-in-use", "host.fatal.line", "host.fatal.no-ready")
def test_a_port_that_is_taken(spawn: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sidecar = spawn(arguments=("--port", str(port)))
        message = sidecar.first_message()
        assert set(message) == {"event", "code", "message"}
        assert (message["event"], message["code"]) == ("fatal", "PORT_IN_USE")
        assert str(port) in message["message"]
        _assert_nothing_left(sidecar, "PORT_IN_USE")


@pytest.mark.proves("host.bind.port-in-use")
def test_the_port_of_another_sidecar(start: Start, spawn: Start, tmp_path: Path) -> None:
    first = start()
    (tmp_path / "other").mkdir()
    second = spawn(tmp_path / "other", arguments=("--port", str(first.port)))
    assert second.first_message()["code"] == "PORT_IN_USE"
    assert first.serves()


@pytest.mark.proves("host.fatal.data-dir", "host.fatal.no-ready", "host.fatal.no-leak")
@pytest.mark.parametrize("place", ["below a file", "a file", "below /proc"])
def test_a_data_directory_that_cannot_be_made(spawn: Start, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    places = {
        "below a file": tmp_path / "file" / "data",
        "a file": tmp_path / "file",
        "below /proc": Path("/proc/nothing/data"),
    }
    sidecar = spawn(settings={"data_dir": str(places[place])})
    message = sidecar.first_message()
    assert (message["event"], message["code"]) == ("fatal", "DATA_DIR_UNUSABLE")
    _assert_nothing_left(sidecar, "DATA_DIR_UNUSABLE")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.proves("host.fatal.data-dir")
def test_a_data_directory_without_permission_to_write(
    spawn: Start, tmp_path: Path, unprivileged: tuple[str, ...]
) -> None:
    (tmp_path / "data").mkdir(mode=0o555)
    sidecar = spawn(command=unprivileged)
    assert sidecar.first_message()["code"] == "DATA_DIR_UNUSABLE"
    _assert_nothing_left(sidecar, "DATA_DIR_UNUSABLE")


@pytest.mark.proves("host.fatal.database-newer", "host.fatal.no-ready", "host.fatal.no-leak")
def test_a_database_of_a_newer_version_stays_as_it_is(spawn: Start, tmp_path: Path) -> None:
    database = tmp_path / "data" / "app.db"
    database.parent.mkdir()
    migrate(database)
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE from_the_future (x)")
    connection.execute("PRAGMA user_version = 9000")
    connection.close()
    before = database.read_bytes()
    sidecar = spawn()
    assert sidecar.first_message()["code"] == "DATABASE_VERSION_UNSUPPORTED"
    _assert_nothing_left(sidecar, "DATABASE_VERSION_UNSUPPORTED")
    assert database.read_bytes() == before
    assert not list(database.parent.glob("app.db.*"))
    # Looking at it may leave SQLite's own files beside it, but nothing in them.
    assert not (database.parent / "app.db-wal").exists() or not _size(database, "-wal")


def _size(database: Path, suffix: str) -> int:
    return database.with_name(database.name + suffix).stat().st_size


@pytest.mark.proves("host.fatal.line", "host.fatal.no-ready", "host.fatal.no-leak")
def test_a_file_that_is_no_database_stays_as_it_is(spawn: Start, tmp_path: Path) -> None:
    database = tmp_path / "data" / "app.db"
    database.parent.mkdir()
    database.write_bytes(b"not a database, but the only copy of something" * 100)
    before = database.read_bytes()
    sidecar = spawn()
    assert sidecar.first_message()["code"] == "DATABASE_CORRUPT"
    _assert_nothing_left(sidecar, "DATABASE_CORRUPT")
    assert database.read_bytes() == before


def _assert_nothing_left(sidecar: Serving, code: str) -> None:
    assert sidecar.wait() == FATAL[code].exit_code
    assert sidecar.stdout().count(b"\n") == 1
    assert b'"ready"' not in sidecar.stdout()
    message = json.loads(sidecar.stdout())["message"]
    for secret in (sidecar.tokens.session, sidecar.tokens.host):
        assert secret not in message + sidecar.stderr()
    assert "Traceback" not in message
    assert sidecar.descendants() == []
    if sidecar.data_dir.is_dir():
        assert not (sidecar.data_dir / "lock").exists()


@pytest.mark.proves("host.fatal.exit-codes")
def test_each_code_has_a_status_of_its_own_and_the_documentation_lists_it() -> None:
    statuses = {code: spec.exit_code for code, spec in FATAL.items()}
    assert len(set(statuses.values())) == len(statuses)
    # 0 is success, 1 Python's own, 2 argparse's, and shells use those from 126 on.
    assert all(3 <= status <= 125 for status in statuses.values())
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| (\d+) \|", EXIT_CODE_TABLE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {code: int(status) for code, status in rows} == statuses
    assert len(rows) == len(statuses)


WHAT_TO_DO = {
    "en": r"(Update|Restart|start|Check|Close|Switch|update|Restore|Try|look|Correct|Remove)",
    "zh-CN": r"请",
}


@pytest.mark.proves("host.fatal.no-leak")
@pytest.mark.parametrize("code", FATAL)
@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_a_fatal_message_says_what_to_do(code: str, locale: Locale) -> None:
    spec = FATAL[code]
    message = spec.zh if locale == "zh-CN" else spec.en
    assert re.search(WHAT_TO_DO[locale], message)


@pytest.mark.proves("host.stdout.nothing-else")
def test_what_a_library_prints_goes_nowhere(start: Start) -> None:
    sidecar = start(command=(sys.executable, "-m", "tests.host.printing_sidecar"))
    # The program prints from Python, from C and from a child, at once and with each request.
    assert sidecar.get("/api/system/info").status == 200
    sidecar.close_stdin()
    assert sidecar.wait() == 0
    assert sidecar.stdout().count(b"\n") == 1
    assert b"noise" not in sidecar.stdout()


@pytest.mark.proves("host.ready.only-when-serving")
def test_many_requests_at_the_moment_of_ready_are_answered(spawn: Start) -> None:
    sidecar = spawn()
    sidecar.ready = sidecar.first_message()
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(sidecar.get("/api/system/info").status))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert statuses == [200] * 20
