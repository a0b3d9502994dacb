"""The command as a whole: what it prints, in which language, and how it exits."""

import ast
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sidecar.doctor import report
from sidecar.doctor.command import all_checks, run_doctor
from sidecar.doctor.findings import ESSENTIAL, Finding, NamedFinding, message
from sidecar.doctor.runner import run_checks
from sidecar.kernel.catalogue import MESSAGES, Locale
from sidecar.kernel.catalogue.doctor_messages import DOCTOR
from sidecar.kernel.paths import DataPaths
from sidecar.version import VERSION
from tests.app_client import MODELS_DIR, ROOT
from tests.conftest import LaunchSidecar

SOURCES = sorted((ROOT / "sidecar" / "doctor").glob("*.py"))


def doctor_json(data_dir: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the real command and return its exit status and its document."""
    command = (sys.executable, "-m", "sidecar", "doctor", "--json", "--data-dir", str(data_dir))
    done = subprocess.run(
        [*command, "--models-dir", str(MODELS_DIR), *arguments],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_before_the_first_start_everything_essential_works(tmp_path: Path) -> None:
    status, document = doctor_json(tmp_path / "data")

    assert status == 0
    assert document["ok"] is True
    assert document["version"] == VERSION
    assert document["platform"].startswith(sys.platform)
    assert [check["name"] for check in document["checks"]] == list(
        all_checks(DataPaths(tmp_path), ())
    )
    for check in document["checks"]:
        assert check.keys() == {"name", "status", "summary", "hint", "details"}
        assert check["status"] in ("ok", "warning", "missing", "error")
        assert (check["hint"] is None) == (check["status"] == "ok"), check
    assert not (tmp_path / "data").exists()


def test_a_running_sidecar_is_seen_and_not_disturbed(
    launch_sidecar: LaunchSidecar, tmp_path: Path
) -> None:
    sidecar = launch_sidecar(models=False)

    status, document = doctor_json(tmp_path / "data", "--locale", "zh-CN")

    checks = {check["name"]: check for check in document["checks"]}
    details = checks["instance"]["details"]
    assert status == 0
    if sys.platform != "win32":
        assert details == {"pid": sidecar.ready.pid, "port": sidecar.ready.port}
        assert "正在端口" in checks["instance"]["summary"]
    assert checks["database"]["details"]["revision"] is not None
    assert sidecar.get("/health").status == 200


def test_a_broken_data_directory_makes_it_exit_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()

    status = run_doctor(tmp_path / "file", (MODELS_DIR,), "en", as_json=True)

    document = json.loads(capsys.readouterr().out)
    assert status == 1
    assert document["ok"] is False
    assert document["checks"][1]["status"] == "error"


@pytest.mark.parametrize(
    ("locale", "verdict"),
    [
        ("en", "Everything essential works."),
        ("zh-CN", "必需的部分都可以正常使用。"),
        ("fr", "Everything essential works."),
    ],
)
def test_the_text_is_in_the_chosen_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], locale: str, verdict: str
) -> None:
    status = run_doctor(tmp_path / "data", (MODELS_DIR,), locale, as_json=False)

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[-1] == verdict
    assert "…" not in "\n".join(lines), "a placeholder without a value"


FINDINGS = [
    NamedFinding("program", Finding("ok", message("instance.none"))),
    NamedFinding("pango", Finding("missing", message("uv.absent"), message("gpu.absent.hint"))),
    NamedFinding("database", Finding("warning", message("database.not_yet"))),
]


def columns_before(line: str, text: str) -> int:
    """How wide a terminal shows what stands before *text*."""
    before = line[: line.index(text)]
    return sum(2 if re.match(r"[\u2e80-\u9fff\uff00-\uff60]", char) else 1 for char in before)


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_the_summaries_and_hints_stand_in_one_column(locale: Locale) -> None:
    lines = report.as_lines(FINDINGS, locale)
    texts = [
        MESSAGES[key].zh if locale == "zh-CN" else MESSAGES[key].en
        for key in ("doctor.instance.none", "doctor.uv.absent", "doctor.database.not_yet")
    ]

    places = {columns_before(line, text) for text in texts for line in lines[:4] if text in line}
    assert len(places) == 1
    assert columns_before(lines[2], "→") in places


@pytest.mark.parametrize("status", ["missing", "error"])
@pytest.mark.parametrize("name", ["program", "gpu", *sorted(ESSENTIAL)])
def test_only_essential_parts_decide(name: str, status: Any) -> None:
    findings = [NamedFinding(name, Finding(status, message("uv.absent")))]

    assert report.is_fine(findings) == (name not in ESSENTIAL)


def test_a_check_that_raises_is_an_error_and_the_others_go_on() -> None:
    def broken() -> Finding:
        raise RuntimeError("first line\nsecond line")

    first, second = run_checks({"gpu": broken, "uv": lambda: Finding("ok", message("uv.absent"))})

    assert first.finding.status == "error"
    assert first.finding.summary.params == {"reason": "RuntimeError: first line"}
    assert second.finding.status == "ok"


def test_a_check_that_hangs_is_an_error() -> None:
    released = threading.Event()

    def hanging() -> Finding:
        released.wait(60)
        return Finding("ok", message("uv.absent"))

    try:
        (found,) = run_checks({"gpu": hanging}, limit_seconds=0.05)
    finally:
        released.set()

    assert (found.finding.status, found.finding.summary.key) == (
        "error",
        "doctor.check_unanswered",
    )


def test_the_code_and_the_catalogue_name_the_same_texts() -> None:
    constants: set[str] = set()
    messages: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants.add(f"doctor.{node.value}")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                if node.func.id == "message" and isinstance(first, ast.Constant):
                    messages.add(f"doctor.{first.value!s}")
    built = ("doctor.title.", "doctor.status.", "doctor.verdict.")

    assert messages <= DOCTOR.keys()
    assert {key for key in DOCTOR if not key.startswith(built)} <= constants


def test_every_check_has_a_title(tmp_path: Path) -> None:
    names = set(all_checks(DataPaths(tmp_path), ()))

    assert {f"doctor.title.{name}" for name in names} <= DOCTOR.keys()
    assert names >= ESSENTIAL
