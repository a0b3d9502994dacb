"""Which speech models are installed, and whether they are whole."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.kernel.logging import get_logger
from sidecar.local_models.installed import FileChecks
from sidecar.local_models.structure import wrong_files

log = get_logger(__name__)

MODEL_FILE: Final = "model.bin"
_VOCABULARIES: Final = ("vocabulary.json", "vocabulary.txt")


@dataclass(frozen=True, slots=True)
class SpeechModel:
    """A folder with a faster-whisper model. ``size`` is that of its weights, in bytes."""

    name: str
    path: Path
    size: int
    damaged: bool


@dataclass(frozen=True, slots=True)
class _Checked:
    """What a check of a weights file found, good until a file of the folder changes."""

    stamp: tuple[tuple[str, int, int], ...]
    damaged: bool


class LocalModels:
    """Looks for models in the managed folder and in further ones, first come first."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._checked: dict[Path, _Checked] = {}
        self.files = FileChecks()

    def forget(self) -> None:
        """Look at every model anew the next time."""
        self._checked.clear()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where models are looked for; the managed folder comes first."""
        return self._folders

    def speech_models(self) -> list[SpeechModel]:
        """Return the speech models, largest first. Reads the disk: call it off the event loop.

        A folder of the list may hold models, or be one itself. Of two models with one name the
        first wins, unless it is damaged and the other is not.
        """
        found: dict[str, SpeechModel] = {}
        for folder in self._folders:
            for candidate in _candidates(folder):
                model = self._speech_model(candidate)
                if model is not None and (model.name not in found or found[model.name].damaged):
                    found[model.name] = model
        return sorted(found.values(), key=lambda model: -model.size)

    def find_speech_model(self, name: str | None = None) -> SpeechModel | None:
        """Return the model called *name*; without a name, the best one that is whole.

        The result is damaged only if there is no other. Reads the disk.
        """
        models = [model for model in self.speech_models() if name is None or model.name == name]
        whole = [model for model in models if not model.damaged]
        return next(iter(whole or models), None)

    async def speech_model(self, name: str | None = None) -> SpeechModel | None:
        """Return what :meth:`find_speech_model` finds, without blocking the event loop."""
        return await asyncio.to_thread(self.find_speech_model, name)

    def _speech_model(self, folder: Path) -> SpeechModel | None:
        weights = folder / MODEL_FILE
        try:
            if not weights.is_file() or not (folder / "config.json").is_file():
                return None
            stamp = _stamp(folder)
            checked = self._checked.get(weights)
            if checked is None or checked.stamp != stamp:
                whole = _is_whole(folder) and self.files.is_unchanged(folder)
                checked = _Checked(stamp, not whole)
                self._checked[weights] = checked
            size = weights.stat().st_size
        except OSError as error:
            log.warning(
                "models.unreadable_folder", extra={"model": folder.name, "reason": str(error)}
            )
            return None
        return SpeechModel(folder.name, folder, size, checked.damaged)


def _candidates(folder: Path) -> list[Path]:
    if (folder / MODEL_FILE).is_file():
        return [folder]
    try:
        return sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError:
        # A folder that isn't there holds no models; that is how most of them begin.
        return []


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        sorted(
            (child.name, child.stat().st_size, child.stat().st_mtime_ns)
            for child in folder.iterdir()
            if child.is_file()
        )
    )


def _is_whole(folder: Path) -> bool:
    has_vocabulary = any((folder / name).is_file() for name in _VOCABULARIES)
    wrong = wrong_files(folder, ["config.json", "tokenizer.json", MODEL_FILE])
    if wrong or not has_vocabulary:
        log.warning("models.damaged", extra={"model": folder.name, "files": wrong})
        return False
    return True
