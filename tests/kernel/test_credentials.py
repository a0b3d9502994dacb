"""Credentials: secrets go in, stay encrypted, and never come out where they shouldn't."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.kernel import credentials
from sidecar.kernel.credentials import CredentialStore, check_public_id
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.redaction import redactor
from tests.app_client import ROOT

SECRET = "sk-canary-of-the-credential-store"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CredentialStore:
    """A store on a machine without a keyring."""
    monkeypatch.setattr(credentials, "_keyring_works", lambda: False)
    return CredentialStore(tmp_path / "credentials")


async def test_a_secret_comes_back_also_after_a_restart(
    store: CredentialStore, tmp_path: Path
) -> None:
    assert await store.get("provider.openai") is None
    await store.set("provider.openai", SECRET)
    await store.set("provider.other", "秘密 ")
    await store.set("provider.openai", SECRET + "2")
    again = CredentialStore(tmp_path / "credentials")
    assert await again.get("provider.openai") == SECRET + "2"
    assert await again.get("provider.other") == "秘密 "
    assert await again.delete("provider.openai") is True
    assert await again.delete("provider.openai") is False
    assert await store.get("provider.openai") is None


async def test_no_file_shows_the_secret_and_others_cannot_read_it(
    store: CredentialStore, tmp_path: Path
) -> None:
    await store.set("provider.openai", SECRET)
    files = [file for file in (tmp_path / "credentials").rglob("*") if file.is_file()]
    assert {file.name for file in files} == {"credentials.bin", "key"}
    for file in files:
        assert SECRET.encode() not in file.read_bytes()
        assert b"provider.openai" not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "credentials").stat().st_mode) == 0o700
    assert SECRET not in redactor.text(f"it is {SECRET}")


async def test_writes_at_once_lose_none(store: CredentialStore) -> None:
    await asyncio.gather(*(store.set(f"provider.p{n}", f"secret-{n}") for n in range(40)))
    found = await asyncio.gather(*(store.get(f"provider.p{n}") for n in range(40)))
    assert found == [f"secret-{n}" for n in range(40)]


@pytest.mark.parametrize("damage", ["cut", "other bytes", "other key", "no key", "key of nonsense"])
async def test_a_damaged_file_is_an_error_and_is_kept(
    store: CredentialStore, tmp_path: Path, damage: str
) -> None:
    await store.set("provider.openai", SECRET)
    file, key = tmp_path / "credentials" / "credentials.bin", tmp_path / "credentials" / "key"
    match damage:
        case "cut":
            file.write_bytes(file.read_bytes()[:-20])
        case "other bytes":
            file.write_bytes(b"\x00" * 100)
        case "other key":
            key.write_bytes(b"A" * 43 + b"=")
        case "no key":
            key.unlink()
        case "key of nonsense":
            key.write_bytes(b"nonsense")
    before = file.read_bytes()
    for act in (
        lambda: store.get("provider.openai"),
        lambda: store.set("provider.new", SECRET),
        lambda: store.delete("provider.openai"),
    ):
        with pytest.raises(ProjectError, match="CREDENTIAL_STORE_ERROR"):
            await act()
    # The user may still bring the key back from a backup.
    assert file.read_bytes() == before


async def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = CredentialStore(tmp_path / "file")
    store._backend = "file"
    with pytest.raises(ProjectError, match="CREDENTIAL_STORE_ERROR"):
        await store.set("provider.openai", SECRET)


@pytest.mark.parametrize(
    ("credential_id", "code"),
    [
        ("plugin.x", "CREDENTIAL_NAMESPACE_RESERVED"),
        ("MCP.x", "CREDENTIAL_NAMESPACE_RESERVED"),
        ("", "RESOURCE_NOT_FOUND"),
        ("../key", "RESOURCE_NOT_FOUND"),
        ("a/b", "RESOURCE_NOT_FOUND"),
        ("a" * 201, "RESOURCE_NOT_FOUND"),
    ],
)
def test_ids_that_a_client_must_not_name(credential_id: str, code: str) -> None:
    with pytest.raises(ProjectError, match=code):
        check_public_id(credential_id)


def test_a_keyring_that_hangs_or_fails_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    import keyring

    monkeypatch.setattr(credentials, "PROBE_SECONDS", 0.2)
    let_go = threading.Event()
    monkeypatch.setattr(keyring, "set_password", lambda *_: let_go.wait(20))
    try:
        assert CredentialStore(tmp_path).backend() == "file"
    finally:
        let_go.set()

    def locked(*_: str) -> None:
        raise RuntimeError("locked")

    monkeypatch.setattr(keyring, "set_password", locked)
    assert CredentialStore(tmp_path).backend() == "file"


KEYRING_PROGRAM = """
import asyncio, pathlib, sys
from sidecar.kernel.credentials import CredentialStore

async def main(folder, secret):
    store = CredentialStore(folder)
    assert store.backend() == "keyring", store.backend()
    await store.set("provider.openai", secret)
    again = CredentialStore(folder)
    assert await again.get("provider.openai") == secret
    assert await again.delete("provider.openai") is True
    assert await again.get("provider.openai") is None
    assert not folder.exists(), "nothing is written beside the keyring"

asyncio.run(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.skipif(
    shutil.which("dbus-run-session") is None or shutil.which("gnome-keyring-daemon") is None,
    reason="needs dbus-run-session and gnome-keyring",
)
def test_a_real_keyring(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(KEYRING_PROGRAM, encoding="utf-8")
    script = (
        'printf "\\n" | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$@"'
    )
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    subprocess.run(
        [
            *("dbus-run-session", "--", "sh", "-c", script, "sh"),
            *(sys.executable, str(program), str(tmp_path / "credentials"), SECRET),
        ],
        check=True,
        timeout=60,
        cwd=ROOT,
        env=environment | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
