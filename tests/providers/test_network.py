"""Proxies and certificate authorities: from the settings, else from the environment, never for this machine."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sidecar.kernel.network_settings import CA_FILE_SETTING, PROXY_SETTING
from sidecar.kernel.setting_store import put_setting
from tests.fakes import openai_chat
from tests.fakes.upstream import Turn
from tests.providers.bench import Bench, failure, joined

OUTSIDE = "http://models.example.invalid/v1"


async def put(bench: Bench, name: str, value: str) -> None:
    await bench.database.write(lambda tx: put_setting(tx, name, value))


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize("where", ["settings", "environment"])
async def test_a_proxy_is_used_for_what_lies_outside(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "settings":
        await put(bench, PROXY_SETTING, bench.upstream.url)
    else:
        monkeypatch.setenv("HTTP_PROXY", bench.upstream.url)
    target = await bench.target(base_url=OUTSIDE)
    bench.upstream.answers.append(openai_chat.stream(Turn(text=["好"])))
    assert joined(await bench.stream(target)) == "好"
    assert bench.upstream.received[0].path == f"{OUTSIDE}/chat/completions"


async def test_no_proxy_is_used_for_this_machine(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await put(bench, PROXY_SETTING, "http://127.0.0.1:9")
    target = await bench.target()
    bench.upstream.answers.append(openai_chat.stream(Turn(text=["好"])))
    assert joined(await bench.stream(target)) == "好"


async def test_a_changed_proxy_is_used_from_the_next_call_on(bench: Bench) -> None:
    await put(bench, PROXY_SETTING, "http://127.0.0.1:9")
    target = await bench.target(base_url=OUTSIDE)
    assert failure(await bench.stream(target)) == "PROVIDER_UNAVAILABLE"
    await put(bench, PROXY_SETTING, bench.upstream.url)
    bench.upstream.answers.append(openai_chat.stream(Turn(text=["好"])))
    assert joined(await bench.stream(target)) == "好"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that only whoever is told of it trusts; returns it and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody's own")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    authority, private = folder / "ca.pem", folder / "key.pem"
    authority.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return authority, private


@contextlib.asynccontextmanager
async def tls_server(authority: Path, private: Path) -> AsyncIterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, private)
    body = b"".join(openai_chat.stream(Turn(text=["好"])).pieces)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("where", ["settings", "environment", "nowhere"])
async def test_an_authority_of_ones_own(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any
) -> None:
    authority, private = certificate(tmp_path)
    if where == "settings":
        await put(bench, CA_FILE_SETTING, str(authority))
    elif where == "environment":
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with tls_server(authority, private) as url:
        events = await bench.stream(await bench.target(base_url=url))
    if where == "nowhere":
        assert failure(events) == "PROVIDER_UNAVAILABLE"
    else:
        assert joined(events) == "好"


async def test_an_authority_that_cannot_be_read(bench: Bench, tmp_path: Path) -> None:
    await put(bench, CA_FILE_SETTING, str(tmp_path / "missing.pem"))
    events = await bench.stream(await bench.target())
    assert failure(events) == "PROVIDER_UNAVAILABLE"
    assert "missing.pem" not in str(events)


async def test_no_cookie_is_kept(bench: Bench) -> None:
    target = await bench.target()
    for _ in range(2):
        answer = openai_chat.whole(Turn(text=["好"]))
        answer.headers["Set-Cookie"] = "account=1; Path=/"
        bench.upstream.answers.append(answer)
        await bench.complete(target)
    assert all("cookie" not in request.headers for request in bench.upstream.received)


@pytest.mark.parametrize("proxy", ["no address", "gopher://127.0.0.1:9", "http://[::1"])
async def test_a_proxy_that_is_none(bench: Bench, proxy: str) -> None:
    await put(bench, PROXY_SETTING, proxy)
    assert (
        failure(await bench.stream(await bench.target(base_url=OUTSIDE))) == "PROVIDER_UNAVAILABLE"
    )
