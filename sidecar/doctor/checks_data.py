"""The data directory, who serves it, its database and the managed runtime. Nothing is created or changed."""

import http.client
import json
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from sidecar.doctor.findings import Finding, message
from sidecar.doctor.runner import short_reason
from sidecar.doctor.sizes import readable_size
from sidecar.kernel.migrations import migration_scripts
from sidecar.kernel.paths import DATA_DIR_VARIABLE, DataPaths
from sidecar.kernel.processes import process_exists

LITTLE_SPACE: Final = 2 * 1000**3
"""Below this a large model, or an export of a long recording, may not fit. In bytes."""

_ANSWER_SECONDS: Final = 1.0


def check_data_directory(paths: DataPaths) -> Finding:
    """Whether the directory can be used, or can be made by the first start."""
    root = paths.root
    details: dict[str, object] = {"path": str(root), "exists": root.is_dir(), "writable": False}
    hint = message("data_directory.hint", variable=DATA_DIR_VARIABLE)
    if not root.is_dir():
        place = _nearest_existing(root)
        usable = (
            not os.path.lexists(root) and place.is_dir() and os.access(place, os.W_OK | os.X_OK)
        )
        if not usable:
            return Finding("error", message("data_directory.impossible", path=root), hint, details)
    else:
        place = root
        problem = _write_problem(root)
        if problem is not None:
            summary = message("data_directory.read_only", path=root, reason=problem)
            return Finding("error", summary, hint, details)
        details["writable"] = True
    free = shutil.disk_usage(place).free
    details["free_bytes"] = free
    key = "data_directory.ready" if root.is_dir() else "data_directory.not_yet"
    summary = message(key, path=root, free=readable_size(free))
    if free < LITTLE_SPACE:
        return Finding("warning", summary, message("data_directory.space_hint"), details)
    return Finding("ok", summary, None, details)


def _nearest_existing(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if os.path.lexists(parent))


def _write_problem(folder: Path) -> str | None:
    # Permission bits tell too little: read-only mounts, access lists, full disks, another system.
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="doctor-") as probe:
            probe.write(b"x")
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def check_instance(paths: DataPaths) -> Finding:
    """Whether a sidecar serves the directory now."""
    pid, port = _lock_content(paths.lock)
    details: dict[str, object] = {"pid": pid, "port": port}
    if pid is None or not process_exists(pid):
        key = "instance.stale" if paths.lock.exists() else "instance.none"
        return Finding("ok", message(key), None, details)
    if port is None:
        return Finding("ok", message("instance.starting", pid=pid), None, details)
    if _answers(port):
        return Finding("ok", message("instance.running", pid=pid, port=port), None, details)
    summary = message("instance.silent", pid=pid, port=port)
    return Finding("warning", summary, message("instance.silent.hint", pid=pid), details)


def _lock_content(lock: Path) -> tuple[int | None, int | None]:
    """Return the pid and the port that the lock file names."""
    try:
        content = json.loads(lock.read_bytes())
    except (OSError, ValueError):
        # No file, one that is being written, or on Windows one that its holder keeps to itself.
        return None, None
    if not isinstance(content, dict):
        return None, None
    pid, port = content.get("pid"), content.get("port")
    return (pid if isinstance(pid, int) else None), (port if isinstance(port, int) else None)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def check_database(paths: DataPaths) -> Finding:
    """Whether the database's schema is one that this version can use."""
    expected = migration_scripts()[-1][0]
    details: dict[str, object] = {"path": str(paths.database), "expected_revision": expected}
    if not paths.database.exists():
        return Finding("ok", message("database.not_yet"), None, details | {"revision": None})
    try:
        revision = _revision(paths.database)
    except sqlite3.Error as error:
        summary = message("database.unreadable", reason=short_reason(error))
        return Finding("error", summary, message("database.unreadable.hint"), details)
    details["revision"] = revision
    numbers = {"revision": revision, "expected": expected}
    if revision > expected:
        hint = message("database.newer.hint")
        return Finding("error", message("database.newer", **numbers), hint, details)
    if revision < expected:
        hint = message("database.older.hint")
        return Finding("warning", message("database.older", **numbers), hint, details)
    size = readable_size(paths.database.stat().st_size)
    return Finding("ok", message("database.current", size=size, **numbers), None, details)


def _revision(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    # Where no log is left, nobody has the file open, and SQLite need not make files beside it.
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=1.0)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def check_managed_runtime(paths: DataPaths) -> Finding:
    """Whether the managed runtime's folder holds anything."""
    folder = paths.runtime
    details: dict[str, object] = {"path": str(folder)}
    if folder.is_dir() and any(folder.iterdir()):
        return Finding("ok", message("managed_runtime.present", path=folder), None, details)
    summary, hint = message("managed_runtime.absent"), message("managed_runtime.hint")
    return Finding("missing", summary, hint, details)
