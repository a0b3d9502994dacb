"""The models that the product knows: a data file in the package, and one that the user may add.

``catalogue.json`` in the managed models folder adds models, or takes the place of those with the same
id: an organisation names its own mirrors there.
"""

import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sidecar.kernel.logging import get_logger

log = get_logger(__name__)

Purpose = Literal["transcription", "diarization", "speaker_matching", "embedding", "rerank"]
Format = Literal["whisper", "onnx", "pyannote"]

VERSION: Final = 1
USER_FILE: Final = "catalogue.json"
# These follow /api/local-models/ themselves.
RESERVED_IDS: Final = frozenset({"diagnostics", "runtime-components"})
LONGEST_ID: Final = 100
_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_model_id(value: str) -> bool:
    """Whether *value* can name a model: the name of one visible folder that is no path of the API.

    Models that a user put there keep the names that they came with, in whatever script.
    """
    return (
        0 < len(value) <= LONGEST_ID
        and value.isprintable()
        and "/" not in value
        and not value.startswith(".")
        and is_safe_name(value)
        and value.lower() not in RESERVED_IDS
    )


def _model_id(value: str) -> str:
    if not _ID.fullmatch(value) or not is_model_id(value):
        raise ValueError("not the id of a model: a plain name in lower case")
    return value


def _relative_path(value: str) -> str:
    if not all(_PART.fullmatch(part) for part in value.split("/")):
        raise ValueError("not a plain relative path")
    return value


def _web_address(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise ValueError("not an address")
    return value.rstrip("/")


RelativePath = Annotated[str, AfterValidator(_relative_path)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ModelFile(_Entry):
    """One file of a model. ``origin`` is its path at the source where it differs.

    ``repository`` and ``revision`` are its own where it comes from another place than the rest.

    A ``sha256`` that isn't known is None, and so is a ``size``. ``package`` names the parts that Python
    packages carry, in order; the first part of each path is the package.
    """

    path: RelativePath
    origin: RelativePath | None = Field(None, alias="from")
    repository: str | None = None
    revision: str = "main"
    size: int | None = Field(None, ge=0)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    package: tuple[RelativePath, ...] = ()

    @property
    def source_path(self) -> str:
        """Where the file lies at its source."""
        return self.origin or self.path


class CatalogueModel(_Entry):
    """One model, as it can be had. ``written`` are small files that the program adds."""

    model_id: Annotated[str, AfterValidator(_model_id)]
    display_name: str
    purpose: Purpose
    format: Format
    licence: str
    repository: str
    revision: str = "main"
    languages: tuple[str, ...] = ()
    recommended: bool = False
    gated: bool = False
    runtime: Literal["bundled", "managed"] = "bundled"
    page: str | None = None
    size_bytes: int = Field(ge=0)
    mirrors: tuple[Annotated[str, AfterValidator(_web_address)], ...] = ()
    files: tuple[ModelFile, ...] = Field(min_length=1)
    written: dict[RelativePath, dict[str, Any]] = Field(default_factory=dict)

    def urls(self, file: ModelFile) -> Iterator[str]:
        """Yield the addresses of a file, in the order in which they are tried."""
        place = f"{self.repository}/resolve/{self.revision}"
        if file.repository is not None:
            place = f"{file.repository}/resolve/{file.revision}"
        for mirror in self.mirrors:
            yield f"{mirror}/{place}/{file.source_path}"

    @property
    def known_size(self) -> int | None:
        """The length of all files, None if one isn't known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)


class _Document(_Entry):
    version: Literal[1]
    about: tuple[str, ...] = ()
    mirrors: tuple[Annotated[str, AfterValidator(_web_address)], ...]
    models: tuple[CatalogueModel, ...]

    def complete(self) -> dict[str, CatalogueModel]:
        """Return the models by id, each with the mirrors that hold for it."""
        return {
            model.model_id: (
                model if model.mirrors else model.model_copy(update={"mirrors": self.mirrors})
            )
            for model in self.models
        }


class Catalogue:
    """The catalogue, read when it is first asked for, and again when the user's file has changed."""

    def __init__(self, models_dir: Path) -> None:
        self._user_file = models_dir / USER_FILE
        self._models: dict[str, CatalogueModel] | None = None
        self._stamp: tuple[int, int] | None = None

    def models(self) -> dict[str, CatalogueModel]:
        """Return every model by its id, in the order of the file."""
        try:
            status = self._user_file.stat()
            stamp = (status.st_size, status.st_mtime_ns)
        except OSError:
            stamp = None
        if self._models is None or stamp != self._stamp:
            self._models, self._stamp = bundled_models() | self._users_models(), stamp
        return self._models

    def _users_models(self) -> dict[str, CatalogueModel]:
        try:
            text = self._user_file.read_text(encoding="utf-8")
        except OSError:
            # Hardly anybody has one.
            return {}
        try:
            return _Document.model_validate(json.loads(text)).complete()
        except (ValueError, ValidationError) as error:
            # Whoever wrote the file finds here what to mend.
            log.warning("models.catalogue_invalid", extra={"reason": _complaint(error)})
            return {}


def _complaint(error: ValueError) -> str:
    """Say where the file is wrong, without its values."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error) if isinstance(error, json.JSONDecodeError) else type(error).__name__


def bundled_models() -> dict[str, CatalogueModel]:
    """Return the models of the package's own data file."""
    text = resources.files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    return _Document.model_validate(json.loads(text)).complete()


def is_safe_name(name: str) -> bool:
    """Whether the name of a file in an archive leads nowhere but into the archive's own folder."""
    path = PurePosixPath(name)
    return not (
        "\\" in name
        or ":" in name
        or "\0" in name
        or path.is_absolute()
        or any(part == ".." or _is_reserved(part) for part in path.parts)
    )


_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def _is_reserved(part: str) -> bool:
    # Windows opens a device for these, whatever the ending, and drops dots and spaces at the end.
    return bool(_DEVICES.fullmatch(part)) or part.rstrip(". ") != part
