"""The folders of models on this computer: what lies in them, how models come and go."""

import asyncio
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.kernel.logging import get_logger
from sidecar.local_models.catalogue import Catalogue, CatalogueModel, Purpose, is_model_id
from sidecar.local_models.finder import MODEL_FILE, LocalModels
from sidecar.local_models.installed import MANIFEST, disk_bytes
from sidecar.local_models.verification import ModelVerification

log = get_logger(__name__)

STAGING: Final = ".staging"
DOWNLOAD: Final = "download"
IMPORT: Final = "import"
_REMOVED: Final = "removed-"
# The description that a model's user reads → what the folder is for.
_DESCRIPTIONS: Final[dict[str, Purpose]] = {
    "embedding.json": "embedding",
    "reranker.json": "rerank",
    "diarization.json": "diarization",
    "speaker.json": "speaker_matching",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A model of the catalogue, or a folder that holds one. ``folder`` is None where none is."""

    model_id: str
    purpose: Purpose
    entry: CatalogueModel | None
    folder: Path | None
    damaged: bool
    disk_bytes: int | None
    removable: bool


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model that lies on this computer."""

    model_id: str
    folder: Path
    damaged: bool


class InstalledModels:
    """Finds models for those who use them, without blocking the event loop."""

    def __init__(self, library: "ModelLibrary") -> None:
        self._library = library

    async def installed(self, purpose: Purpose) -> InstalledModel | None:
        """Return the best model for a purpose; a damaged one only if there is no other."""
        known = await asyncio.to_thread(self._library.best, purpose)
        if known is None or known.folder is None:
            return None
        return InstalledModel(known.model_id, known.folder, known.damaged)

    async def is_usable(self, folder: Path) -> bool:
        """Whether nothing in a model's folder has changed since it was installed."""
        return await asyncio.to_thread(self._library.is_usable, folder)


class ModelLibrary:
    """Looks into the managed folder and the further ones. Its methods read and write the disk."""

    def __init__(self, managed: Path, finder: LocalModels) -> None:
        self.managed = managed
        self._finder = finder
        self.catalogue = Catalogue(managed)

    def staging(self, model_id: str, purpose: str) -> Path:
        """Return the folder in which a model is put together."""
        return self.managed / STAGING / model_id / purpose

    def all(self) -> list[Known]:
        """Return the models of the catalogue in its order, then those that lie there besides."""
        entries = self.catalogue.models()
        found = [self._known(entry.model_id, entry) for entry in entries.values()]
        others: dict[str, Known] = {}
        for folder in self._finder.folders:
            for child in _children(folder):
                # Where case doesn't count in names, it is the folder of the catalogue's model.
                listed = child.name in others or child.name.lower() in entries
                if listed or not is_model_id(child.name):
                    continue
                known = self._known(child.name, None)
                if known.folder is not None:
                    others[child.name] = known
        return [*found, *(others[name] for name in sorted(others))]

    def get(self, model_id: str) -> Known | None:
        """Return a model, None if neither the catalogue nor a folder knows it."""
        if not is_model_id(model_id):
            return None
        entry = self.catalogue.models().get(model_id)
        known = self._known(model_id, entry)
        return known if entry is not None or known.folder is not None else None

    def best(self, purpose: Purpose) -> Known | None:
        """Return the installed model for a purpose, a recommended one first; a damaged one last."""
        found = [known for known in self.all() if known.purpose == purpose and known.folder]
        return min(
            found, key=lambda known: (known.damaged, self.rank(known.model_id)), default=None
        )

    def rank(self, model_id: str) -> int:
        """Return how far behind others of its purpose a model is chosen if several are installed.

        Recommended ones come first, then those of the catalogue in its order, then all others.
        """
        entries = self.catalogue.models()
        entry = entries.get(model_id)
        if entry is None:
            return len(entries) + 1
        return 0 if entry.recommended else 1 + list(entries).index(model_id)

    def is_usable(self, folder: Path) -> bool:
        """Whether the files in *folder* are those that were installed; reads changed ones whole."""
        return self._finder.files.is_unchanged(folder)

    def _known(self, model_id: str, entry: CatalogueModel | None) -> Known:
        folders = [
            parent / model_id
            for parent in self._finder.folders
            if self._purpose(parent / model_id, entry) is not None
        ]
        sound = [folder for folder in folders if not self._is_damaged(folder, entry)]
        folder = next(iter(sound or folders), None)
        purpose = entry.purpose if entry else self._purpose(folder, None) if folder else None
        return Known(
            model_id,
            purpose or "transcription",
            entry,
            folder,
            damaged=folder is not None and not sound,
            disk_bytes=disk_bytes(folder) if folder else None,
            removable=folder is not None and folder.parent == self.managed,
        )

    def _purpose(self, folder: Path, entry: CatalogueModel | None) -> Purpose | None:
        """Return what the folder is for, None if it holds no model."""
        try:
            if not folder.is_dir():
                return None
            if entry is not None:
                return entry.purpose
            if (folder / MODEL_FILE).is_file() and (folder / "config.json").is_file():
                return "transcription"
            names = [name for name in _DESCRIPTIONS if (folder / name).is_file()]
            return _DESCRIPTIONS[names[0]] if names else None
        except OSError as error:
            log.warning("models.unreadable_folder", extra={"reason": type(error).__name__})
            return None

    def _is_damaged(self, folder: Path, entry: CatalogueModel | None) -> bool:
        try:
            if (folder / MANIFEST).is_file():
                return not self._finder.files.is_unchanged(folder, quick=True)
            needed = [file.path for file in entry.files] if entry else [MODEL_FILE]
            if entry is None and not (folder / MODEL_FILE).is_file():
                return False
            return not self._finder.files.are_whole(folder, needed)
        except OSError:
            return True

    # -- coming and going ----------------------------------------------------------------------

    def place(self, staged: Path, model_id: str) -> None:
        """Give a complete staged folder its place, in one rename; an older one makes room."""
        target = self.managed / model_id
        aside = self._set_aside(target) if target.is_symlink() or target.exists() else None
        try:
            staged.rename(target)
        except OSError:
            if aside is not None:
                aside.rename(target)
            raise

    def remove(self, model_id: str) -> bool:
        """Remove a model from the managed folder; False if none is there.

        A link goes, and what it leads to stays.
        """
        target = self.managed / model_id
        if target.is_symlink():
            target.unlink()
        elif target.is_dir():
            self._set_aside(target)
        else:
            return False
        shutil.rmtree(self.managed / STAGING / model_id, ignore_errors=True)
        self.tidy()
        return True

    def discard_partial(self, model_id: str) -> bool:
        """Delete what transfers that didn't end well left of a model; False if there is nothing."""
        left = self.managed / STAGING / model_id
        if not left.is_dir():
            return False
        shutil.rmtree(left, ignore_errors=True)
        return True

    def verification(self, known: Known, folder: Path) -> ModelVerification:
        """Return the work of reading the model in *folder*, its own, whole.

        One in the managed folder that somebody put there is held to what the catalogue says of its files.
        """
        hashes: dict[str, str] = {}
        if known.entry and not known.damaged and not (folder / MANIFEST).exists():
            hashes = {file.path: file.sha256 for file in known.entry.files if file.sha256}
            # A manifest that left a file out would tell later that nothing is missing.
            if len(hashes) < len(known.entry.files):
                hashes = {}
        note_as = known.model_id if known.removable else None
        return ModelVerification(folder, self._finder, note_as=note_as, hashes=hashes)

    def discard(self, staged: Path) -> None:
        """Delete a staging folder of no further use."""
        shutil.rmtree(staged, ignore_errors=True)

    def tidy(self, *, at_start: bool = False) -> None:
        """Delete what was set aside, and *at_start* also what imports that were cut off left."""
        try:
            children = list((self.managed / STAGING).iterdir())
        except OSError:
            # Nothing was ever downloaded.
            return
        for child in children:
            if child.name.startswith(_REMOVED):
                shutil.rmtree(child, ignore_errors=True)
            elif at_start:
                shutil.rmtree(child / IMPORT, ignore_errors=True)

    def _set_aside(self, target: Path) -> Path:
        aside = self.managed / STAGING / f"{_REMOVED}{secrets.token_hex(8)}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        target.rename(aside)
        return aside


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError:
        # A folder that isn't there holds no models.
        return []
