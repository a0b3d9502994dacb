"""The language of what a person reads, and of nothing else."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.kernel.catalogue import ERRORS, FATAL, MESSAGES
from tests.app_client import ROOT
from tests.host.conftest import Start
from tests.host.serving import Answer, Serving

WORKING = (sys.executable, "-m", "tests.host.working_sidecar")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def _message(answer: Answer) -> str:
    error = answer.json()["error"]
    assert error["code"] in ERRORS
    return str(error["message"])


def _language(text: str) -> str:
    return "zh" if CHINESE.search(text) else "en"


@pytest.mark.proves("host.locale.setting")
@pytest.mark.parametrize(
    ("locale", "language"),
    [("en", "en"), ("zh-CN", "zh"), ("fr", "en")],
)
def test_the_setting_chooses_the_language(start: Start, locale: str, language: str) -> None:
    sidecar = start(settings={"locale": locale})
    for answer, code in (
        (sidecar.get("/api/nothing"), "RESOURCE_NOT_FOUND"),
        (sidecar.request("GET", "/api/nothing"), "SESSION_INVALID"),
        (sidecar.request("GET", "/", host="evil.example"), "HOST_NOT_ALLOWED"),
        (sidecar.post("/api/tickets", {}), "VALIDATION_ERROR"),
    ):
        assert answer.code == code
        spec = ERRORS[code]
        assert _message(answer) == (spec.zh if language == "zh" else spec.en)
    accepted = sidecar.host_post("/api/system/shutdown")
    assert accepted.json()["status"] == "accepted"
    assert _language(accepted.json()["message"]) == language
    assert sidecar.wait() == 0
    # Logs are for developers, in one language.
    assert not CHINESE.search(sidecar.stderr())


@pytest.mark.proves("host.locale.setting")
@pytest.mark.parametrize(("locale", "language"), [("en", "en"), ("zh-CN", "zh")])
def test_a_failed_start_speaks_it_too(spawn: Start, locale: str, language: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sidecar = spawn(settings={"locale": locale}, arguments=("--port", str(port)))
        message = sidecar.first_message()
    assert message["code"] == "PORT_IN_USE"
    assert _language(message["message"]) == language
    assert sidecar.wait() == FATAL["PORT_IN_USE"].exit_code


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Serving]]:
    """A sidecar of each language."""
    sidecars = {}
    for locale in ("en", "zh-CN"):
        folder = tmp_path_factory.mktemp(locale)
        sidecars[locale] = Serving(folder, command=WORKING, settings={"locale": locale})
    yield {locale: sidecar.wait_ready() for locale, sidecar in sidecars.items()}
    for sidecar in sidecars.values():
        sidecar.end()


@pytest.mark.proves("host.locale.accept-language")
@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-TW, en", "zh"),
        ("fr, zh;q=0.5, en;q=0.4", "zh"),
        ("en;q=0.5, zh", "zh"),
        ("en", "en"),
        ("en-GB,zh;q=0.9", "en"),
        ("zh;q=0.1,en;q=0.2", "en"),
        ("EN", "en"),
        ("zh;q=0, en;q=0.1", "en"),
        ("fr", None),
        ("", None),
        ("*", None),
        (";;;,,,q=", None),
    ],
)
def test_a_request_chooses_its_own_language(
    both: dict[str, Serving], header: str, language: str | None
) -> None:
    for locale, sidecar in both.items():
        expected = language or ("zh" if locale == "zh-CN" else "en")
        headers = [("Accept-Language", header)]
        for answer in (
            sidecar.get("/api/nothing", headers=headers),
            sidecar.request("GET", "/api/nothing", headers=headers),
            sidecar.post("/api/tickets", {}, headers=headers),
        ):
            assert _language(_message(answer)) == expected
        health = sidecar.get("/api/system/health", headers=headers).json()
        assert _language(health["subsystems"]["runtime"]["message"]) == expected


@pytest.mark.proves("host.locale.accept-language", "host.locale.setting")
def test_stored_progress_is_told_in_the_language_of_each_reader(both: dict[str, Serving]) -> None:
    for locale, sidecar in both.items():
        sidecar.host_post("/host/trial/progress")
        own = "zh" if locale == "zh-CN" else "en"
        for header, language in (("zh", "zh"), ("en", "en"), ("fr", own)):
            data = _first_event(sidecar, header)
            assert data["phase"] == "transcribing"
            text = MESSAGES["phase.transcribing"]
            assert data["message"] == (text.zh if language == "zh" else text.en)


def _first_event(sidecar: Serving, header: str) -> dict[str, Any]:
    answer = sidecar.get("/api/trial/progress", headers=[("Accept-Language", header)])
    assert answer.status == 200
    line = next(line for line in answer.body.splitlines() if line.startswith(b"data: "))
    data: dict[str, Any] = json.loads(line[6:])["data"]
    return data


@pytest.mark.proves("host.locale.setting")
@pytest.mark.parametrize(("locale", "language"), [("zh-CN", "zh"), ("de", "en")])
def test_the_doctor_speaks_it(tmp_path_factory: Any, locale: str, language: str) -> None:
    data = tmp_path_factory.mktemp("doctor")
    report = subprocess.run(
        [sys.executable, "-m", "sidecar", "doctor", "--data-dir", str(data), "--locale", locale],
        capture_output=True,
        cwd=ROOT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert _language(report.stdout) == language
