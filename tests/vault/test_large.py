"""A vault of many notes can be used while it is taken in."""

from pathlib import Path

from tests.app_client import running_app
from tests.vault.conftest import Vault, eventually

NOTES = 2000
LATER = 450
"""So many that the watcher has the whole vault looked through again."""
EDITED = 150
LONG_BLOCKS = 1100
"""More than one transaction writes of a note."""


async def test_a_vault_is_usable_while_it_is_taken_in(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    for number in range(NOTES):
        target = folder / f"folder {number % 20}/note {number}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"# Note {number}\n\n" + f"word{number}x text\n\n" * 10, encoding="utf-8")
    async with running_app(tmp_path) as app:
        vault = Vault(app, folder)
        progress = []
        while (state := await vault.state())["state"] == "scanning":
            progress.append((state["scanned"], state["note_count"]))
            note = await vault.create("Meanwhile", f"fresh{len(progress)}z words")
            assert len(await vault.found(f"fresh{len(progress)}z")) == 1
            assert (await vault.get(note["note_id"]))["content"] == note["content"]
            assert len((await app.http.get("/api/folders")).json()["items"]) == 20
            index = (await app.http.get("/api/index/status")).json()
            if index["progress"] is not None:
                assert index["status"] == "running"
                assert 0 <= index["progress"]["current"] <= index["progress"]["total"]
        # It went on step by step, and requests were answered in between.
        assert len(progress) > 3
        assert progress == sorted(progress)
        await _change_files_outside(vault, progress[-1][0])
        total = (await app.http.get("/api/notes?limit=1")).json()["page"]["total"]
        assert total == NOTES + len(progress) + LATER
        for number in range(EDITED, NOTES, 97):
            assert len(await vault.found(f"word{number}x", limit=20)) == 10


async def _change_files_outside(vault: Vault, reached: int) -> None:
    """Have the vault looked through once more; what was reached before is never taken back."""
    for number in range(LATER - 1):
        vault.write(f"later/note {number}.md", f"# Later {number}\n\nlater{number}x text")
    vault.write("later/long.md", "longest paragraph\n\n" * LONG_BLOCKS)
    for number in range(EDITED):
        # One of the ten paragraphs is another one now.
        text = f"# Note {number}\n\n" + f"word{number}x text\n\n" * 9 + f"edited{number}x"
        vault.write(f"folder {number % 20}/note {number}.md", text)
    seen = [reached]

    async def all_are_there() -> bool:
        state = await vault.state()
        seen.append(state["scanned"])
        assert state["total"] is None or state["scanned"] <= state["total"]
        return bool(
            state["note_count"] >= NOTES + LATER
            and await vault.found(f"edited{EDITED - 1}x")
            and len(await vault.found("longest", limit=100)) == 100
        )

    await eventually(all_are_there)
    await vault.scanned()
    assert seen == sorted(seen)
    assert (await vault.state())["scanned"] >= NOTES + LATER + EDITED
    for number in range(0, EDITED, 7):
        assert len(await vault.found(f"word{number}x", limit=20)) == 9
        assert len(await vault.found(f"edited{number}x", limit=20)) == 1
        assert len(await vault.found(f"later{number}x", limit=20)) == 1
    filled = await vault.app.services.database.read(
        lambda conn: conn.execute(
            "SELECT count(*) FROM search_blocks WHERE text = 'longest paragraph'"
        ).fetchone()[0]
    )
    assert filled == LONG_BLOCKS
