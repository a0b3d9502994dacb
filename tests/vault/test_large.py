"""A vault of many notes can be used while it is taken in."""

from itertools import pairwise
from pathlib import Path

from tests.app_client import running_app
from tests.vault.conftest import Vault

NOTES = 2000


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
                assert (
                    0 <= index["progress"]["current"] <= index["progress"]["total"] + len(progress)
                )
        # It went on step by step, and requests were answered in between.
        assert len(progress) > 3
        counts = [count for _, count in progress]
        assert counts == sorted(counts)
        # A second look, once changes are watched, begins its count anew when all notes are there.
        falls = [count for (then, _), (now, count) in pairwise(progress) if now < then]
        assert len(falls) <= 1
        assert all(count >= NOTES for count in falls)
        total = (await app.http.get("/api/notes?limit=1")).json()["page"]["total"]
        assert total == NOTES + len(progress)
        for number in range(0, NOTES, 97):
            assert len(await vault.found(f"word{number}x", limit=20)) == 10
