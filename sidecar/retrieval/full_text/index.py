"""Builds the full text index anew while the old one serves."""

from collections.abc import Awaitable, Callable
from typing import Final

from sidecar.kernel.database import Database, Transaction
from sidecar.retrieval import store
from sidecar.retrieval.full_text.terms import FORMAT
from sidecar.retrieval.store import FORMAT_STATE, TextState

# As many as one statement takes: each one has the index write out what it gathered.
COPIED_AT_ONCE: Final = 2000

Report = Callable[[int, int], Awaitable[None]]


async def rebuild_text(database: Database, report: Report) -> None:
    """Write the words of every block into the index that doesn't serve, then let that one serve.

    Blocks that change meanwhile are written into both. A build that is broken off leaves the old
    index serving, and the next one begins anew.
    """
    await database.write(_begin)
    total = await database.read(store.count_all_blocks)
    done = 0
    while copied := await database.write(_copy):
        done += copied
        await report(min(done, total), total)
    await database.write(_finish)


def _begin(tx: Transaction) -> None:
    state = store.text_state(tx)
    store.clear_text(tx, state.other)
    store.put_text_state(tx, TextState(state.active, building=True, copied=0))


def _copy(tx: Transaction) -> int:
    state = store.text_state(tx)
    rows = store.blocks_after(tx, state.copied, COPIED_AT_ONCE)
    store.insert_texts(
        tx, state.other, [(row.block_no, *store.words_of(row.block)) for row in rows]
    )
    if rows:
        store.put_text_state(tx, TextState(state.active, building=True, copied=rows[-1].block_no))
    return len(rows)


def _finish(tx: Transaction) -> None:
    """Copy what came last and change over, in one step that no write can come between."""
    while _copy(tx):
        continue
    state = store.text_state(tx)
    store.clear_text(tx, state.active)
    store.put_text_state(tx, TextState(state.other, building=False, copied=0))
    store.put_state(tx, FORMAT_STATE, FORMAT)
