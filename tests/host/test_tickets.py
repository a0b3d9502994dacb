"""Addresses for elements of a page that can't send a header."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from sidecar.kernel.clock import parse_utc
from sidecar.kernel.http.tickets import TICKET_SECONDS, Tickets
from sidecar.system.packages import PACKAGE_SECONDS, PackageHandles
from tests.app_client import ROOT, RunningApp, running_app
from tests.host.conftest import Start
from tests.host.serving import Serving

RECORDING = ROOT / "sidecar" / "demo" / "recordings" / "en-jfk.flac"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    async with running_app(tmp_path) as running:
        yield running


async def _content_path(app: RunningApp) -> str:
    files = {"file": ("a.flac", RECORDING.read_bytes(), "audio/flac")}
    answer = await app.http.post("/api/media/attachments", files=files)
    assert answer.status_code == 201, answer.text
    return f"/api/media/attachments/{answer.json()['attachment_id']}/content"


async def _export_path(app: RunningApp) -> str:
    body = {"source": {"type": "markdown", "markdown": "# Told"}, "format": "html", "title": "T"}
    answer = await app.http.post("/api/exports", json=body)
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]
    async for _ in app.services.events.subscribe(job_id):
        continue
    return f"/api/exports/{job_id}/file"


async def _ticket(app: RunningApp, path: str) -> str:
    answer = await app.http.post("/api/tickets", json={"path": path})
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) == {"url", "expires_at"}
    url: str = answer.json()["url"]
    return url


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.proves("host.tickets.create")
async def test_a_ticket_opens_an_attachment_again_and_again(app: RunningApp) -> None:
    path = await _content_path(app)
    answer = await app.http.post("/api/tickets", json={"path": path})
    expires = parse_utc(answer.json()["expires_at"])
    assert abs(expires - datetime.now(UTC) - timedelta(minutes=10)) < timedelta(seconds=30)
    url = answer.json()["url"]
    assert urlsplit(url)[:3] == ("http", f"127.0.0.1:{app.services.gate.port}", path)
    for _ in range(3):
        opened = await app.anonymous.get(url)
        assert opened.status_code == 200
        assert opened.content == RECORDING.read_bytes()
    # A player seeks, and sends the origin of its page.
    headers = {"Range": "bytes=100-199", "Origin": "tauri://localhost"}
    part = await app.anonymous.get(url, headers=headers)
    assert part.status_code == 206
    assert part.content == RECORDING.read_bytes()[100:200]
    assert part.headers["access-control-allow-origin"] == "tauri://localhost"


@pytest.mark.proves("host.tickets.create")
async def test_a_ticket_opens_an_exported_file(app: RunningApp) -> None:
    url = await _ticket(app, await _export_path(app))
    opened = await app.anonymous.get(url)
    assert opened.status_code == 200
    assert "Told" in opened.text


@pytest.mark.proves("host.tickets.scope")
async def test_a_ticket_opens_nothing_else(app: RunningApp) -> None:
    first, second = await _content_path(app), await _content_path(app)
    url = await _ticket(app, first)
    ticket = parse_qs(urlsplit(url).query)["ticket"][0]
    others = [
        second,
        first.removesuffix("/content"),
        f"{first}/",
        f"{first}/..",
        "/api/media/attachments",
        "/api/system/info",
        "/host/status",
        "/docs",
        "/",
    ]
    for path in others:
        answer = await app.anonymous.get(f"{path}?ticket={ticket}")
        assert _code(answer) == (401, "SESSION_INVALID"), path
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
        answer = await app.anonymous.request(method, url)
        assert answer.status_code == 401, method
    assert (await app.anonymous.get(url)).status_code == 200


@pytest.mark.proves("host.tickets.scope")
async def test_a_ticket_does_not_mend_a_foreign_host_or_origin(app: RunningApp) -> None:
    url = await _ticket(app, await _content_path(app))
    answer = await app.anonymous.get(url, headers={"Host": "evil.example"})
    assert _code(answer) == (403, "HOST_NOT_ALLOWED")
    answer = await app.anonymous.get(url, headers={"Origin": "https://evil.example"})
    assert _code(answer) == (403, "ORIGIN_NOT_ALLOWED")
    answer = await app.anonymous.get(url, headers={"Authorization": "Bearer wrong"})
    assert _code(answer) == (401, "SESSION_INVALID")


@pytest.mark.proves("host.tickets.scope", "host.tickets.refused", "host.tickets.create")
async def test_a_ticket_ends_with_its_time(app: RunningApp) -> None:
    clock = Clock()
    app.services.gate.tickets = Tickets(clock)
    url = await _ticket(app, await _content_path(app))
    clock.now += TICKET_SECONDS - 1
    assert (await app.anonymous.get(url)).status_code == 200
    clock.now += 1
    assert _code(await app.anonymous.get(url)) == (401, "SESSION_INVALID")
    assert TICKET_SECONDS == 600


@pytest.mark.proves("host.tickets.refused")
async def test_an_altered_ticket_opens_nothing(app: RunningApp) -> None:
    url = await _ticket(app, await _content_path(app))
    address, _, ticket = url.partition("?ticket=")
    last = "A" if ticket[-1] != "A" else "B"
    for altered in ("", ticket[:-1], f"{ticket}A", ticket.swapcase(), ticket[:-1] + last):
        answer = await app.anonymous.get(f"{address}?ticket={altered}")
        assert _code(answer) == (401, "SESSION_INVALID")
    assert _code(await app.anonymous.get(address)) == (401, "SESSION_INVALID")
    assert (await app.anonymous.get(url)).status_code == 200


@pytest.mark.proves("host.tickets.refused")
async def test_other_paths_get_no_ticket(app: RunningApp) -> None:
    path = await _content_path(app)
    refused = [
        "/api/notes",
        "/api/system/info",
        "/host/status",
        "/",
        "",
        path.removesuffix("/content"),
        f"{path}/",
        f"{path}?a=b",
        f"http://127.0.0.1:{app.services.gate.port}{path}",
        f"//evil.example{path}",
        "/api/media/attachments/../../host/status/content",
        "/api/media/attachments/a/b/content",
    ]
    for other in refused:
        answer = await app.http.post("/api/tickets", json={"path": other})
        assert answer.status_code in (404, 422), other
        assert "url" not in answer.json()
    missing = {
        "/api/media/attachments/attachment_none/content": "ATTACHMENT_NOT_FOUND",
        "/api/exports/export_none/file": "EXPORT_JOB_NOT_FOUND",
    }
    for other, code in missing.items():
        answer = await app.http.post("/api/tickets", json={"path": other})
        assert _code(answer) == (404, code)
    bodies: list[Any] = [{}, {"path": 5}, {"path": path, "seconds": 99999}, []]
    for body in bodies:
        answer = await app.http.post("/api/tickets", json=body)
        assert _code(answer) == (422, "VALIDATION_ERROR")


@pytest.mark.proves("host.tickets.scope")
def test_a_ticket_ends_with_the_process_and_is_in_no_log(start: Start, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    settings = {"vault_path": str(tmp_path / "vault"), "log_level": "debug"}
    first = start(settings=settings)
    path = _upload(first)
    url = first.post("/api/tickets", {"path": path}).json()["url"]
    target = url.removeprefix(first.ready["base_url"])
    ticket = parse_qs(urlsplit(url).query)["ticket"][0]
    assert first.request("GET", target).status == 200
    # Refused in every way, and told of in none.
    first.request("GET", target, host="evil.example")
    first.request("GET", f"/api/system/info?ticket={ticket}")
    first.request("GET", f"/api/nothing/{ticket}", token=first.tokens.session)
    first.close_stdin()
    assert first.wait() == 0
    assert ticket not in first.stderr() + first.log_file()
    second = start(settings=settings, arguments=("--port", str(first.port)))
    assert second.get(path).status == 200
    assert second.request("GET", target).status == 401
    second.close_stdin()
    assert second.wait() == 0
    assert ticket not in second.stderr() + second.log_file()


def _upload(sidecar: Serving) -> str:
    content = RECORDING.read_bytes()
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.flac"\r\n'
        b"Content-Type: audio/flac\r\n\r\n" + content + b"\r\n--b--\r\n"
    )
    answer = sidecar.request(
        "POST",
        "/api/media/attachments",
        token=sidecar.tokens.session,
        headers=[("Content-Type", "multipart/form-data; boundary=b")],
        body=body,
    )
    assert answer.status == 201, answer.body
    return f"/api/media/attachments/{answer.json()['attachment_id']}/content"


def test_a_package_handle_ends_with_its_time(tmp_path: Path) -> None:
    clock = Clock()
    handles = PackageHandles(clock)
    package_id, _ = handles.create(str(tmp_path))
    clock.now += PACKAGE_SECONDS - 1
    assert handles.resolve(package_id) == tmp_path
    clock.now += 1
    with pytest.raises(Exception, match="RESOURCE_NOT_FOUND"):
        handles.resolve(package_id)
    with pytest.raises(Exception, match="RESOURCE_NOT_FOUND"):
        PackageHandles(clock).resolve(package_id)
