"""Reads an installed model whole, to find what a disk spoiled without anybody's writing."""

from pathlib import Path

from sidecar.local_models.blocking_work import BlockingWork
from sidecar.local_models.finder import LocalModels
from sidecar.local_models.installed import describe, read_manifest


class ModelVerification(BlockingWork):
    """The verification of one folder. What it finds counts from then on, in whatever lists models."""

    def __init__(
        self, folder: Path, finder: LocalModels, *, note_as: str | None, hashes: dict[str, str]
    ) -> None:
        """With *note_as*, the model's id, later processes know of what is found.

        A folder that has no manifest gets one with *hashes*, if there are any: somebody else put it there.
        Without either it is judged by its structure alone, as in a list.
        """
        super().__init__()
        self._folder = folder
        self._finder = finder
        self._note_as = note_as
        self._hashes = hashes

    def run(self) -> None:
        """Read every file; broken off, none counts as wrong that did not before."""
        if self._note_as is not None and self._hashes:
            describe(self._folder, self._note_as, self._hashes)
        self.total = sum(file.size for file in read_manifest(self._folder) or ())
        self._finder.files.verify(self._folder, self._count, note=self._note_as is not None)
        self._finder.forget()

    def _count(self, size: int) -> None:
        self.check()
        self.bytes_done += size
