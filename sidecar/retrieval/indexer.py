"""Keeps blocks and the full text index in step with the notes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sidecar.kernel.database import Transaction
from sidecar.retrieval import store
from sidecar.retrieval.blocks import Block, cut_blocks
from sidecar.retrieval.passages import AudioSpan, find_spans
from sidecar.retrieval.store import (
    BlockRow,
    IndexedBlock,
    NewBlock,
    NoteEntry,
    NotePlace,
    TextState,
    Words,
)
from sidecar.vault.service import IndexedNote, IndexStep

# Blocks that one transaction writes, so that other writers needn't wait long.
STEP_BLOCKS = 400


class SearchIndexer:
    """The vault's indexer: what a write has stored can be found when it is answered."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, callback: Callable[[], None]) -> None:
        """Have *callback* called on the event loop after every transaction that changed blocks."""
        self._listeners.append(callback)

    def _changed(self) -> None:
        for callback in self._listeners:
            callback()

    def prepare(self, note: IndexedNote) -> Sequence[IndexStep]:
        """Cut the note into blocks; return the steps that bring the index to them."""
        blocks = prepare_blocks(note)
        entry = NoteEntry(
            note_id=note.note_id,
            vault_id=note.vault_id,
            title=note.title,
            file_path=note.file_path,
            folder_key=note.folder_key,
            source_audio=note.transcript.source_audio if note.transcript else None,
            tag_keys=note.tag_keys,
        )
        update = _NoteUpdate(entry, blocks, store.words_of_all(blocks))
        return [_Part(update, start) for start in range(0, len(blocks), STEP_BLOCKS)]

    def write(self, tx: Transaction, steps: Sequence[IndexStep]) -> None:
        """Write one step of each of some notes."""
        parts = [step for step in steps if isinstance(step, _Part)]
        state = store.text_state(tx)
        begun = [part.update for part in parts if part.start == 0]
        places = store.put_notes(tx, [update.entry for update in begun])
        for update in begun:
            update.begin(tx, state, places[update.entry.note_id])
        new = [block for part in parts for block in part.update.write(tx, state, part.start)]
        store.insert_blocks(tx, state, new)
        tx.after_commit(self._changed)

    def forget(self, tx: Transaction, note_id: str) -> None:
        """Take a note out of the index."""
        note_no = store.note_number(tx, note_id)
        if note_no is None:
            return
        state = store.text_state(tx)
        for row in store.blocks_of(tx, note_no).values():
            store.delete_block(tx, state, row)
        store.delete_note(tx, note_no)
        tx.after_commit(self._changed)


class _NoteUpdate:
    """The writes of one note. They run in order on the writer thread."""

    def __init__(
        self, entry: NoteEntry, blocks: Sequence[IndexedBlock], words: Sequence[Words]
    ) -> None:
        self.entry = entry
        self._blocks = blocks
        self._words = words
        self._note_no = 0
        self._former: dict[str, BlockRow] = {}

    def begin(self, tx: Transaction, state: TextState, place: NotePlace) -> None:
        """Take out the blocks that are gone."""
        self._note_no = place.note_no
        self._former = {} if place.is_new else store.blocks_of(tx, place.note_no)
        kept = {block.block_id for block in self._blocks} if self._former else set()
        for block_id, row in self._former.items():
            if block_id not in kept:
                store.delete_block(tx, state, row)

    def write(self, tx: Transaction, state: TextState, start: int) -> Iterator[NewBlock]:
        """Update the blocks from *start* on that are there already; yield those that aren't."""
        end = start + STEP_BLOCKS
        for block, words in zip(self._blocks[start:end], self._words[start:end], strict=True):
            row = self._former.get(block.block_id)
            if row is not None:
                store.update_block(tx, state, row, block)
            else:
                yield NewBlock(self._note_no, block, words)


@dataclass(frozen=True, slots=True)
class _Part(IndexStep):
    """The blocks of a note from one on, as many as one transaction writes of it."""

    update: _NoteUpdate
    start: int


def prepare_blocks(note: IndexedNote) -> list[IndexedBlock]:
    """Return a note's blocks as they are stored."""
    blocks = cut_blocks(note.note_id, note.content, note.body_start)
    spans: Sequence[AudioSpan | None] = [None] * len(blocks)
    if note.transcript is not None:
        spans = find_spans([block.text for block in blocks], note.transcript.passages)
    # The title counts once: were it in every block, a long note would fill the hits by itself.
    title = "\n".join((note.title, *note.front_matter_tags))
    return [
        _indexed(number, block, title if number == 0 else "", span)
        for number, (block, span) in enumerate(zip(blocks, spans, strict=True))
    ]


def _indexed(number: int, block: Block, title: str, span: AudioSpan | None) -> IndexedBlock:
    return IndexedBlock(
        block_id=block.block_id,
        ordinal=number,
        kind=block.kind,
        title=title,
        headings=block.heading_path,
        start=block.start,
        end=block.end,
        text=block.text,
        start_time=span.start_time if span else None,
        end_time=span.end_time if span else None,
        speaker=span.speaker if span else None,
    )
