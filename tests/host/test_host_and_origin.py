"""The two checks that come before everything else: Host and Origin."""

import pytest

from tests.host.conftest import Start
from tests.host.serving import Headers, Serving, exchange, request_bytes

INFO = "/api/system/info"
OTHER_ADDRESSES = ["0.0.0.0", "127.0.0.2", "[::1]", "192.0.2.2", "10.0.0.1"]
BAD_HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "localhost",
    "127.0.0.1:{other}",
    "localhost:{other}",
    "127.0.0.1:0{port}",
    "127.0.0.1:{port}:{port}",
    "127.0.0.1:{port}.evil.example",
    "127.0.0.1.evil.example:{port}",
    "localhost.:{port}",
    "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example",
    "evil.example@127.0.0.1:{port}",
    "http://127.0.0.1:{port}",
    "127.0.0.1:{port}/",
    "2130706433:{port}",
    "127.1:{port}",
    ":{port}",
    "",
    *(f"{address}:{{port}}" for address in OTHER_ADDRESSES),
]


def _named(serving: Serving, form: str) -> str:
    return form.format(port=serving.port, other=serving.port + 1)


def _raw(serving: Serving, headers: Headers, method: str = "GET", path: str = INFO) -> int:
    return exchange(serving.port, request_bytes(method, path, headers), method=method).status


def _bearer(serving: Serving) -> tuple[str, str]:
    return "Authorization", f"Bearer {serving.tokens.session}"


@pytest.mark.proves("host.check.host-unknown")
@pytest.mark.parametrize("form", BAD_HOSTS)
def test_a_foreign_host_is_refused(serving: Serving, form: str) -> None:
    headers = [("Host", _named(serving, form)), _bearer(serving)]
    answer = exchange(serving.port, request_bytes("GET", INFO, headers))
    assert (answer.status, answer.code) == (403, "HOST_NOT_ALLOWED")


@pytest.mark.proves("host.check.host-unknown")
def test_an_absolute_address_does_not_stand_for_the_host(serving: Serving) -> None:
    headers = [("Host", "evil.example"), _bearer(serving)]
    good = f"http://127.0.0.1:{serving.port}{INFO}"
    assert _raw(serving, headers, path=good) in (400, 403)


@pytest.mark.proves("host.check.host-allowed")
@pytest.mark.parametrize("form", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}"])
def test_its_own_names_are_accepted(serving: Serving, form: str) -> None:
    assert _raw(serving, [("Host", _named(serving, form)), _bearer(serving)]) == 200
    assert _raw(serving, [("hOsT", _named(serving, form)), _bearer(serving)]) == 200


@pytest.mark.proves("host.check.host-missing")
def test_no_host_and_two_hosts_are_refused(serving: Serving) -> None:
    own = ("Host", f"127.0.0.1:{serving.port}")
    assert _raw(serving, [_bearer(serving)]) in (400, 403)
    assert _raw(serving, [own, ("Host", "evil.example"), _bearer(serving)]) in (400, 403)
    assert _raw(serving, [("Host", "evil.example"), own, _bearer(serving)]) in (400, 403)
    assert _raw(serving, [own, own, _bearer(serving)]) in (400, 403)
    old = f"GET {INFO} HTTP/1.0\r\nAuthorization: Bearer {serving.tokens.session}\r\n\r\n"
    assert exchange(serving.port, old.encode()).status in (400, 403)


@pytest.mark.proves("host.check.host-missing")
def test_a_write_without_a_host_has_no_effect(serving: Serving) -> None:
    body = f'{{"path": "{serving.folder}"}}'.encode()
    headers = [
        ("Authorization", f"Bearer {serving.tokens.host}"),
        ("Content-Type", "application/json"),
    ]
    before = serving.host_get("/host/status").json()["vault_path"]
    answer = exchange(serving.port, request_bytes("POST", "/host/vault", headers, body))
    assert answer.status in (400, 403)
    assert serving.host_get("/host/status").json()["vault_path"] == before


FOREIGN_ORIGINS = [
    "https://evil.example",
    "http://127.0.0.1:{other}",
    "http://localhost:{other}",
    "http://127.0.0.1",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}.evil.example",
    "HTTP://127.0.0.1:{port}",
    "file://",
    "tauri://evil",
    "chrome-extension://abcdef",
    "",
]


@pytest.mark.proves("host.check.origin-foreign", "host.check.origin-own")
@pytest.mark.parametrize("form", FOREIGN_ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(serving: Serving, form: str, method: str) -> None:
    path = INFO if method == "GET" else "/api/tickets"
    answer = serving.request(
        method,
        path,
        token=serving.tokens.session,
        headers=[("Origin", _named(serving, form))],
        json_body={"path": "/"} if method == "POST" else None,
    )
    assert (answer.status, answer.code) == (403, "ORIGIN_NOT_ALLOWED")
    assert answer.all("access-control-allow-origin") == []


@pytest.mark.proves("host.check.origin-null")
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://tauri.localhost.evil.example",
        "http://tauri.localhost:80",
        "http://evil.tauri.localhost",
        "https://tauri.localhost/",
        "tauri://localhost.evil.example",
        "tauri://localhost:1",
        "xtauri://localhost",
        "http://tauri.localhost http://evil.example",
        "http://tauri.localhost, http://evil.example",
    ],
)
def test_an_origin_that_resembles_an_allowed_one_is_refused(serving: Serving, origin: str) -> None:
    answer = serving.get(INFO, headers=[("Origin", origin)])
    assert (answer.status, answer.code) == (403, "ORIGIN_NOT_ALLOWED")


@pytest.mark.proves("host.check.origin-null")
def test_two_origins_are_refused(serving: Serving) -> None:
    good, bad = ("Origin", "tauri://localhost"), ("Origin", "https://evil.example")
    for headers in ([good, bad], [bad, good], [good, good]):
        assert serving.get(INFO, headers=headers).status == 403


@pytest.mark.proves("host.check.origin-tauri", "host.check.origin-own")
@pytest.mark.parametrize(
    "form",
    [
        "tauri://localhost",
        "http://tauri.localhost",
        "https://tauri.localhost",
        "http://127.0.0.1:{port}",
        "http://localhost:{port}",
    ],
)
def test_the_allowed_origins(serving: Serving, form: str) -> None:
    origin = ("Origin", _named(serving, form))
    assert serving.get(INFO, headers=[origin]).status == 200
    # It lets nobody in by itself.
    assert serving.request("GET", INFO, headers=[origin]).status == 401


@pytest.mark.proves("host.check.origin-absent")
def test_a_request_without_an_origin_passes(serving: Serving) -> None:
    assert serving.get(INFO).status == 200
    assert serving.post("/api/tickets", {"path": "/"}).status == 422


DEVELOPMENT = ["http://localhost:5173", "http://127.0.0.1:5173"]


@pytest.mark.proves("host.check.origin-development")
@pytest.mark.parametrize("origin", DEVELOPMENT)
def test_development_origins_are_foreign_in_production(serving: Serving, origin: str) -> None:
    assert serving.get(INFO).json()["environment"] == "production"
    assert serving.get(INFO, headers=[("Origin", origin)]).code == "ORIGIN_NOT_ALLOWED"


@pytest.mark.proves("host.check.origin-development")
def test_development_origins_are_allowed_in_development(start: Start) -> None:
    sidecar = start(environment={"APP_ENVIRONMENT": "development"})
    assert sidecar.get(INFO).json()["environment"] == "development"
    for origin in DEVELOPMENT:
        answer = sidecar.get(INFO, headers=[("Origin", origin)])
        assert answer.status == 200
        assert answer.header("access-control-allow-origin") == origin
    assert sidecar.get(INFO, headers=[("Origin", "http://localhost:5174")]).status == 403


@pytest.mark.proves("host.check.before-everything")
@pytest.mark.parametrize("bad", [("Host", "evil.example"), ("Origin", "https://evil.example")])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", INFO, b""),
        ("GET", "/nothing", b""),
        ("POST", "/api/tickets", b"{broken"),
        ("POST", "/api/tickets", b"x" * 3_000_000),
        ("POST", "/host/vault", b"[]"),
        ("DELETE", "/health", b""),
        ("GET", "/?token=wrong", b""),
    ],
)
def test_the_checks_come_first(
    serving: Serving, bad: tuple[str, str], method: str, path: str, body: bytes
) -> None:
    code = "HOST_NOT_ALLOWED" if bad[0] == "Host" else "ORIGIN_NOT_ALLOWED"
    own = [] if bad[0] == "Host" else [("Host", f"127.0.0.1:{serving.port}")]
    if len(body) > 1_000_000:
        # Its answer comes before the body is read, so it is told and never sent.
        head = [*own, bad, ("Content-Length", str(len(body))), _bearer(serving)]
        answer = exchange(serving.port, request_bytes(method, path, head), method=method)
        assert (answer.status, answer.code) == (403, code)
        return
    for authorization in ([], [_bearer(serving)], [("Authorization", "Bearer wrong")]):
        request = request_bytes(method, path, [*own, bad, *authorization], body)
        answer = exchange(serving.port, request, method=method)
        assert (answer.status, answer.code) == (403, code)


@pytest.mark.proves("host.check.before-everything")
def test_a_bad_exchange_with_a_valid_token_sets_no_cookie(serving: Serving) -> None:
    path = f"/?token={serving.tokens.session}"
    for answer in (
        serving.request("GET", path, host="evil.example"),
        serving.request("GET", path, headers=[("Origin", "https://evil.example")]),
    ):
        assert answer.status == 403
        assert answer.all("set-cookie") == []


@pytest.mark.proves("host.check.health-too")
def test_health_is_checked_too(serving: Serving) -> None:
    foreign = serving.request("GET", "/health", host="evil.example")
    assert (foreign.status, foreign.code) == (403, "HOST_NOT_ALLOWED")
    answer = serving.request("GET", "/health", headers=[("Origin", "https://evil.example")])
    assert (answer.status, answer.code) == (403, "ORIGIN_NOT_ALLOWED")


@pytest.mark.proves("host.check.nothing-runs")
@pytest.mark.parametrize("bad", [("Host", "evil.example"), ("Origin", "https://evil.example")])
def test_a_refused_write_changes_nothing(start: Start, bad: tuple[str, str]) -> None:
    sidecar = start()
    own = [] if bad[0] == "Host" else [("Host", f"127.0.0.1:{sidecar.port}")]
    before = {
        file for file in sidecar.data_dir.rglob("*") if file.name.startswith("app.db") is False
    }
    chunked = (
        b"POST /api/media/attachments HTTP/1.1\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in [*own, bad]).encode()
        + f"Authorization: Bearer {sidecar.tokens.session}\r\n".encode()
        + b"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n"
        + b"Connection: close\r\n\r\n"
    )
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--b--\r\n'
    body = f"{len(part):x}\r\n".encode() + part + b"\r\n0\r\n\r\n"
    assert exchange(sidecar.port, chunked + body, method="POST").status == 403
    shutdown = request_bytes(
        "POST",
        "/api/system/shutdown",
        [*own, bad, ("Authorization", f"Bearer {sidecar.tokens.host}")],
    )
    assert exchange(sidecar.port, shutdown, method="POST").status == 403
    after = {
        file for file in sidecar.data_dir.rglob("*") if file.name.startswith("app.db") is False
    }
    assert after == before
    assert sidecar.serves()
