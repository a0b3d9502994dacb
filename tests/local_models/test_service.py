import shutil
from pathlib import Path

import pytest

from sidecar.local_models.ctranslate2_file import NotWholeError, check_model_file
from sidecar.local_models.service import LocalModels
from tests.app_client import MODELS_DIR

BASE = MODELS_DIR / "whisper-base"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder of models with a copy of the model that the tests use."""
    folder = tmp_path / "models"
    shutil.copytree(BASE, folder / "whisper-base", copy_function=_link)
    return folder


def _link(source: str, target: str) -> None:
    Path(target).symlink_to(Path(source).resolve())


def test_the_real_model_is_found_and_whole() -> None:
    model = LocalModels([MODELS_DIR]).find_speech_model()
    assert model is not None
    assert (model.name, model.damaged, model.size) == ("whisper-base", False, 145_217_532)


def test_a_models_own_folder_can_be_named() -> None:
    assert LocalModels([BASE]).find_speech_model("whisper-base") is not None


def test_folders_without_models_hold_none(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert LocalModels([tmp_path, tmp_path / "missing"]).speech_models() == []


def test_a_cut_model_is_damaged_once_it_is_looked_at(copied: Path) -> None:
    models = LocalModels([copied])
    weights = copied / "whisper-base" / "model.bin"
    assert not models.speech_models()[0].damaged
    whole = weights.resolve()
    weights.unlink()
    with whole.open("rb") as source:
        weights.write_bytes(source.read(10_000_000))
    assert models.speech_models()[0].damaged
    with pytest.raises(NotWholeError):
        check_model_file(weights)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocabulary.txt"])
def test_a_model_that_lacks_a_file_is_damaged(copied: Path, name: str) -> None:
    (copied / "whisper-base" / name).unlink()
    model = LocalModels([copied]).find_speech_model()
    assert model is not None
    assert model.damaged


def test_a_whole_model_is_preferred_to_a_damaged_one(copied: Path) -> None:
    (copied / "whisper-base" / "tokenizer.json").unlink()
    model = LocalModels([copied, MODELS_DIR]).find_speech_model()
    assert model is not None
    assert model.path == BASE


@pytest.mark.parametrize("content", [b"", b"\x06\0\0\0", b"not a model at all" * 10])
def test_other_files_are_no_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(NotWholeError):
        check_model_file(path)
