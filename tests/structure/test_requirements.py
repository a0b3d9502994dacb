"""The locks belong to what `pyproject.toml` declares, pin everything by hash, and name no address."""

import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.structure.imports import ROOT

LOCKS = {
    "runtime": ("speech", "embedding"),
    "dev": ("speech", "embedding", "dev"),
    "freeze": ("speech", "embedding", "freeze"),
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def text_of(lock: str) -> str:
    return (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")


def pins(lock: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, version and options of each entry."""
    for entry in text_of(lock).replace("\\\n", " ").splitlines():
        if entry and not entry.startswith("#"):
            pin, _, options = entry.partition(" ")
            name, _, version = pin.partition("==")
            yield normal(name), version, options


@pytest.mark.parametrize("lock", [*LOCKS, "models"])
def test_every_entry_has_a_version_and_a_hash(lock: str) -> None:
    entries = list(pins(lock))
    assert entries
    assert [
        name for name, version, options in entries if not version or "--hash=sha256:" not in options
    ] == []


@pytest.mark.parametrize("lock", [*LOCKS, "models"])
def test_no_lock_names_an_address(lock: str) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text_of(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_all_that_is_declared_is_locked(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = list(project["dependencies"])
    for extra in LOCKS[lock]:
        declared += project["optional-dependencies"][extra]
    names = {normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in declared}  # type: ignore[index]
    assert names - {name for name, _, _ in pins(lock)} == set()


def test_the_locks_agree_since_one_environment_holds_them_all() -> None:
    versions: dict[str, set[str]] = {}
    for name, version, options in pins("runtime"):
        versions.setdefault(name + options.partition("--hash")[0], set()).add(version)
    for lock in ("dev", "freeze"):
        for name, version, options in pins(lock):
            key = name + options.partition("--hash")[0]
            assert versions.get(key, {version}) == {version}


def test_the_demo_model_is_no_dependency() -> None:
    models = {name for name, _, _ in pins("models")}
    assert not models & {name for lock in LOCKS for name, _, _ in pins(lock)}
