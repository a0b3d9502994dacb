"""Speech, documents and the system: found where they are, named where they are not."""

import sys
import threading
from pathlib import Path

import keyring
import keyring.backend
import pytest

from sidecar.doctor import checks_speech, checks_system
from sidecar.doctor.checks_documents import (
    check_libreoffice,
    check_pango,
    font_folders,
    fonts_finding,
)
from sidecar.doctor.checks_speech import (
    check_speech_models,
    check_speech_packages,
    check_transcription_profiles,
)
from sidecar.doctor.checks_system import (
    check_credentials,
    check_gpu,
    check_program,
    check_uv,
    parse_cards,
)
from sidecar.documents.service import DocumentService
from sidecar.export.pdf.support import PdfSupport
from sidecar.export.service import ExportService
from sidecar.kernel.paths import DataPaths
from tests.app_client import MODELS_DIR


def damaged_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "vocabulary.txt").write_text("a", encoding="utf-8")
    (folder / "model.bin").write_bytes(b"\x06\0\0\0cut off")
    return folder


def test_the_installed_speech_packages_are_named_with_their_versions() -> None:
    finding = check_speech_packages()

    assert finding.status == "ok"
    assert finding.details["versions"].keys() == checks_speech.PACKAGES.keys()  # type: ignore[attr-defined]


def test_a_package_that_is_not_there_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(checks_speech.PACKAGES, "no_such_package_of_ours", "Nothing")

    finding = check_speech_packages()

    assert finding.status == "missing"
    assert "Nothing" in str(finding.summary.params["packages"])


def test_a_package_that_breaks_at_its_import_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "raise OSError('libcrash.so.1: cannot open shared object file')\n"
    (tmp_path / "broken_native_package.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(checks_speech.PACKAGES, "broken_native_package", "Broken")

    finding = check_speech_packages()

    assert finding.status == "error"
    assert "libcrash.so.1" in str(finding.summary.params["packages"])


def test_a_real_model_is_found() -> None:
    finding = check_speech_models((MODELS_DIR,))

    assert finding.status == "ok"
    assert "whisper-base" in str(finding.summary.params["whole"])


def test_a_damaged_model_is_told_apart(tmp_path: Path) -> None:
    damaged_model(tmp_path / "models" / "cut-off")

    alone = check_speech_models((tmp_path / "models",))
    beside = check_speech_models((tmp_path / "models", MODELS_DIR))

    assert (alone.status, beside.status) == ("error", "warning")
    assert beside.summary.params["damaged"] == "cut-off"


def test_no_model_gives_a_hint_that_names_the_folder(tmp_path: Path) -> None:
    finding = check_speech_models((tmp_path / "models",))

    assert finding.status == "missing"
    assert finding.hint is not None and finding.hint.params["folder"] == tmp_path / "models"


@pytest.mark.parametrize(
    ("content", "status", "place"),
    [
        (None, "ok", None),
        ('{"profiles": {"fast": {"beam_size": 1}}}', "ok", None),
        ('{"profiles": {"fast": {"beam_size": 0}}}', "warning", "profiles.fast.beam_size"),
        ("{", "warning", ""),
    ],
)
def test_wrong_profiles_are_told_with_their_place(
    tmp_path: Path, content: str | None, status: str, place: str | None
) -> None:
    if content is not None:
        (tmp_path / "transcription.json").write_text(content, encoding="utf-8")

    finding = check_transcription_profiles(tmp_path)

    assert finding.status == status
    assert finding.details["wrong_at"] == place
    assert finding.details["profiles"] == ["default"] + (
        ["fast"] if status == "ok" and content else []
    )


def test_chinese_fonts_are_known_by_their_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "DejaVuSans.ttf").touch()
    (tmp_path / "wqy-microhei.txt").touch()
    assert fonts_finding([tmp_path, tmp_path / "absent"]).status == "missing"

    (tmp_path / "deep" / "NotoSansCJK-Regular.ttc").touch()
    finding = fonts_finding([tmp_path])

    assert finding.status == "ok"
    assert finding.details["fonts"] == {
        "Noto Sans CJK": str(tmp_path / "deep" / "NotoSansCJK-Regular.ttc")
    }


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, {"/usr/share/fonts", "/usr/local/share/fonts", "/home/u/.local/share/fonts"}),
        ("linux", {"XDG_DATA_DIRS": "/nix:", "XDG_DATA_HOME": "/d"}, {"/nix/fonts", "/d/fonts"}),
        ("darwin", {}, {"/System/Library/Fonts", "/Library/Fonts", "/home/u/Library/Fonts"}),
        (
            "win32",
            {"WINDIR": "D:/W", "LOCALAPPDATA": "D:/L"},
            {"D:/W/Fonts", "D:/L/Microsoft/Windows/Fonts"},
        ),
    ],
)
def test_font_folders_of_the_three_systems(
    platform: str, environment: dict[str, str], expected: set[str]
) -> None:
    folders = font_folders(platform, environment, Path("/home/u"), Path("/bundle"))

    assert folders[0] == Path("/bundle/fonts")
    assert {Path(folder) for folder in expected} <= set(folders)


def test_pango_is_looked_for_without_a_failure() -> None:
    finding = check_pango()

    assert finding.status in ("ok", "missing")
    assert (finding.hint is None) == (finding.status == "ok")


def test_the_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without = PdfSupport({"WeasyPrint": "here", "Pango": None}, "brew install pango")
    monkeypatch.setattr(ExportService, "pdf_support", lambda: without)

    finding = check_pango()

    assert finding.status == "missing"
    assert finding.summary.params == {"libraries": "Pango"}
    assert finding.hint is not None
    assert finding.hint.params == {"command": "brew install pango"}


def test_libreoffice_is_found_or_advised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(DocumentService, "converter", lambda: tmp_path / "soffice")
    finding = check_libreoffice()
    assert (finding.status, finding.hint) == ("ok", None)
    assert finding.details == {"path": str(tmp_path / "soffice")}

    monkeypatch.setattr(DocumentService, "converter", lambda: None)
    finding = check_libreoffice()
    assert finding.status == "missing"
    assert finding.hint is not None


def test_uv_of_the_environment_is_found() -> None:
    finding = check_uv()

    assert finding.status == "ok"
    assert str(finding.details["version"])[0].isdigit()


@pytest.mark.skipif(sys.platform == "win32", reason="makes a program of two lines of shell")
def test_a_uv_that_does_not_run_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uv").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert check_uv().status == "warning"


def test_a_card_is_read_from_the_tools_answer() -> None:
    listing = "NVIDIA GeForce RTX 4090, 560.35.03, 24564 MiB\n\nNo devices were found\n"

    assert parse_cards(listing) == [
        {"name": "NVIDIA GeForce RTX 4090", "driver": "560.35.03", "memory": "24564 MiB"}
    ]


def test_a_computer_without_a_card_is_no_failure() -> None:
    assert check_gpu().status in ("ok", "warning", "missing")


def test_the_program_is_always_fine() -> None:
    assert check_program().status == "ok"


class SilentKeyring(keyring.backend.KeyringBackend):
    """Waits for a prompt that nobody answers."""

    priority = 0.1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.released = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        return None

    def set_password(self, service: str, username: str, password: str) -> None:
        self.released.wait(60)

    def delete_password(self, service: str, username: str) -> None:
        return None


def test_a_keyring_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks_system, "KEYRING_SECONDS", 0.05)
    before, silent = keyring.get_keyring(), SilentKeyring()
    keyring.set_keyring(silent)
    try:
        finding = check_credentials(DataPaths(tmp_path / "data"))
    finally:
        silent.released.set()
        keyring.set_keyring(before)

    assert (finding.status, finding.summary.key) == ("warning", "doctor.credentials.unanswered")
    assert not (tmp_path / "data").exists()
