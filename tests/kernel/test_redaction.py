"""Redaction: secrets go nowhere, and ordinary text stays as it is."""

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_bridge.protocol import new_token
from sidecar.kernel.logging import JsonFormatter
from sidecar.kernel.redaction import REDACTED, Redactor, redactor

CANARY = "canary-0f3a9c-secret-value"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"bearer {CANARY}",
        f"Basic {CANARY}",
        f"GET /?token={CANARY} HTTP/1.1",
        f"/api/x?ticket={CANARY}&b=1",
        f"?api_key={CANARY}",
        f"?access_token%3D{CANARY}",
        f'{{"api_key": "{CANARY}"}}',
        f"password={CANARY}",
        f"https://user:{CANARY}@example.com/x",
        f"sk-{CANARY}",
        f"hf_{CANARY.replace('-', '')}",
    ],
)
def test_the_shapes_that_secrets_have(text: str) -> None:
    shown = Redactor().text(text)
    assert CANARY not in shown
    assert CANARY.replace("-", "") not in shown
    assert REDACTED in shown


def test_a_file_in_a_text_is_left_out() -> None:
    shown = Redactor().text("![](data:image/png;base64," + "iVBORw0KGgo" * 20 + ")")
    assert "iVBOR" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "The token was refused.",
        "keyboard: QWERTY",
        "/api/notes/note_123?limit=50&offset=0",
        "转写完成：共 12 段",
        "https://example.com/a:b@c",
        "the key to success",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor().text(text) == text


@given(st.text(min_size=6, max_size=60), st.text(max_size=40), st.text(max_size=40))
def test_a_registered_secret_never_comes_through(secret: str, before: str, after: str) -> None:
    own = Redactor()
    own.register(secret)
    shown = own.text(f"{before}{secret}{after}")
    # What stands for it may hold a short secret's letters only if the secret is a part of that.
    assert secret not in shown.replace(REDACTED, "") or secret in before + after


def test_of_two_secrets_the_longer_goes_whole() -> None:
    own = Redactor()
    own.register("canary-short")
    own.register("canary-short-and-longer")
    assert own.text("x canary-short-and-longer y") == f"x {REDACTED} y"


def test_short_and_empty_secrets_blank_nothing() -> None:
    own = Redactor()
    for secret in ("", None, "a", "the"):
        own.register(secret)
    assert own.text("the cat") == "the cat"


def test_values_are_blanked_by_their_names_and_the_rest_is_kept() -> None:
    own = Redactor()
    own.register(CANARY)
    given_value = {
        "api_key": "short",
        "Authorization": "x",
        "headers": [{"Set-Cookie": "a=b"}, ("plain", CANARY)],
        "credential_id": "provider.openai",
        "tokens_used": 12,
        "count": 3,
        "deep": {"list": [f"at {CANARY}"]},
    }
    shown = own.value(given_value)
    assert shown["api_key"] == shown["Authorization"] == REDACTED
    assert shown["headers"][0]["Set-Cookie"] == REDACTED
    assert shown["credential_id"] == "provider.openai"
    assert (shown["tokens_used"], shown["count"]) == (12, 3)
    assert CANARY not in json.dumps(shown)
    assert given_value["headers"][1][1] == CANARY, "the value itself is left alone"  # type: ignore[index]


def test_a_log_line_is_redacted_wherever_the_secret_stands() -> None:
    token = new_token()
    redactor.register(token)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("tests.redaction")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.warning("event %s", token, extra={"field": {"deep": [token]}, "api_key": "x"})
        try:
            raise ValueError(f"with {token}")  # noqa: TRY301 - its stack is what matters
        except ValueError:
            logger.exception("failed")
        logger.warning(token, extra={"object": Exception(token)})
    finally:
        logger.removeHandler(handler)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert token not in stream.getvalue()
    assert json.loads(lines[0])["api_key"] == REDACTED
