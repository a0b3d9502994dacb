"""The command line: ``detect``, ``plan``, ``install``, ``verify``, ``remove``, ``configure``."""

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, NoReturn

from cuda_installer import flavours, installing, state
from cuda_installer.children import Children
from cuda_installer.errors import Cancelled, InstallerError, of_os_error
from cuda_installer.machine import detect
from cuda_installer.planning import Plan, make_plan
from cuda_installer.reporting import Bar, JsonLines
from cuda_installer.settings import RuntimeSettings
from cuda_installer.texts import Texts, size

ROOT_VARIABLE: Final = "CUDA_INSTALLER_ROOT"
EXIT_FAILED: Final = 1
EXIT_CANCELLED: Final = 130

_OPTIONS: Final = {
    "flavour": "auto (default), cpu, cu130 …",
    "python": "the Python to make the environment with",
    "python_archive": "a packed Python to make the environment with",
    "python_mirror": "where uv fetches Python from",
    "wheelhouse": "a folder with every package; nothing else is asked",
    "extra_wheels": "a folder with some of the packages",
    "index": "a mirror of the package index",
    "torch_index": "a mirror of torch's own index",
    "uv": "the uv program",
}


def add_commands(parser: argparse.ArgumentParser, root: Path | None = None) -> None:
    """Add the commands to *parser*; *root* is the runtime's folder unless the user names another.

    A parsed command is run by :func:`run`.
    """
    parser.add_argument("--root", type=Path, default=root, help="the runtime's folder")
    parser.add_argument("--locale", help="en or zh-CN")
    commands = parser.add_subparsers(dest="runtime_command", required=True, metavar="COMMAND")
    for name, description, action in (
        ("detect", "say what this machine is and what is installed", _detect),
        ("plan", "say what would be installed, and change nothing", _plan),
        ("install", "install the runtime", _install),
        ("verify", "run code in the runtime", _verify),
        ("remove", "remove the runtime", _remove),
        ("configure", "keep settings for later installations", _configure),
    ):
        command = commands.add_parser(name, help=description)
        if name in ("plan", "install", "configure"):
            for option, meaning in _OPTIONS.items():
                command.add_argument("--" + option.replace("_", "-"), help=meaning)
        if name == "configure":
            command.add_argument(
                "--interpreter", help="a Python of your own with torch, used as it is; '' for none"
            )
        command.add_argument("--json", action="store_true", help="print JSON, one object a line")
        if name in ("install", "verify"):
            command.add_argument("--follow-stdin", action="store_true", help="stop when stdin ends")
        command.set_defaults(runtime_action=action)


def run(arguments: argparse.Namespace) -> int:
    """Run a parsed command and return the exit status."""
    job = _Job(arguments)
    try:
        action: Callable[[_Job], int] = arguments.runtime_action
        return action(job)
    except InstallerError as error:
        return job.fail(error)
    except OSError as error:
        return job.fail(of_os_error(error))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    parser = argparse.ArgumentParser(prog="cuda_installer", description="The managed runtime.")
    add_commands(parser, default_root())
    return run(parser.parse_args(arguments))


def default_root() -> Path:
    """Return where the program that this belongs to keeps its runtime."""
    told = os.environ.get(ROOT_VARIABLE)
    if told:
        return Path(told)
    data = os.environ.get("APP_DATA_DIR")
    if data:
        return Path(data).expanduser() / "runtime"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "NotesAgent" / "runtime"


class _Job:
    """One command with what it needs."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        root: Path | None = arguments.root
        self.root = (root or default_root()).expanduser().absolute()
        self.as_json: bool = arguments.json
        self.texts = Texts(arguments.locale)
        self.lines = JsonLines()
        self.reporter = self.lines if self.as_json else Bar(self.texts)
        self.children = Children(self.reporter.child)
        names = {field.name for field in fields(RuntimeSettings)}
        given = {k: v for k, v in vars(arguments).items() if k in names and v is not None}
        self.given: dict[str, str] = given
        self.settings = RuntimeSettings.load(self.root).with_values(given)
        self.follow_stdin: bool = getattr(arguments, "follow_stdin", False)

    def say(self, *rows: tuple[str, str] | str) -> None:
        """Print rows of a label and a value, or sentences."""
        for row in rows:
            if isinstance(row, str):
                sys.stdout.write(row + "\n")
            else:
                sys.stdout.write(f"{self.texts(row[0])}: {row[1]}\n")

    def fail(self, error: InstallerError) -> int:
        """Tell a failure and return the exit status."""
        self.reporter.close()
        if self.as_json:
            event = {
                "event": "failed",
                "reason": error.reason,
                "technical": error.technical,
                "figures": error.figures,
            }
            with contextlib.suppress(Cancelled):
                self.lines.write(event)
        else:
            sys.stderr.write(f"{self.texts('failed')}: {self.texts.reason(error.reason)}\n")
            for name, count in error.figures.items():
                sys.stderr.write(f"{self.texts(name)}: {size(count)}\n")
            if error.technical and not error.figures:
                sys.stderr.write(error.technical + "\n")
        return EXIT_CANCELLED if isinstance(error, Cancelled) else EXIT_FAILED

    def yes_no(self, value: bool | None) -> str:
        return self.texts("yes" if value else "no")


@contextlib.contextmanager
def _ending(job: _Job) -> Iterator[None]:
    """End the child program and leave when somebody asks for it, or when the asker dies."""
    if job.follow_stdin:
        threading.Thread(target=_follow_stdin, args=(job.children,), daemon=True).start()

    def stop(*_: object) -> NoReturn:
        # Its child is ended where it is waited for.
        raise Cancelled

    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow_stdin(children: Children) -> None:
    while os.read(0, 65536):
        pass
    children.cancel()


def _detect(job: _Job) -> int:
    machine = detect()
    current = state.read_current(job.root)
    last = state.read_last(job.root)
    try:
        fitting: str | None = flavours.choose(machine, job.settings.flavour).name
    except InstallerError:
        fitting = None
    found: dict[str, Any] = {
        "event": "detected",
        "platform": machine.platform,
        "driver": machine.driver_text,
        "supported": flavours.is_supported(machine.platform),
        "flavour": fitting,
        "custom_interpreter": bool(job.settings.interpreter),
        "installed": asdict(current) if current else None,
        "last": asdict(last) if last else None,
    }
    if job.as_json:
        job.lines.write(found)
        return 0
    none = job.texts("none")
    job.say(
        ("platform", machine.platform),
        ("driver", machine.driver_text or none),
        ("supported", job.yes_no(found["supported"])),
        ("flavour", fitting or none),
        ("status", f"{current.flavour}, torch {current.torch}" if current else none),
    )
    if job.settings.interpreter:
        job.say(("interpreter", job.settings.interpreter))
    if last is not None and last.reason:
        job.say(("failed", job.texts.reason(last.reason)))
    return 0


def _plan(job: _Job) -> int:
    plan = make_plan(job.root, job.settings, job.children)
    if job.as_json:
        job.lines.write({"event": "plan", **plan.as_json()})
    else:
        _say_plan(job, plan)
    return 0


def _say_plan(job: _Job, plan: Plan) -> None:
    python = plan.interpreter
    job.say(
        ("platform", plan.machine.platform),
        ("driver", plan.machine.driver_text or job.texts("none")),
        ("flavour", plan.flavour.name),
        ("source", job.texts(f"source.{plan.source}")),
        ("uv", str(plan.uv.program)),
        ("python", str(python.path) if python else job.texts("python_by_uv")),
        ("download", size(plan.download)),
        ("needed_bytes", size(plan.needed)),
        ("free_bytes", size(plan.free)),
    )
    if plan.passed_over:
        job.say(job.texts("passed_over", names=", ".join(plan.passed_over)))
    if not plan.fits:
        job.say(job.texts.reason("disk_full"))


def _install(job: _Job) -> int:
    with _ending(job):
        try:
            environment = installing.install(
                job.root, job.settings, job.children, job.reporter.stage
            )
        except InstallerError as error:
            status = job.fail(error)
            if state.read_current(job.root) and not job.as_json:
                job.say(job.texts("kept"))
            return status
    job.reporter.close()
    if job.as_json:
        job.lines.write({"event": "installed", "environment": asdict(environment)})
    else:
        job.say(
            job.texts("installed"),
            ("torch", environment.torch or job.texts("none")),
            ("cuda", job.yes_no(environment.cuda_available)),
        )
    return 0


def _verify(job: _Job) -> int:
    with _ending(job):
        result = installing.verify(job.root, job.settings, job.children)
    if job.as_json:
        job.lines.write({"event": "verified", "works": result.works, **result.as_json()})
    elif result.works:
        job.say(
            job.texts("verified"),
            ("torch", result.torch or job.texts("none")),
            ("cuda", job.yes_no(result.cuda_available)),
        )
    else:
        job.say(job.texts("broken", step=result.failed_step))
        sys.stderr.write(f"{result.failure}\n")
    return 0 if result.works else EXIT_FAILED


def _remove(job: _Job) -> int:
    freed = installing.remove(job.root)
    if job.as_json:
        job.lines.write({"event": "removed", "freed_bytes": freed})
    else:
        job.say(job.texts("removed", size=size(freed)))
    return 0


def _configure(job: _Job) -> int:
    stored = RuntimeSettings.stored(job.root).with_values(job.given)
    stored.save(job.root)
    if job.as_json:
        job.lines.write({"event": "configured", "names": sorted(job.given)})
    else:
        job.say(job.texts("saved"))
    return 0
