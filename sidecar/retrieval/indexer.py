"""Keeps blocks and the full text index in step with the notes."""

from collections.abc import Callable, Sequence

from sidecar.kernel.database import Transaction
from sidecar.retrieval import store
from sidecar.retrieval.blocks import Block, cut_blocks
from sidecar.retrieval.passages import AudioSpan, find_spans
from sidecar.retrieval.store import BlockRow, IndexedBlock, NoteEntry, Words
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
        """Cut the note into blocks; return the writes that bring the index to them."""
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
        words = [store.words_of(block) for block in blocks]
        update = _NoteUpdate(entry, blocks, words, self._changed)
        later = range(STEP_BLOCKS, len(blocks), STEP_BLOCKS)
        return [update.begin, *(update.part(start) for start in later)]

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
        self,
        entry: NoteEntry,
        blocks: Sequence[IndexedBlock],
        words: Sequence[Words],
        changed: Callable[[], None],
    ) -> None:
        self._entry = entry
        self._blocks = blocks
        self._words = words
        self._changed = changed
        self._note_no = 0
        self._former: dict[str, BlockRow] = {}

    def begin(self, tx: Transaction) -> None:
        """Store the note, take out the blocks that are gone, and write the first ones."""
        self._note_no = store.put_note(tx, self._entry)
        self._former = store.blocks_of(tx, self._note_no)
        state = store.text_state(tx)
        kept = {block.block_id for block in self._blocks}
        for block_id, row in self._former.items():
            if block_id not in kept:
                store.delete_block(tx, state, row)
        self._write(tx, 0)

    def part(self, start: int) -> IndexStep:
        """Return the write of the blocks from *start* on."""
        return lambda tx: self._write(tx, start)

    def _write(self, tx: Transaction, start: int) -> None:
        state = store.text_state(tx)
        end = start + STEP_BLOCKS
        for block, words in zip(self._blocks[start:end], self._words[start:end], strict=True):
            row = self._former.get(block.block_id)
            if row is not None:
                store.update_block(tx, state, row, block)
            else:
                store.insert_block(tx, state, self._note_no, block, words)
        tx.after_commit(self._changed)


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
