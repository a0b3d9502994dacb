"""The exchange of the session token for a cookie, for pages that the sidecar serves itself."""

from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from tests.host.conftest import Start
from tests.host.serving import Answer, Serving

INFO = "/api/system/info"


def _exchange(serving: Serving, token: str) -> Answer:
    return serving.request("GET", f"/?token={token}")


@pytest.mark.proves("host.cookie.exchange", "host.cookie.redirect-clean")
def test_the_session_token_becomes_a_cookie(serving: Serving) -> None:
    answer = _exchange(serving, serving.tokens.session)
    assert answer.status == 303
    assert answer.header("location") == "/"
    assert answer.header("cache-control") == "no-store"
    assert answer.header("referrer-policy") == "no-referrer"
    assert len(answer.all("set-cookie")) == 1
    shown = repr(answer.headers) + answer.body.decode()
    assert serving.tokens.session not in shown


@pytest.mark.proves("host.cookie.attributes", "host.cookie.name-per-port")
def test_the_cookie_is_for_this_browser_session_alone(serving: Serving) -> None:
    header = _exchange(serving, serving.tokens.session).header("set-cookie") or ""
    pair, *attributes = [part.strip() for part in header.split(";")]
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    name, _, value = pair.partition("=")
    assert str(serving.port) in name
    assert len(value) >= 43
    assert value not in (serving.tokens.session, serving.tokens.host)


@pytest.mark.proves("host.cookie.name-per-port")
def test_two_sidecars_in_one_browser_keep_their_sessions(start: Start, tmp_path: Path) -> None:
    sidecars = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sidecars.append(start(tmp_path / name))
    # A browser tells cookies apart by host, not by port: it sends both to both.
    jar = SimpleCookie()
    for sidecar in sidecars:
        jar.load(_exchange(sidecar, sidecar.tokens.session).header("set-cookie") or "")
    assert len(jar) == 2
    both = ("Cookie", "; ".join(f"{name}={morsel.value}" for name, morsel in jar.items()))
    for sidecar in sidecars:
        assert sidecar.request("GET", INFO, headers=[both]).status == 200
    one, two = sidecars
    assert two.request("GET", INFO, headers=[one.cookie()]).status == 401


@pytest.mark.proves("host.cookie.invalid-token")
@pytest.mark.parametrize("token", ["", "wrong", "A" * 43, "%00", "%FF%FE"])
def test_a_wrong_token_gets_no_cookie(serving: Serving, token: str) -> None:
    answer = _exchange(serving, token)
    assert (answer.status, answer.code) == (401, "SESSION_INVALID")
    assert answer.all("set-cookie") == []


@pytest.mark.proves("host.cookie.opens-api")
def test_the_cookie_opens_the_api(serving: Serving) -> None:
    cookie = serving.cookie()
    for path in (INFO, "/api/system/health", "/", "/docs", "/openapi.json"):
        assert serving.request("GET", path, headers=[cookie]).status == 200
    answer = serving.request("GET", "/api/nothing", headers=[cookie])
    assert (answer.status, answer.code) == (404, "RESOURCE_NOT_FOUND")
    answer = serving.request("POST", "/api/tickets", headers=[cookie], json_body={"path": "/x"})
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    # Other cookies of the same host stand beside it in one header.
    mixed = ("Cookie", f"theme=dark; {cookie[1]}; other=a=b")
    assert serving.request("GET", INFO, headers=[mixed]).status == 200


@pytest.mark.proves("host.cookie.opens-api")
@pytest.mark.parametrize(
    "value", ["", "x", "{name}", "{name}=", "{name}=wrong", "bad name={value}"]
)
def test_another_cookie_opens_nothing(serving: Serving, value: str) -> None:
    name, _, good = serving.cookie()[1].partition("=")
    header = value.format(name=name, value=good)
    assert serving.request("GET", INFO, headers=[("Cookie", header)]).status == 401


@pytest.mark.proves("host.cookie.never-host")
def test_the_host_token_becomes_no_cookie_and_a_cookie_opens_no_host_path(
    serving: Serving,
) -> None:
    answer = _exchange(serving, serving.tokens.host)
    assert (answer.status, answer.code) == (401, "SESSION_INVALID")
    assert answer.all("set-cookie") == []
    cookie = serving.cookie()
    for method, path in (
        ("GET", "/host/status"),
        ("POST", "/host/vault"),
        ("POST", "/host/packages"),
        ("POST", "/api/system/shutdown"),
    ):
        answer = serving.request(method, path, headers=[cookie], json_body={"path": "/"})
        assert (answer.status, answer.code) == (403, "HOST_TOKEN_REQUIRED")
