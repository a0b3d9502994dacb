"""Who is let in: bearer tokens on every route."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from host_bridge.protocol import new_token
from sidecar.app import offline_openapi
from tests.host.conftest import Start
from tests.host.serving import Serving

INFO = "/api/system/info"


def _operations() -> list[tuple[str, str]]:
    """Every operation of the product, with made-up ids in its path."""
    return [
        (method.upper(), re.sub(r"\{[^}]+\}", "x1", path))
        for path, item in offline_openapi()["paths"].items()
        for method in item
    ]


OPERATIONS = _operations()
PAGES = [("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/"), ("HEAD", "/")]
UNKNOWN = [
    ("GET", "/nothing"),
    ("GET", "/api/nothing"),
    ("POST", "/api/nothing"),
    ("GET", "/host/nothing"),
    ("GET", "/static/app.js"),
    ("OPTIONS", "/api/system/info"),
    ("GET", "/health/"),
    ("GET", "//health"),
    ("GET", "/HEALTH"),
]


@pytest.mark.proves("host.auth.bearer")
def test_the_session_token_opens_the_api(serving: Serving) -> None:
    assert serving.get(INFO).status == 200
    for method, path in OPERATIONS:
        if path.startswith("/api/") and path != "/api/system/shutdown":
            answer = serving.request(method, path, token=serving.tokens.session, body=b"")
            assert answer.status not in (401, 403), (method, path)


@pytest.mark.proves("host.auth.missing", "host.auth.every-route", "host.auth.streams")
def test_every_operation_needs_a_token(serving: Serving) -> None:
    asked = [o for o in OPERATIONS if o != ("GET", "/health")] + PAGES + UNKNOWN
    # All but the one that is open.
    assert len(asked) == len(OPERATIONS) - 1 + len(PAGES) + len(UNKNOWN)
    for method, path in asked:
        answer = serving.request(method, path)
        assert answer.status == 401, (method, path)
        if method != "HEAD":
            assert answer.code == "SESSION_INVALID", (method, path)


@pytest.mark.proves("host.auth.every-route")
def test_the_served_document_is_the_one_that_was_asked_about(serving: Serving) -> None:
    served = serving.get("/openapi.json").json()
    assert served["paths"].keys() == offline_openapi()["paths"].keys()


@pytest.mark.proves("host.auth.every-route")
@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/"])
def test_pages_open_with_the_token(serving: Serving, path: str) -> None:
    assert serving.get(path).status == 200


def _wrong_authorizations() -> Iterator[Any]:
    def case(name: str, form: str) -> Any:
        return pytest.param(form, id=name)

    yield case("another token", f"Bearer {new_token()}")
    yield case("truncated", "Bearer {short}")
    yield case("longer", "Bearer {token}A")
    yield case("doubled", "Bearer {token}{token}")
    yield case("padded", "Bearer {token}=")
    yield case("empty", "Bearer ")
    yield case("no token", "Bearer")
    yield case("nothing", "")
    yield case("other case of the token", "Bearer {swapped}")
    yield case("other case of the scheme", "bearer {token}")
    yield case("no scheme", "{token}")
    yield case("Basic", "Basic {token}")
    yield case("Token", "Token {token}")
    yield case("two spaces", "Bearer  {token}")
    yield case("list", "Bearer {token}, Bearer {token}")
    yield case("not ascii", "Bearer tökén")


@pytest.mark.proves("host.auth.wrong")
@pytest.mark.parametrize("form", list(_wrong_authorizations()))
def test_anything_but_the_token_is_refused(serving: Serving, form: str) -> None:
    token = serving.tokens.session
    header = form.format(token=token, short=token[:-1], swapped=token.swapcase())
    answer = serving.request("GET", INFO, headers=[("Authorization", header)])
    assert (answer.status, answer.code) == (401, "SESSION_INVALID")


@pytest.mark.proves("host.auth.wrong")
def test_two_authorization_headers_are_refused(serving: Serving) -> None:
    good = ("Authorization", f"Bearer {serving.tokens.session}")
    bad = ("Authorization", f"Bearer {new_token()}")
    for headers in ([good, bad], [bad, good], [good, good]):
        assert serving.request("GET", INFO, headers=headers).status == 401


@pytest.mark.proves("host.auth.host-token-opens-api")
def test_the_host_token_opens_both(serving: Serving) -> None:
    assert serving.host_get(INFO).status == 200
    assert serving.host_get("/api/system/health").status == 200
    assert serving.host_get("/host/status").status == 200


@pytest.mark.proves("host.auth.session-token-not-host")
def test_the_session_token_opens_no_host_path(serving: Serving, tmp_path: Any) -> None:
    before = serving.host_get("/host/status").json()["vault_path"]
    paths = [o for o in OPERATIONS if o[1].startswith("/host/")]
    assert len(paths) >= 3
    for method, path in [*paths, ("GET", "/host"), ("GET", "/host/nothing")]:
        answer = serving.request(
            method, path, token=serving.tokens.session, json_body={"path": str(tmp_path)}
        )
        assert (answer.status, answer.code) == (403, "HOST_TOKEN_REQUIRED"), (method, path)
    assert serving.host_get("/host/status").json()["vault_path"] == before


@pytest.mark.proves("host.auth.session-token-not-host")
@pytest.mark.parametrize(
    "path",
    ["/host/../host/status", "/%68ost/status", "/host%2Fstatus", "//host/status", "/HOST/status"],
)
def test_no_spelling_gets_around_it(serving: Serving, path: str) -> None:
    answer = serving.get(path)
    assert answer.status in (403, 404)
    assert b"data_dir" not in answer.body


@pytest.mark.proves("host.auth.query-token-refused")
@pytest.mark.parametrize("parameter", ["token", "access_token", "session_token", "ticket"])
@pytest.mark.parametrize("path", [INFO, "/api/nothing", "/docs", "/host/status", "/openapi.json"])
def test_a_token_in_the_address_opens_nothing(serving: Serving, path: str, parameter: str) -> None:
    for token in (serving.tokens.session, serving.tokens.host):
        assert serving.request("GET", f"{path}?{parameter}={token}").status == 401


@pytest.mark.proves("host.auth.query-token-refused")
def test_the_exchange_is_for_get_at_the_root_alone(serving: Serving) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer = serving.request(method, f"/?token={serving.tokens.session}")
        assert answer.status == 401
        assert answer.all("set-cookie") == []


@pytest.mark.proves("host.auth.tokens-of-earlier-start")
def test_a_restart_forgets_the_tokens_before(start: Start) -> None:
    first = start()
    old = first.tokens
    cookie = first.cookie()
    first.close_stdin()
    assert first.wait() == 0
    # On the same port, so that a browser would send the same cookie again.
    second = start(arguments=("--port", str(first.port)))
    for token in (old.session, old.host):
        assert second.request("GET", INFO, token=token).status == 401
        assert second.request("GET", f"/?token={token}").status == 401
    assert second.request("GET", INFO, headers=[cookie]).status == 401
    assert second.get(INFO).status == 200


@pytest.mark.proves("host.auth.bad-header-good-cookie")
@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Basic eDp5", ""])
def test_a_good_cookie_does_not_mend_a_bad_header(serving: Serving, header: str) -> None:
    cookie = serving.cookie()
    assert serving.request("GET", INFO, headers=[cookie]).status == 200
    answer = serving.request("GET", INFO, headers=[cookie, ("Authorization", header)])
    assert (answer.status, answer.code) == (401, "SESSION_INVALID")
