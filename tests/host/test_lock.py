"""One sidecar for one data directory."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.kernel.catalogue import FATAL
from tests.host.conftest import Start
from tests.host.serving import Serving, is_alive


def _lock(sidecar: Serving) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((sidecar.data_dir / "lock").read_text(encoding="utf-8"))
    return content


def _own(sidecar: Serving) -> dict[str, Any]:
    return {"pid": sidecar.pid, "port": sidecar.port}


@pytest.mark.proves("host.lock.content")
def test_the_lock_names_process_and_port(start: Start) -> None:
    sidecar = start()
    assert _lock(sidecar) == _own(sidecar)


@pytest.mark.proves("host.lock.in-use", "host.lock.first-unharmed", "host.fatal.no-ready")
def test_a_second_one_is_refused_and_the_first_goes_on(start: Start, spawn: Start) -> None:
    first = start()
    before = (first.data_dir / "lock").read_bytes(), (first.data_dir / "lock").stat().st_ino
    second = spawn()
    message = second.first_message()
    assert (message["event"], message["code"]) == ("fatal", "DATA_DIR_IN_USE")
    assert second.wait() == FATAL["DATA_DIR_IN_USE"].exit_code
    after = (first.data_dir / "lock").read_bytes(), (first.data_dir / "lock").stat().st_ino
    assert after == before
    assert first.get("/api/system/health").json()["subsystems"]["database"]["status"] == "ok"
    first.close_stdin()
    assert first.wait() == 0


@pytest.mark.proves("host.lock.in-use")
def test_another_name_of_the_same_directory_is_the_same_directory(
    start: Start, spawn: Start, tmp_path: Path
) -> None:
    first = start()
    (tmp_path / "alias").symlink_to(first.data_dir, target_is_directory=True)
    second = spawn(settings={"data_dir": str(tmp_path / "alias")})
    assert second.first_message()["code"] == "DATA_DIR_IN_USE"


@pytest.mark.proves("host.lock.stale-taken-over")
def test_the_lock_of_a_killed_process_is_taken_over(start: Start) -> None:
    first = start()
    first.popen.kill()
    first.wait()
    assert _lock(first) == _own(first)
    second = start()
    assert _lock(second) == _own(second)
    assert second.get("/api/system/health").json()["subsystems"]["database"]["status"] == "ok"


@pytest.mark.proves("host.lock.pid-reused")
@pytest.mark.parametrize("content", ["other program", "empty", "bytes"])
def test_a_lock_that_nobody_holds_is_stale_whatever_it_says(
    start: Start, tmp_path: Path, content: str
) -> None:
    texts = {
        "other program": json.dumps({"pid": os.getpid(), "port": 1}).encode(),
        "empty": b"",
        "bytes": b"\xff\x00\xfe" * 1000,
    }
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").write_bytes(texts[content])
    sidecar = start()
    assert _lock(sidecar) == _own(sidecar)


@pytest.mark.proves("host.lock.pid-reused")
def test_an_unreadable_lock_is_stale(
    start: Start, tmp_path: Path, unprivileged: tuple[str, ...]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").write_bytes(b"")
    (tmp_path / "data" / "lock").chmod(0)
    sidecar = start(command=unprivileged)
    assert _lock(sidecar) == _own(sidecar)


@pytest.mark.proves("host.lock.race")
def test_of_five_at_once_one_becomes_ready(spawn: Start, tmp_path: Path) -> None:
    # A stale lock is there, so that they could also get into each other's way over taking it.
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").write_bytes(b'{"pid": 1, "port": 2}')
    # They import first and wait for their line: so they reach the lock together.
    racers = [spawn(line=b"") for _ in range(5)]
    for racer in racers:
        racer.write(json.dumps(racer.settings()).encode() + b"\n")
    messages = [racer.first_message() for racer in racers]
    winners = [
        racer
        for racer, message in zip(racers, messages, strict=True)
        if message["event"] == "ready"
    ]
    assert len(winners) == 1
    losers = [message["code"] for message in messages if message["event"] == "fatal"]
    assert losers == ["DATA_DIR_IN_USE"] * 4
    winner = winners[0]
    winner.ready = messages[racers.index(winner)]
    assert _lock(winner) == _own(winner)
    assert winner.get("/api/system/info").status == 200


@pytest.mark.proves("host.lock.race", "host.stop.lock-removed")
def test_a_start_beside_a_stop_gets_the_directory_or_is_refused(start: Start, spawn: Start) -> None:
    # The one that stops removes its file while the next may have opened it already.
    current = start()
    for _ in range(2):
        following = spawn()
        current.close_stdin()
        message = following.first_message()
        assert current.wait() == 0
        if message["event"] == "fatal":
            assert message["code"] == "DATA_DIR_IN_USE"
            assert following.wait() == FATAL["DATA_DIR_IN_USE"].exit_code
            following = spawn()
            message = following.first_message()
        following.ready = message
        assert _lock(following) == _own(following)
        current = following


@pytest.mark.proves("host.lock.other-directory")
def test_two_directories_are_served_side_by_side(start: Start, tmp_path: Path) -> None:
    sidecars = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sidecars.append(start(tmp_path / name))
    one, two = sidecars
    assert one.port != two.port
    assert one.get("/api/system/info").status == two.get("/api/system/info").status == 200
    assert one.request("GET", "/api/system/info", token=two.tokens.session).status == 401
    one.close_stdin()
    assert one.wait() == 0
    assert two.serves()


@pytest.mark.proves("host.lock.stale-taken-over")
def test_a_child_of_a_killed_process_does_not_keep_the_lock(start: Start) -> None:
    command = (sys.executable, "-m", "tests.host.working_sidecar")
    first = start(command=command)
    work = first.host_post("/host/trial/work", {"ignore_signals": True})
    assert work.status == 201
    first.to_end += [work.json()["worker_pid"], work.json()["child_pid"]]
    first.popen.kill()
    first.wait()
    assert is_alive(work.json()["child_pid"])
    second = start()
    assert _lock(second) == _own(second)
