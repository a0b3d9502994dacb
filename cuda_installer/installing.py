"""The installation as a transaction, and its counterparts: verify and remove."""

import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cuda_installer import probe as probing
from cuda_installer import state
from cuda_installer.children import Children
from cuda_installer.errors import Cancelled, InstallerError, of_os_error
from cuda_installer.interpreters import find_or_install
from cuda_installer.planning import Plan, make_plan
from cuda_installer.probe import ProbeResult
from cuda_installer.settings import RuntimeSettings
from cuda_installer.state import STAGES, Environment, LastInstall

Report = Callable[[str, str], None]
"""Gets the name of the stage and a line about it for a person at a terminal, which may be empty."""


class _Stages:
    """Tells each stage once, in their order, and notes it on disk."""

    def __init__(self, root: Path, report: Report) -> None:
        self._root = root
        self._report = report
        self._at = -1
        self.flavour: str | None = None

    def begin(self, stage: str, line: str = "") -> None:
        position = STAGES.index(stage)
        if position > self._at:
            self._at = position
            state.write_last(self._root, LastInstall("installing", stage, None, self.flavour))
            self._report(stage, line)
        elif line:
            self._report(STAGES[self._at], line)


def install(
    root: Path, settings: RuntimeSettings, children: Children, report: Report
) -> Environment:
    """Install the runtime into *root* and make it the one that counts.

    Raises InstallerError; then the environment that counted before still does. The outcome is in
    the state file in either case, unless another installation runs (``busy``) or the user has an
    interpreter of their own (``custom_interpreter``).
    """
    if settings.interpreter:
        raise InstallerError("custom_interpreter")
    with state.installation_lock(root):
        stages = _Stages(root, report)
        try:
            stages.begin("preparing")
            state.remove_leftovers(root)
            environment = _fill_and_switch(root, settings, children, stages)
        except Cancelled:
            state.write_last(root, LastInstall("interrupted", None, "cancelled", stages.flavour))
            raise
        except InstallerError as error:
            _write_failure(root, error, stages.flavour)
            raise
        except OSError as error:
            failure = of_os_error(error)
            _write_failure(root, failure, stages.flavour)
            raise failure from error
        finally:
            state.remove_leftovers(root)
        state.write_last(root, LastInstall("done", None, None, environment.flavour))
        return environment


def _write_failure(root: Path, error: InstallerError, flavour: str | None) -> None:
    # What the failed attempt wrote goes first: on a full disk there is no room for a word until then.
    state.remove_leftovers(root)
    last = LastInstall("failed", None, error.reason, flavour, error.figures)
    state.write_last(root, last)


def _fill_and_switch(
    root: Path, settings: RuntimeSettings, children: Children, stages: _Stages
) -> Environment:
    plan = make_plan(root, settings, children)
    stages.flavour = plan.flavour.name
    if not plan.fits:
        raise InstallerError(
            "disk_full",
            f"{plan.needed} bytes needed, {plan.free} free",
            {"needed_bytes": plan.needed, "free_bytes": plan.free},
        )
    now = datetime.now(UTC)
    name = f"{plan.flavour.name}-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"
    folder = root / state.ENVIRONMENTS / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    stages.begin("creating_environment")
    interpreter = plan.interpreter or find_or_install(plan.build.pythons, plan.uv)
    plan.uv.make_environment(interpreter.path, folder)
    python = state.environment_python(folder)
    plan.uv.install_lock(plan.flavour, python, stages.begin)
    _prune(plan, folder)
    stages.begin("verifying")
    steps = probing.steps_of(plan.flavour.locked_versions())
    result = probing.probe(python, steps, children)
    probing.require_works(result)
    if result.cuda != plan.flavour.cuda:
        # uv has been seen to install another kind without a word.
        raise InstallerError("wrong_flavour", f"{result.cuda} instead of {plan.flavour.cuda}")
    children.check()
    stages.begin("finishing")
    environment = Environment(
        name,
        plan.flavour.name,
        plan.flavour.lock_digest(),
        result.torch,
        result.cuda,
        result.cuda_available,
        steps,
        f"{now:%Y-%m-%dT%H:%M:%SZ}",
    )
    state.switch_to(root, environment)
    return environment


def _prune(plan: Plan, folder: Path) -> None:
    if not plan.machine.platform.startswith("linux"):
        return
    for site in folder.glob("lib/python*/site-packages"):
        for pattern in plan.flavour.prune:
            for file in site.glob(pattern):
                # It is a hard link into uv's cache: it goes here and stays there.
                file.unlink()


def verify(root: Path, settings: RuntimeSettings, children: Children) -> ProbeResult:
    """Run real code in the environment that counts, or in the user's own interpreter.

    InstallerError ``not_installed`` if there is neither.
    """
    if settings.interpreter:
        return probing.probe(
            Path(settings.interpreter), probing.ALL_STEPS, children, write_bytecode=False
        )
    current = state.read_current(root)
    if current is None:
        raise InstallerError("not_installed")
    return probing.probe(current.python(root), current.steps, children)


def remove(root: Path) -> int:
    """Remove every environment, uv's cache and its interpreters; return how many bytes that frees.

    The user's settings stay. InstallerError ``busy`` while an installation runs.
    """
    if not root.is_dir():
        return 0
    with state.installation_lock(root):
        before = _bytes_in(root)
        state.clear(root)
        return before - _bytes_in(root)


def _bytes_in(folder: Path) -> int:
    """Return the bytes of the files below *folder*; one with several names counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            status = (Path(parent) / name).lstat()
            sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())
