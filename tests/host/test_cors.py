"""What a page of another origin may do: preflights and the headers of every answer."""

import socket
import sys

import pytest

from tests.host.conftest import Start
from tests.host.serving import Answer, Headers, Serving, exchange, request_bytes

INFO = "/api/system/info"
TAURI = "tauri://localhost"
NEEDED_HEADERS = {"authorization", "content-type", "idempotency-key", "last-event-id", "range"}


def _preflight(
    serving: Serving,
    origin: str | None,
    *,
    path: str = INFO,
    method: str = "POST",
    more: Headers = (),
) -> Answer:
    headers = [
        *([("Origin", origin)] if origin is not None else []),
        ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", ",".join(sorted(NEEDED_HEADERS))),
        *more,
    ]
    return serving.request("OPTIONS", path, headers=headers)


@pytest.mark.proves("host.cors.preflight")
@pytest.mark.parametrize("origin", [TAURI, "http://tauri.localhost", "https://tauri.localhost"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_preflight_needs_no_token(serving: Serving, origin: str, method: str) -> None:
    answer = _preflight(serving, origin, method=method)
    assert answer.status in (200, 204)
    assert answer.header("access-control-allow-origin") == origin
    assert "Origin" in (answer.header("vary") or "")
    allowed = {
        part.strip() for part in (answer.header("access-control-allow-methods") or "").split(",")
    }
    assert method in allowed
    headers = (answer.header("access-control-allow-headers") or "").lower().split(",")
    assert {name.strip() for name in headers} >= NEEDED_HEADERS
    assert answer.body == b""


@pytest.mark.proves("host.cors.preflight")
@pytest.mark.parametrize("path", ["/api/nothing", "/host/status", "/api/system/shutdown"])
def test_a_preflight_does_nothing_and_tells_nothing(serving: Serving, path: str) -> None:
    assert _preflight(serving, TAURI, path=path).status in (200, 204)
    assert serving.serves()


@pytest.mark.proves("host.cors.preflight")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:5173", ""])
def test_a_preflight_from_elsewhere_is_refused(serving: Serving, origin: str) -> None:
    answer = _preflight(serving, origin)
    assert (answer.status, answer.code) == (403, "ORIGIN_NOT_ALLOWED")
    assert answer.all("access-control-allow-origin") == []
    assert answer.all("access-control-allow-private-network") == []


@pytest.mark.proves("host.cors.preflight")
def test_a_preflight_without_an_origin_or_to_a_foreign_host_is_refused(serving: Serving) -> None:
    assert _preflight(serving, None).status == 403
    headers = [("Origin", TAURI), ("Access-Control-Request-Method", "GET")]
    answer = serving.request("OPTIONS", INFO, host="evil.example", headers=headers)
    assert (answer.status, answer.code) == (403, "HOST_NOT_ALLOWED")


@pytest.mark.proves("host.cors.exact-origin")
def test_answers_name_exactly_the_origin(serving: Serving) -> None:
    own = f"http://localhost:{serving.port}"
    origins = [TAURI, "http://tauri.localhost", "https://tauri.localhost", own]
    for origin in origins:
        header = [("Origin", origin)]
        answers = {
            200: serving.get(INFO, headers=header),
            401: serving.request("GET", INFO, headers=header),
            404: serving.get("/api/nothing", headers=header),
            405: serving.request("PATCH", INFO, token=serving.tokens.session, headers=header),
            422: serving.post("/api/tickets", {}, headers=header),
            403: serving.get("/host/status", headers=header),
        }
        for status, answer in answers.items():
            assert answer.status == status
            assert answer.header("access-control-allow-origin") == origin
            assert "Origin" in ", ".join(answer.all("vary"))
            assert answer.all("access-control-allow-credentials") == []


@pytest.mark.proves("host.cors.exact-origin")
def test_an_answer_to_no_origin_names_none(serving: Serving) -> None:
    answer = serving.get(INFO)
    assert answer.all("access-control-allow-origin") == []
    # A cache must not hand this answer to a page that does send one.
    assert "Origin" in ", ".join(answer.all("vary"))


@pytest.mark.proves("host.cors.exact-origin")
def test_an_unexpected_failure_and_a_stream_name_it_too(start: Start) -> None:
    sidecar = start(command=(sys.executable, "-m", "tests.host.working_sidecar"))
    header = [("Origin", TAURI)]
    failed = sidecar.get("/api/trial/failure", headers=header)
    assert (failed.status, failed.code) == (500, "INTERNAL_ERROR")
    assert failed.header("access-control-allow-origin") == TAURI
    assert b"secret of the failure" not in failed.body
    sent = sidecar.headers(token=sidecar.tokens.session, more=header)
    with socket.create_connection(("127.0.0.1", sidecar.port), timeout=20) as connection:
        connection.sendall(request_bytes("GET", "/api/trial/events", sent, close=False))
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = connection.recv(4096)
            assert chunk
            head += chunk
    lines = head.decode().lower().split("\r\n")
    assert lines[0].endswith("200 ok")
    assert f"access-control-allow-origin: {TAURI}" in lines
    assert any(line.startswith("vary:") and "origin" in line for line in lines)


@pytest.mark.proves("host.cors.private-network")
def test_a_public_page_of_an_allowed_origin_may_reach_the_loopback(serving: Serving) -> None:
    asked = [("Access-Control-Request-Private-Network", "true")]
    answer = _preflight(serving, "https://tauri.localhost", more=asked)
    assert answer.header("access-control-allow-private-network") == "true"
    assert _preflight(serving, TAURI).all("access-control-allow-private-network") == []
    refused = _preflight(serving, "https://evil.example", more=asked)
    assert refused.status == 403
    assert refused.all("access-control-allow-private-network") == []


@pytest.mark.proves("host.cors.exact-origin")
def test_a_page_may_read_the_headers_it_needs(serving: Serving) -> None:
    answer = serving.get(INFO, headers=[("Origin", TAURI)])
    exposed = {
        name.strip().lower()
        for name in (answer.header("access-control-expose-headers") or "").split(",")
    }
    assert {"content-disposition", "content-range", "etag"} <= exposed


@pytest.mark.proves("host.cors.preflight")
def test_an_options_request_that_is_no_preflight_needs_the_token(serving: Serving) -> None:
    request = request_bytes("OPTIONS", INFO, serving.headers(more=[("Origin", TAURI)]))
    assert exchange(serving.port, request, method="OPTIONS").status == 401
