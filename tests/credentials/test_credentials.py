"""Credentials over HTTP: secrets go in, and nothing brings them out."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.kernel import credentials
from tests.app_client import RunningApp, running_app

SECRET = "canary-e83f1c-of-the-user's-own-key"
PATH = "/api/credentials/provider.openai"


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets go to the encrypted file: the machine's keyring is the user's."""
    monkeypatch.setattr(credentials, "_keyring_works", lambda: False)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """A running application without a vault."""
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as running:
        yield running


@pytest.mark.proves(
    "providers.credentials.get", "providers.credentials.put", "providers.credentials.delete"
)
async def test_a_secret_is_stored_and_removed(app: RunningApp) -> None:
    state = {"credential_id": "provider.openai", "configured": False}
    for _ in range(2):
        answer = await app.http.get(PATH)
        assert (answer.status_code, answer.json()) == (200, state)
        put = await app.http.put(PATH, json={"secret": SECRET})
        assert put.status_code == 200
        assert put.json() == {**state, "configured": True}
        answer = await app.http.get(PATH)
        assert answer.json() == {**state, "configured": True}
        assert SECRET not in put.text + answer.text
        assert await app.services.credentials.get("provider.openai") == SECRET
        assert (await app.http.get(PATH + "x")).json()["configured"] is False
        for _ in range(2):
            gone = await app.http.delete(PATH)
            assert (gone.status_code, gone.content) == (204, b"")
        assert await app.services.credentials.get("provider.openai") is None


@pytest.mark.proves("providers.credentials.put-replaces")
async def test_a_second_secret_replaces_the_first(app: RunningApp) -> None:
    await app.http.put(PATH, json={"secret": SECRET})
    await app.http.put(PATH, json={"secret": f"  {SECRET}-2 "})
    assert await app.services.credentials.get("provider.openai") == f"{SECRET}-2"


@pytest.mark.proves("providers.credentials.put-invalid")
@pytest.mark.parametrize(
    "secret",
    [
        "",
        "   ",
        "line\nbreak-of-a-secret",
        "return\rof-a-secret",
        "end-of-a-secret\n",
        "separator\u2028of-a-secret",
        "nul\x01of-a-secret",
        "s" * (16 * 1024 + 1),
        "密" * (16 * 1024 // 3 + 1),
        None,
        17,
    ],
)
async def test_a_bad_secret_leaves_the_old_one(app: RunningApp, secret: object) -> None:
    await app.http.put(PATH, json={"secret": SECRET})
    answer = await app.http.put(PATH, json={"secret": secret})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert answer.json()["error"]["details"]["errors"][0]["loc"] == ["body", "secret"]
    assert "of-a-secret" not in answer.text
    assert await app.services.credentials.get("provider.openai") == SECRET


async def test_limits_of_a_secret(app: RunningApp) -> None:
    for secret in ("x", "s" * 16 * 1024, "密" * (16 * 1024 // 3), 'it\'s {"a": 1} +/=~'):
        answer = await app.http.put(PATH, json={"secret": secret})
        assert answer.status_code == 200
        assert await app.services.credentials.get("provider.openai") == secret
    answer = await app.http.put(PATH, json={"secret": SECRET, "value": SECRET})
    assert answer.status_code == 422
    assert SECRET not in answer.text


def files_below(folder: Path) -> list[Path]:
    """Return every file in a folder and the folders below it."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.proves("providers.credentials.encrypted")
async def test_no_file_holds_the_secret_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        await app.http.put(PATH, json={"secret": SECRET})
    files = files_below(tmp_path)
    assert {"app.db", "credentials.bin"} <= {path.name for path in files}
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as app:
        assert (await app.http.get(PATH)).json()["configured"] is True
        assert await app.services.credentials.get("provider.openai") == SECRET


def encoded(text: str) -> str:
    """Percent-encode every character."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


RESERVED = (
    "{0}.notes",  # plain
    "{1}.notes",  # upper
    "{2}.Notes",  # mixed
    "{0}%2Enotes",  # encoded dot
    "{0}%2enotes",  # encoded dot, small
    "{0}%252Enotes",  # encoded twice
    "{0}%25252Enotes",  # encoded thrice
    "{3}%2Enotes",  # all encoded
    "%20{0}.notes",  # blank before
    "%20%09{2}.notes%20",  # blanks and tab
    "{0}%20.notes",  # blank before the dot
    "%C2%A0{0}.notes",  # no-break space
    "%E3%80%80{0}.notes",  # ideographic space
    "%E2%80%8B{0}.notes",  # zero width
    "%EF%BB%BF{0}.notes",  # byte order mark
    "%0A{0}.notes",  # line break
    "{4}%EF%BC%8Enotes",  # full width
)


@pytest.mark.proves(
    "providers.credentials.reserved-plugin-api",
    "providers.credentials.reserved-mcp-api",
    "providers.credentials.reserved-variants",
)
@pytest.mark.parametrize("namespace", ["plugin", "mcp"])
async def test_a_reserved_namespace_cannot_be_dodged(app: RunningApp, namespace: str) -> None:
    kept = f"{namespace}.notes"
    await app.services.credentials.set(kept, SECRET)
    wide = encoded("".join(chr(ord(letter) + 0xFEE0) for letter in namespace))
    for variant in RESERVED:
        name = variant.format(
            namespace, namespace.upper(), namespace.title(), encoded(namespace), wide
        )
        path = f"/api/credentials/{name}"
        for answer in (
            await app.http.get(path),
            await app.http.put(path, json={"secret": "of-the-attacker"}),
            await app.http.delete(path),
        ):
            assert answer.status_code == 403, (path, answer.text)
            assert answer.json()["error"]["code"] == "CREDENTIAL_NAMESPACE_RESERVED"
            assert "configured" not in answer.text
            assert SECRET not in answer.text
    assert await app.services.credentials.get(kept) == SECRET


async def test_ids_that_are_none(app: RunningApp) -> None:
    for name in (
        "%2E%2E%2Fkey",
        ".hidden",
        "a b",
        "a" * 201,
        "密钥",
        "a%00b",
        "-x",
        "provider.%2F",
    ):
        for answer in (
            await app.http.get(f"/api/credentials/{name}"),
            await app.http.put(f"/api/credentials/{name}", json={"secret": SECRET}),
            await app.http.delete(f"/api/credentials/{name}"),
        ):
            assert answer.status_code == 404, name
    # Only the namespace is reserved, not the word.
    for name in ("plugins.x", "provider.plugin.x", "mcpx", "plugin", "x.mcp.y"):
        answer = await app.http.put(f"/api/credentials/{name}", json={"secret": SECRET})
        assert answer.status_code == 200, name


@pytest.mark.proves("providers.credentials.never-out")
async def test_a_store_that_cannot_be_read_says_so_without_the_secret(
    app: RunningApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await app.http.put(PATH, json={"secret": SECRET})
    file = app.data_dir / "credentials" / "credentials.bin"
    file.write_bytes(b"damaged")
    for answer in (
        await app.http.get(PATH),
        await app.http.put(PATH, json={"secret": SECRET}),
        await app.http.delete(PATH),
    ):
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "CREDENTIAL_STORE_ERROR"
        assert SECRET not in answer.text
    assert file.read_bytes() == b"damaged"
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps((await app.http.get("/api/system/info")).json())
