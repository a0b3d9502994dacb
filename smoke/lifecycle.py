"""Try a sidecar's whole life: ``python -m smoke.lifecycle --executable PATH --models-dir DIR``.

Everything goes through the host protocol, so the program may be frozen, installed, or the source
tree (``--source``). Prints a step a line and exits with 1 if one failed; times are told, and judged
by nobody. ``--models-dir`` is a folder of model weights that the sidecar may read.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from host_bridge.errors import SidecarStartError
from host_bridge.launcher import Sidecar
from host_bridge.protocol import SHUTDOWN_LIMIT_SECONDS
from smoke.chat import chat
from smoke.documents import make_documents
from smoke.processes import describe, marked, tree, wait_until_gone
from smoke.recording_to_document import (
    Recording,
    RecordingWalk,
    start_transcription,
    upload,
    wait_for_job,
)
from smoke.report import Report, require
from smoke.trial import RECORDINGS, ROOT, Trial

HOST_KILLED_LIMIT_SECONDS = 5.0
ENGLISH = Recording(RECORDINGS / "en-jfk.flac", None, "ask what you can do for your country")
CHINESE = Recording(RECORDINGS / "zh-lecture.flac", "zh", "操作系统")
_COMMAND_LIMIT_SECONDS = 60.0
_MEBIBYTE = 1024 * 1024


class Lifecycle:
    """The steps, in their order."""

    def __init__(self, trial: Trial, report: Report, starts: int) -> None:
        self._trial = trial
        self._report = report
        self._starts = starts
        self._vault = trial.folder("vault")

    def run(self) -> None:
        """Run everything; steps that need a sidecar that did not start are left out."""
        report = self._report
        report.run("--version", self._version)
        if not report.run(f"start and stop, {self._starts} times", self._start_and_stop):
            return
        self._serve()
        report.run("stop during a transcription", self._stop_while_working)
        report.run("host killed with SIGKILL", self._kill_host)
        report.run("start over a stale lock", self._start_over_stale_lock)
        report.run("nothing is left", self._leftovers)

    def _version(self) -> str:
        result = subprocess.run(
            [*self._trial.command, "--version"],
            env=self._trial.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=_COMMAND_LIMIT_SECONDS,
            check=False,
        )
        require(result.returncode == 0, f"exit status {result.returncode}: {result.stderr}")
        require(result.stdout.strip(), "no version was printed")
        return result.stdout.strip()

    def _start_and_stop(self) -> str:
        # The first start makes the database and warms the disk cache; it is told apart.
        first = self._ready_seconds("fresh")
        warm = [self._ready_seconds("fresh") for _ in range(self._starts)]
        self._report.figures["s, exec to ready, first start"] = first
        self._report.figures["s, exec to ready, median warm"] = statistics.median(warm)
        return f"ready {', '.join(f'{seconds:.2f}' for seconds in warm)} s"

    def _ready_seconds(self, data_name: str) -> float:
        sidecar = self._trial.launch(data_name)
        require(sidecar.get("/api/system/health").status == 200, "not serving when ready")
        self._report.figures["MiB, idle server"] = _resident_mebibytes(sidecar.pid)
        self._stop(sidecar)
        return sidecar.process.ready_seconds

    def _stop(self, sidecar: Sidecar) -> float:
        """Stop it in order and hold it to everything that a graceful stop promises."""
        processes = tree(sidecar.pid)
        started = time.monotonic()
        exit_code = sidecar.stop()
        seconds = time.monotonic() - started
        require(exit_code == 0, f"exit status {exit_code}; log: {sidecar.log_tail()[-500:]}")
        require(seconds <= SHUTDOWN_LIMIT_SECONDS, f"the stop took {seconds:.1f} s")
        left = wait_until_gone(processes | marked(self._trial.mark), 1.0)
        require(not left, f"still there: {describe(left)}")
        extra = sidecar.process.extra_stdout_bytes
        require(extra == 0, f"{extra} bytes on stdout after the ready line")
        return seconds

    def _serve(self) -> None:
        report, sidecars = self._report, list[Sidecar]()

        def start() -> str:
            sidecars.append(self._trial.launch())
            answer = sidecars[0].host_post("/host/vault", json={"path": str(self._vault)})
            answer.check(200)
            return f"port {sidecars[0].port}"

        if not report.run("start, name a vault", start):
            for sidecar in sidecars:
                sidecar.stop()
            return
        sidecar = sidecars[0]
        try:
            report.run("second one on the same data", lambda: self._refuse_second(sidecar))
            for recording in (ENGLISH, CHINESE):
                RecordingWalk(sidecar, recording, self._vault).run(report)
            report.run("documents", lambda: make_documents(sidecar))
            report.run("chat with a search and an attachment", lambda: chat(sidecar))
            report.run("cancel in mid-transcription", lambda: self._cancel(sidecar))
        finally:
            report.run("stop", lambda: f"{self._stop(sidecar):.2f} s, exit status 0")

    def _refuse_second(self, sidecar: Sidecar) -> str:
        try:
            second = self._trial.launch()
        except SidecarStartError as error:
            require(error.code == "DATA_DIR_IN_USE", f"refused with {error}")
            require(sidecar.get("/api/system/health").status == 200, "the first one was harmed")
            return f"{error.code}, exit status {error.exit_code}"
        second.stop()
        raise AssertionError("two sidecars serve one data directory")

    def _cancel(self, sidecar: Sidecar) -> str:
        job_id = self._work(sidecar)
        path = f"/api/media/transcriptions/{job_id}"
        started = time.monotonic()
        sidecar.post(f"{path}/cancel").check()
        last = list(sidecar.events(f"{path}/events"))[-1].event
        seconds = time.monotonic() - started
        require(last == "Cancelled", f"ended in {last}")
        require(sidecar.get(path).json()["status"] == "cancelled", "the job is not cancelled")
        # A worker that still chewed on the long recording would hold this one up.
        attachment_id = upload(sidecar, ENGLISH.file)
        started = time.monotonic()
        again = start_transcription(sidecar, attachment_id, ENGLISH.language)
        job = wait_for_job(sidecar, f"/api/media/transcriptions/{again}")
        require(job["status"] == "completed", f"the next job: {job['status']} {job['error']}")
        return f"in {seconds:.2f} s, the next job took {time.monotonic() - started:.1f} s"

    def _work(self, sidecar: Sidecar) -> str:
        """Start a long transcription and give its id once the model is at it."""
        attachment_id = upload(sidecar, CHINESE.file)
        job_id = start_transcription(sidecar, attachment_id, CHINESE.language)
        for event in sidecar.events(f"/api/media/transcriptions/{job_id}/events"):
            if event.event in ("TranscriptionStarted", "Progress"):
                return job_id
        raise AssertionError("the transcription ended before it was seen to run")

    def _stop_while_working(self) -> str:
        sidecar = self._trial.launch()
        try:
            self._work(sidecar)
            workers = len(tree(sidecar.pid)) - 1
            require(workers, "no worker process to be seen")
        except BaseException:
            sidecar.stop()
            raise
        return f"{self._stop(sidecar):.2f} s, {workers} worker(s) gone"

    def _kill_host(self) -> str:
        arguments = ["--home", str(self._trial.home), "--models-dir", str(self._trial.models_dir)]
        arguments += ["--mark", self._trial.mark]
        if len(self._trial.command) == 1:
            arguments += ["--executable", self._trial.command[0]]
        with subprocess.Popen(
            [sys.executable, "-m", "smoke.doomed_host", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as host:
            if host.stdout is None:
                raise AssertionError("the host was started with a pipe")
            try:
                told = json.loads(host.stdout.readline() or "{}")
                require("pid" in told, "the host did not get its sidecar to work")
                processes = tree(told["pid"]) | marked(self._trial.mark)
            finally:
                host.kill()
            started = time.monotonic()
            left = wait_until_gone(processes, HOST_KILLED_LIMIT_SECONDS)
        seconds = time.monotonic() - started
        left += marked(self._trial.mark) - set(left)
        for process in left:
            process.kill()
        require(not left, f"alive after {seconds:.1f} s: {describe(left)}")
        require(len(processes) > 1, "no worker was running, so nothing was shown")
        return f"{len(processes)} processes gone in {seconds:.2f} s"

    def _start_over_stale_lock(self) -> str:
        sidecar = self._trial.launch()
        status = sidecar.host_get("/host/status").check(200).json()
        self._stop(sidecar)
        require(status["vault_path"] == str(self._vault), "the vault was forgotten")
        return f"ready in {sidecar.process.ready_seconds:.2f} s, the vault is known"

    def _leftovers(self) -> str:
        for name in ("data", "fresh"):
            lock = self._trial.folder(name) / "lock"
            require(not lock.exists(), f"{name}/lock is still there")
        suspects = [
            path
            for folder in ("data", "fresh", "vault")
            for path in self._trial.folder(folder).rglob("*")
            if path.suffix in (".tmp", ".part", ".partial") or path.name.endswith("-wal")
        ]
        suspects = [path for path in suspects if path.is_file() and path.stat().st_size]
        suspects += self._trial.temporary.iterdir()
        require(not suspects, f"left behind: {', '.join(str(path) for path in suspects)}")
        left = marked(self._trial.mark)
        require(not left, f"still there: {describe(left)}")
        return "no lock, no temporary file, no process"


def _resident_mebibytes(pid: int) -> float:
    return float(sum(process.memory_info().rss for process in tree(pid))) / _MEBIBYTE


def main(arguments: list[str] | None = None) -> int:
    """Run the command; gives the exit status."""
    parser = argparse.ArgumentParser(prog="smoke.lifecycle", description=(__doc__ or "")[:74])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--executable", help="the program to try")
    which.add_argument("--source", action="store_true", help="try the source tree")
    parser.add_argument("--models-dir", type=Path, required=True, help="folder of model weights")
    parser.add_argument("--starts", type=int, default=5, help="warm starts to measure")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sidecar-smoke-") as folder:
        home = Path(folder).resolve()
        trial = Trial.of(options.executable, home, options.models_dir.resolve())
        report = Report(" ".join(trial.command), options.json)
        Lifecycle(trial, report, options.starts).run()
        return report.finish()


if __name__ == "__main__":
    sys.exit(main())
