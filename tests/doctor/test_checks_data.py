"""The data directory and what lies in it are looked at, and left exactly as they were."""

import sqlite3
import sys
from pathlib import Path

import pytest

from sidecar.doctor.checks_data import (
    check_data_directory,
    check_database,
    check_instance,
    check_managed_runtime,
)
from sidecar.kernel.instance_lock import InstanceLock
from sidecar.kernel.migrations import migrate, migration_scripts
from sidecar.kernel.paths import DataPaths

LATEST = migration_scripts()[-1][0]


@pytest.fixture
def paths(tmp_path: Path) -> DataPaths:
    """A data directory as a first start leaves it."""
    made = DataPaths(tmp_path / "data")
    made.create()
    migrate(made.database)
    return made


def files(paths: DataPaths) -> dict[str, bytes]:
    return {
        str(path.relative_to(paths.root)): path.read_bytes()
        for path in paths.root.rglob("*")
        if path.is_file()
    }


def set_revision(path: Path, revision: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {revision}")
    connection.close()


def test_a_directory_that_the_first_start_will_make_is_fine_and_not_made(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path / "new" / "data")

    for check in (check_data_directory, check_database, check_instance):
        assert check(paths).status == "ok"
    assert check_managed_runtime(paths).status == "missing"
    assert not (tmp_path / "new").exists()


def test_a_directory_in_use_is_fine_and_left_as_it_was(paths: DataPaths) -> None:
    before = files(paths)

    finding = check_data_directory(paths)

    assert finding.status in ("ok", "warning")
    assert finding.details["writable"] is True
    assert finding.details["free_bytes"]
    assert check_database(paths).status == "ok"
    assert files(paths) == before


@pytest.mark.parametrize("below", ["", "data"])
def test_a_file_in_the_way_is_an_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    finding = check_data_directory(DataPaths(tmp_path / "file" / below))

    assert finding.status == "error"
    assert finding.hint is not None


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody can write to")
def test_a_directory_that_refuses_files_is_an_error() -> None:
    finding = check_data_directory(DataPaths(Path("/proc")))

    assert (finding.status, finding.summary.key) == ("error", "doctor.data_directory.read_only")


@pytest.mark.parametrize(
    ("offset", "status", "key"),
    [(0, "ok", "current"), (-1, "warning", "older"), (1, "error", "newer")],
)
def test_the_database_revision(paths: DataPaths, offset: int, status: str, key: str) -> None:
    set_revision(paths.database, LATEST + offset)
    before = files(paths)

    finding = check_database(paths)

    assert (finding.status, finding.summary.key) == (status, f"doctor.database.{key}")
    assert finding.details["revision"] == LATEST + offset
    assert files(paths) == before


def test_a_revision_that_is_still_in_the_write_ahead_log_counts(paths: DataPaths) -> None:
    connection = sqlite3.connect(paths.database)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA user_version = {LATEST + 7}")
        assert check_database(paths).details["revision"] == LATEST + 7
    finally:
        connection.close()


def test_a_file_that_is_no_database_is_an_error(paths: DataPaths) -> None:
    paths.database.write_bytes(b"no database " * 1000)

    finding = check_database(paths)

    assert (finding.status, finding.summary.key) == ("error", "doctor.database.unreadable")


def test_a_lock_file_without_its_process_does_no_harm(paths: DataPaths) -> None:
    # No system gives out a process id of this size.
    paths.lock.write_text('{"pid": 2147483646, "port": 4711}', encoding="utf-8")

    finding = check_instance(paths)

    assert (finding.status, finding.summary.key) == ("ok", "doctor.instance.stale")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x", "port": null}'])
def test_any_content_of_the_lock_file_is_read(paths: DataPaths, content: str) -> None:
    paths.lock.write_text(content, encoding="utf-8")

    assert check_instance(paths).status == "ok"


@pytest.mark.skipif(sys.platform == "win32", reason="a held lock file cannot be read there")
def test_a_holder_of_the_lock_is_starting_or_silent(paths: DataPaths, unused_port: int) -> None:
    lock = InstanceLock(paths.lock)
    lock.acquire()
    try:
        assert check_instance(paths).summary.key == "doctor.instance.starting"
        lock.write(port=unused_port)
        finding = check_instance(paths)
        assert (finding.status, finding.summary.key) == ("warning", "doctor.instance.silent")
    finally:
        lock.release()


def test_a_managed_runtime_is_seen(paths: DataPaths) -> None:
    paths.runtime.mkdir()
    assert check_managed_runtime(paths).status == "missing"
    (paths.runtime / "current").write_text("env-1", encoding="utf-8")
    assert check_managed_runtime(paths).status == "ok"
