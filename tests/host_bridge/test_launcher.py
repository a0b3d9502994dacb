"""The launcher against a real child process that speaks the protocol well or badly."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from host_bridge.errors import (
    SidecarConnectionError,
    SidecarRequestError,
    SidecarStartError,
    SidecarTimeoutError,
    SidecarUnavailableError,
)
from host_bridge.launcher import Sidecar, launch
from host_bridge.process import child_environment
from host_bridge.restart import CrashReport, RestartPolicy
from tests.host_bridge.fake import FAKE_COMMAND, LaunchFake

WAIT = 20.0
QUICK = RestartPolicy(first_delay=0.01, longest_delay=0.05, max_crashes=3)


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll with a bound, on a timer that nobody else sets."""
    never = threading.Event()
    for _ in range(int(WAIT / 0.02)):
        if condition():
            return
        never.wait(0.02)
    raise AssertionError("the condition did not come true in time")


def test_a_sidecar_is_launched_asked_and_stopped(launch_fake: LaunchFake, tmp_path: Path) -> None:
    with launch_fake("good", data_dir=tmp_path) as sidecar:
        assert sidecar.base_url == f"http://127.0.0.1:{sidecar.port}"
        answer = sidecar.get("/api/x?y=1").check(200).json()
        assert answer["holder"] == "session"
        assert answer["path"] == "/api/x?y=1"
        assert answer["data_dir"] == str(tmp_path)
        assert sidecar.host_post("/host/vault", json={"path": "/v"}).json()["holder"] == "host"
        assert sidecar.pid == sidecar.process.pid
    assert sidecar.stop() == 0
    assert sidecar.process.extra_stdout_bytes == 0
    with pytest.raises(SidecarUnavailableError):
        sidecar.get("/api/x")


def test_tokens_are_in_no_argument_and_no_environment(launch_fake: LaunchFake) -> None:
    sidecar = launch_fake("good")
    process = psutil.Process(sidecar.pid)
    seen = " ".join(process.cmdline()) + repr(process.environ())
    assert sidecar.session_token not in seen
    assert sidecar.host_token not in seen


def test_every_method_sends_json_and_keeps_the_connection(launch_fake: LaunchFake) -> None:
    sidecar = launch_fake("good")
    for send in (sidecar.post, sidecar.put, sidecar.patch, sidecar.delete):
        answer = send("/api/x", json={"text": "\u6b7b\u9501"}).json()
        assert answer["content_type"] == "application/json"
        assert answer["body"] == '{"text": "\\u6b7b\\u9501"}'
        assert answer["connections"] == 1


def test_a_proxy_of_the_environment_is_not_asked(
    launch_fake: LaunchFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert launch_fake("good").get("/api/x").status == 200


def test_an_upload_is_a_multipart_form(launch_fake: LaunchFake, tmp_path: Path) -> None:
    sidecar = launch_fake("good")
    file = tmp_path / 'a "quoted" \u8bb0\u5f55.txt'
    file.write_bytes(b"line\r\n--two")
    answer = sidecar.upload("/api/files", file, fields={"kind": "note"}).json()
    assert answer["content_type"].startswith("multipart/form-data; boundary=")
    boundary = answer["content_type"].partition("boundary=")[2]
    assert answer["body"] == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="kind"\r\n\r\nnote\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
        'filename="a %22quoted%22 \u8bb0\u5f55.txt"\r\n'
        "Content-Type: application/octet-stream\r\n\r\nline\r\n--two\r\n"
        f"--{boundary}--\r\n"
    )


def test_a_download_is_written_to_a_file(launch_fake: LaunchFake, tmp_path: Path) -> None:
    sidecar = launch_fake("good")
    target = tmp_path / "answer.json"
    assert sidecar.download("/api/file", target) == target.stat().st_size > 0
    with pytest.raises(SidecarRequestError):
        sidecar.download("/error", tmp_path / "no.json")
    assert not (tmp_path / "no.json").exists()


def test_an_error_answer_tells_code_and_details(launch_fake: LaunchFake) -> None:
    sidecar = launch_fake("good")
    with pytest.raises(SidecarRequestError) as caught:
        sidecar.get("/error").check()
    assert (caught.value.status, caught.value.code) == (404, "NOTE_NOT_FOUND")
    assert caught.value.details == {"id": 1}
    with pytest.raises(SidecarRequestError) as caught:
        sidecar.get("/plain-error").check()
    assert (caught.value.status, caught.value.code) == (500, "")
    assert sidecar.get("/error").check(404).json()["error"]["message"] == "gone"


def test_a_broken_connection_is_told(launch_fake: LaunchFake) -> None:
    with pytest.raises(SidecarConnectionError):
        launch_fake("good").get("/hang-up")


def test_a_fatal_line_is_an_error_with_the_logs_tail(launch_fake: LaunchFake) -> None:
    with pytest.raises(SidecarStartError) as caught:
        launch_fake("fatal")
    error = caught.value
    assert error.code == "DATA_DIR_IN_USE"
    assert error.exit_code == 21
    assert error.log_tail.endswith("the disk is full\n")
    assert len(error.log_tail) == 8192
    assert "another sidecar" in str(error)
    assert "the disk is full" in str(error)


def test_an_end_without_a_word_is_an_error(launch_fake: LaunchFake) -> None:
    with pytest.raises(SidecarStartError) as caught:
        launch_fake("exit")
    assert (caught.value.code, caught.value.exit_code) == ("EXITED", 1)
    assert "no module named x" in caught.value.log_tail


@pytest.mark.parametrize("mode", ["garbage", "endless-line"])
def test_a_foreign_first_line_is_an_error(launch_fake: LaunchFake, mode: str) -> None:
    with pytest.raises(SidecarStartError) as caught:
        launch_fake(mode)
    assert caught.value.code == "PROTOCOL_VIOLATION"


def test_no_ready_line_is_a_timeout_with_the_logs_tail(launch_fake: LaunchFake) -> None:
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(SidecarTimeoutError) as caught:
        launch_fake("silent", ready_timeout=1.5)
    assert caught.value.code == "READY_TIMEOUT"
    assert "still loading" in caught.value.log_tail
    assert set(psutil.Process().children(recursive=True)) <= before


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SidecarStartError) as caught:
        launch(tmp_path / "nothing")
    assert caught.value.code == "NOT_FOUND"


def test_pipes_that_nobody_asks_about_do_not_block(launch_fake: LaunchFake, tmp_path: Path) -> None:
    sidecar = launch_fake("chatty", tmp_path / "mark")
    assert sidecar.get("/api/x").status == 200
    assert sidecar.stop() == 0
    assert sidecar.process.extra_stdout_bytes == 3_000_001
    assert len(sidecar.log_tail()) == 8192


def test_a_stop_asks_by_the_line_first(launch_fake: LaunchFake, tmp_path: Path) -> None:
    sidecar = launch_fake("marked", tmp_path / "mark")
    assert sidecar.stop() == 0
    assert sidecar.stop() == 0
    assert (tmp_path / "mark").read_text(encoding="utf-8") == "line"


def test_stops_at_once_give_the_same_status(launch_fake: LaunchFake) -> None:
    sidecar = launch_fake("good")
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(sidecar.stop())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert codes == [0, 0, 0, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be ignored there")
def test_a_stop_ends_the_tree_of_one_that_does_not_listen(
    launch_fake: LaunchFake, tmp_path: Path
) -> None:
    mark = tmp_path / "child"
    sidecar = launch_fake("stubborn", mark)
    wait_until(lambda: mark.exists() and mark.read_text(encoding="utf-8") != "")
    child = int(mark.read_text(encoding="utf-8"))
    assert sidecar.stop(0.2) == -signal.SIGKILL
    wait_until(lambda: not _lives(child))


@pytest.mark.skipif(sys.platform == "win32", reason="kills with a POSIX signal")
def test_the_hosts_sudden_end_reaches_the_sidecar(tmp_path: Path) -> None:
    code = (
        "import sys, time; from host_bridge.launcher import launch; "
        f"s = launch({FAKE_COMMAND!r}, extra_args=['marked', sys.argv[1]]); "
        "print(s.pid, flush=True); time.sleep(600)"
    )
    mark = tmp_path / "mark"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(mark)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=Path(__file__).resolve().parents[2],
    ) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        host.kill()
        wait_until(lambda: not _lives(pid))
    assert mark.read_text(encoding="utf-8") == "end"


def test_a_crash_is_followed_by_a_restart_and_requests_go_there(
    launch_fake: LaunchFake,
) -> None:
    crashes: list[CrashReport] = []
    restarted = threading.Event()
    sidecar = launch_fake(
        "good", restart=QUICK, on_crash=crashes.append, on_restart=lambda _: restarted.set()
    )
    first = sidecar.pid
    tokens = (sidecar.session_token, sidecar.host_token)
    with pytest.raises(SidecarConnectionError):
        sidecar.get("/crash")
    assert restarted.wait(WAIT)
    answer = sidecar.get("/api/x").check().json()
    assert answer["pid"] == sidecar.pid != first
    assert answer["holder"] == "session"
    assert (sidecar.session_token, sidecar.host_token) == tokens
    assert [(crash.reason, crash.exit_code, crash.restart_in) for crash in crashes] == [
        ("EXITED", 3, 0.01)
    ]
    assert "the log begins" in crashes[0].log_tail
    assert sidecar.stop() == 0


def test_a_restart_that_fails_is_tried_again_later(launch_fake: LaunchFake, tmp_path: Path) -> None:
    crashes: list[CrashReport] = []
    restarted = threading.Event()
    sidecar = launch_fake(
        "second-start-fails",
        tmp_path / "starts",
        restart=QUICK,
        on_crash=crashes.append,
        on_restart=lambda _: restarted.set(),
    )
    os.kill(sidecar.pid, signal.SIGTERM)
    assert restarted.wait(WAIT)
    assert [crash.restart_in for crash in crashes] == [0.01, 0.02]
    assert crashes[1].exit_code == 7
    assert sidecar.get("/api/x").status == 200


def test_too_many_crashes_end_it_for_good(launch_fake: LaunchFake, tmp_path: Path) -> None:
    crashes: list[CrashReport] = []
    lost = threading.Event()

    def on_crash(crash: CrashReport) -> None:
        crashes.append(crash)
        if crash.restart_in is None:
            lost.set()
        raise ValueError("the host's own mistake does not end the watch")

    sidecar = launch_fake("one-start", tmp_path / "starts", restart=QUICK, on_crash=on_crash)
    with pytest.raises(SidecarConnectionError):
        sidecar.get("/crash")
    assert lost.wait(WAIT)
    assert [crash.restart_in for crash in crashes] == [0.01, 0.02, 0.04, None]
    with pytest.raises(SidecarUnavailableError, match="not started again"):
        sidecar.get("/api/x")
    assert sidecar.stop() == 7


def test_without_a_policy_a_crash_is_told_and_not_mended(launch_fake: LaunchFake) -> None:
    crashes: list[CrashReport] = []
    sidecar = launch_fake("good", on_crash=crashes.append)
    with pytest.raises(SidecarConnectionError):
        sidecar.get("/crash")
    wait_until(lambda: bool(crashes))
    assert crashes[0].restart_in is None
    assert sidecar.stop() == 3


def test_a_stop_ends_a_restart_that_waits(launch_fake: LaunchFake) -> None:
    crashed = threading.Event()
    sidecar = launch_fake(
        "good", restart=RestartPolicy(first_delay=600), on_crash=lambda _: crashed.set()
    )
    with pytest.raises(SidecarConnectionError):
        sidecar.get("/crash")
    assert crashed.wait(WAIT)
    with pytest.raises(SidecarUnavailableError, match="no sidecar serves after"):
        sidecar.get("/api/x", timeout=0.05)
    assert sidecar.stop() == 3


def test_a_callback_may_stop_the_sidecar(launch_fake: LaunchFake) -> None:
    done = threading.Event()
    box: list[Sidecar] = []

    def give_up(_: CrashReport) -> None:
        box[0].stop()
        done.set()

    box.append(launch_fake("good", restart=QUICK, on_crash=give_up))
    with pytest.raises(SidecarConnectionError):
        box[0].get("/crash")
    assert done.wait(WAIT)
    assert box[0].stop() == 3


def test_a_frozen_parents_library_path_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = {
        "LD_LIBRARY_PATH": "/bundle",
        "LD_LIBRARY_PATH_ORIG": "/usr/local/lib",
        "_PYI_ARCHIVE_FILE": "x",
        "HOME": "/h",
    }
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert child_environment(parent) == {"LD_LIBRARY_PATH": "/usr/local/lib", "HOME": "/h"}
    monkeypatch.setattr(sys, "frozen", False, raising=False)
    assert child_environment(parent)["LD_LIBRARY_PATH"] == "/bundle"


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
