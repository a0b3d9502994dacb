"""Child processes on the three systems: a clean environment for them, and an end for their whole tree.

POSIX: a child leads a session of its own; its descendants are found by parentage and killed with
it. Windows: a child is put into a job object that the system closes, and with it every descendant,
when this process goes away.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psutil

# A worker's line can hold a whole transcript.
LINE_LIMIT: Final = 16 * 1024 * 1024
TERMINATE_GRACE_SECONDS: Final = 1.5

_DROPPED_PREFIXES: Final = (
    "_PYI_",
    "_MEI",
    "FONTCONFIG_",
    "PYTHON",
    "APP_",
    "SIDECAR_",
    "NOTESAGENT_",
)
_DROPPED: Final = frozenset({"MPLCONFIGDIR", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"})
_SECRET_WORDS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_LIBRARY_PATHS: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBPATH")


def child_environment(
    extra: Mapping[str, str] | None = None, *, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment that a child gets.

    It lacks everything of ours (paths of the vault and the data directory), what looks like a
    secret, and what a frozen program sets for itself; library paths get back the values that they
    had before this program was started. *extra* is added as it is.
    """
    source = os.environ if base is None else base
    kept = {
        name: value
        for name, value in source.items()
        if not name.upper().startswith(_DROPPED_PREFIXES)
        and name.upper() not in _DROPPED
        and not any(word in name.upper() for word in _SECRET_WORDS)
    }
    for name in _LIBRARY_PATHS:
        original = kept.pop(f"{name}_ORIG", None)
        if original is not None:
            kept[name] = original
        elif getattr(sys, "frozen", False):
            kept.pop(name, None)
    kept.update(extra or {})
    return kept


def own_command(*arguments: str) -> list[str]:
    """Return the command that runs this same program with *arguments*, frozen or from source."""
    if getattr(sys, "frozen", False):
        return [sys.executable, *arguments]
    return [sys.executable, "-m", "sidecar", *arguments]


def own_environment() -> dict[str, str]:
    """Return what a child that runs this same program needs besides :func:`child_environment`."""
    if getattr(sys, "frozen", False):
        # On Windows the bootloader otherwise takes the child for a part of its parent.
        return {"PYINSTALLER_RESET_ENVIRONMENT": "1"}
    root = str(Path(__file__).resolve().parents[2])
    return {"PYTHONPATH": root, "PYTHONUTF8": "1"}


# Given as text: only our own packages are found in our folder, which in a frozen program holds parts of
# others that must not pass for the interpreter's own. Nothing is written beside our sources.
_PLAIN_PROGRAM: Final = """
import sys
from importlib import import_module
from importlib.machinery import PathFinder
root, module = sys.argv[1:3]
class OwnSources:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == module.partition(".")[0]:
            return PathFinder.find_spec(name, [root] if path is None else path)
sys.meta_path.insert(0, OwnSources)
before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
main = import_module(module).main
sys.dont_write_bytecode = before
main()
"""


def plain_command(
    interpreter: Path, module: str, *, write_bytecode: bool = True, root: Path | None = None
) -> list[str]:
    """Return the command that runs the ``main`` of one of our modules with a foreign interpreter.

    The module, and all of ours that it imports, must be shipped as plain source
    (``sidecar.workers.PLAIN_SOURCES``) and need nothing that the interpreter lacks. *root* is the
    folder that our packages lie in. Only with *write_bytecode* the interpreter's packages may be
    compiled in place.
    """
    options = ["-I"] if write_bytecode else ["-I", "-B"]
    where = root or Path(__file__).resolve().parents[2]
    return [str(interpreter), *options, "-c", _PLAIN_PROGRAM, str(where), module]


async def spawn(
    command: Sequence[str], *, environment: Mapping[str, str], cwd: Path | None = None
) -> asyncio.subprocess.Process:
    """Start a child with pipes for its three streams. Raises OSError if it can't be started."""
    options: dict[str, Any] = {}
    if sys.platform == "win32":
        options["creationflags"] = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
    else:
        options["start_new_session"] = True
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=cwd,
        limit=LINE_LIMIT,
        **options,
    )
    if sys.platform == "win32":
        _put_into_job_object(process.pid)
    return process


def _tree(pid: int) -> list["psutil.Process"]:
    import psutil  # noqa: PLC0415 - not needed before ready

    try:
        parent = psutil.Process(pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []


def _signal_all(processes: list["psutil.Process"], *, kill: bool) -> None:
    import psutil  # noqa: PLC0415

    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if kill:
                process.kill()
            else:
                process.terminate()


def kill_group(pid: int) -> None:
    """Kill whatever still runs in the process group that the child *pid* leads (POSIX)."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def kill_tree(pid: int) -> None:
    """Kill a child and all its descendants at once, without waiting for them."""
    processes = _tree(pid)
    kill_group(pid)
    _signal_all(processes, kill=True)


def kill_descendants() -> None:
    """Kill every process below this one at once: the last resort of a stop that takes too long."""
    _signal_all(_tree(os.getpid())[:-1], kill=True)


async def exited(process: asyncio.subprocess.Process, *, look_every: float = 0.02) -> None:
    """Wait for a child's own end.

    ``process.wait()`` also waits for the end of its pipes, which a descendant may hold open.
    """
    while process.returncode is None:  # noqa: ASYNC110 - asyncio has no event of it
        await asyncio.sleep(look_every)


async def end_tree(
    process: asyncio.subprocess.Process, *, grace: float = TERMINATE_GRACE_SECONDS
) -> None:
    """End a child and its descendants: ask first, and kill what is left after *grace* seconds."""
    tree = await asyncio.to_thread(_tree, process.pid)
    if process.returncode is None and grace > 0:
        _signal_all(tree, kill=False)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(exited(process), grace)
    kill_group(process.pid)
    _signal_all(tree, kill=True)
    await exited(process)


def process_exists(pid: int) -> bool:
    """Whether a process of this id is alive; a zombie isn't."""
    import psutil  # noqa: PLC0415

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


_job_object: int | None = None


def _put_into_job_object(pid: int) -> None:
    """Tie the child to a job object that kills its processes when this process ends (Windows)."""
    if sys.platform != "win32":
        return
    global _job_object  # noqa: PLW0603 - one job object for the life of the process
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.CreateJobObjectW.restype = ctypes.c_void_p
    kernel32.OpenProcess.restype = ctypes.c_void_p
    if _job_object is None:
        _job_object = kernel32.CreateJobObjectW(None, None)
        # JOBOBJECT_EXTENDED_LIMIT_INFORMATION (class 9): LimitFlags is the 32-bit field at byte 16;
        # 0x2000 is JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE.
        information = (ctypes.c_byte * 144)()
        ctypes.cast(ctypes.addressof(information) + 16, ctypes.POINTER(ctypes.c_uint32))[0] = 0x2000
        kernel32.SetInformationJobObject(
            ctypes.c_void_p(_job_object), 9, information, len(information)
        )
    # PROCESS_SET_QUOTA | PROCESS_TERMINATE
    handle = kernel32.OpenProcess(0x0101, False, pid)
    if handle:
        kernel32.AssignProcessToJobObject(ctypes.c_void_p(_job_object), ctypes.c_void_p(handle))
        kernel32.CloseHandle(ctypes.c_void_p(handle))
