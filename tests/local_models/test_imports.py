"""Imports from folders and archives, and what is refused."""

import asyncio
import errno
import io
import os
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from sidecar.local_models import importing
from sidecar.local_models.blocking_work import BrokenOff
from tests.local_models.conftest import CONTENTS, MODEL, UNKNOWN, Desk

Pack = Callable[[Path, dict[str, bytes]], Path]


def as_folder(where: Path, contents: dict[str, bytes]) -> Path:
    folder = where / "disk"
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def as_zip(where: Path, contents: dict[str, bytes]) -> Path:
    path = where / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def as_tar(where: Path, contents: dict[str, bytes]) -> Path:
    path = where / "model.tar.gz"
    with tarfile.open(path, "w:gz") as tape:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tape.addfile(member, io.BytesIO(content))
    return path


every_pack = pytest.mark.parametrize("pack", [as_folder, as_zip, as_tar])


def left_behind(desk: Desk) -> list[str]:
    staging = desk.managed / ".staging"
    found = [path for path in staging.rglob("*") if path.is_file()] if staging.exists() else []
    return [path.name for path in found]


def snapshot(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else [root]
    return {str(path): path.read_bytes() for path in paths}


@pytest.mark.proves(
    "local-models.import.post", "local-models.import.verified", "local-models.events.names"
)
@pytest.mark.parametrize("prefix", ["", "models--x/snapshots/main/"])
@every_pack
async def test_a_model_is_imported(desk: Desk, tmp_path: Path, pack: Pack, prefix: str) -> None:
    contents = {prefix + name: content for name, content in CONTENTS.items()}
    path = pack(tmp_path, contents | {"README.md": b"words"})
    before = snapshot(path)
    model = await desk.imported(path)
    assert model["status"] == "installed" and model["download"]["status"] == "completed"
    assert {name: (desk.folder() / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert not (desk.folder() / "README.md").exists()
    assert snapshot(path) == before and left_behind(desk) == []
    assert desk.source.asked == []
    names = [event.event for event in await desk.events()]
    assert names[0] == "Queued" and names[-1] == "Completed"


@pytest.mark.proves("local-models.import.not-a-model")
@every_pack
async def test_what_lacks_files_says_which(desk: Desk, tmp_path: Path, pack: Pack) -> None:
    path = pack(tmp_path, {"config.json": CONTENTS["config.json"], "notes.txt": b"?"})
    model = await desk.imported(path)
    error = model["download"]["error"]
    assert model["status"] == "not_installed" and model["download"]["status"] == "failed"
    assert error["code"] == "MODEL_INVALID"
    assert error["details"]["missing"] == ["model.bin", "tokenizer.json", "vocabulary.txt"]
    assert "not found: model.bin, tokenizer.json, vocabulary" in error["details"]["explanation"]
    assert left_behind(desk) == [] and not desk.folder().exists()


@pytest.mark.proves("local-models.import.not-a-model", "local-models.import.verified")
@pytest.mark.parametrize("content", [b"cut", CONTENTS["model.bin"][:-1] + b"!"])
@every_pack
async def test_wrong_files_are_named(
    desk: Desk, tmp_path: Path, pack: Pack, content: bytes
) -> None:
    model = await desk.imported(pack(tmp_path, CONTENTS | {"model.bin": content}))
    error = model["download"]["error"]
    assert (error["code"], error["details"]["wrong"]) == ("MODEL_INVALID", ["model.bin"])
    assert left_behind(desk) == [] and not desk.folder().exists()


async def test_without_known_hashes_the_structure_decides(desk: Desk, tmp_path: Path) -> None:
    bad = as_folder(tmp_path, CONTENTS | {"model.bin": b"cut"})
    error = (await desk.imported(bad, UNKNOWN))["download"]["error"]
    assert (error["code"], error["details"]["wrong"]) == ("MODEL_INVALID", ["model.bin"])
    assert left_behind(desk) == []
    good = as_folder(tmp_path / "good", CONTENTS)
    assert (await desk.imported(good, UNKNOWN))["status"] == "installed"


UNSAFE = [
    "../outside",
    "a/../../outside",
    "/tmp/outside",
    "C:/outside",
    "C:outside",
    "..\\outside",
    "con.txt",
    "a/NUL",
    "dot./file",
]


@pytest.mark.proves("local-models.import.archive-safe")
@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("pack", [as_zip, as_tar])
async def test_archives_that_lead_elsewhere(
    desk: Desk, tmp_path: Path, pack: Pack, name: str
) -> None:
    before = set(tmp_path.parent.rglob("*outside*"))
    model = await desk.imported(pack(tmp_path, CONTENTS | {name: b"evil"}))
    assert model["download"]["error"]["code"] == "MODEL_INVALID"
    assert model["download"]["error"]["details"]["reason"] == "unsafe_archive"
    assert set(tmp_path.parent.rglob("*outside*")) == before
    assert left_behind(desk) == [] and not desk.folder().exists()


@pytest.mark.proves("local-models.import.archive-safe")
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
async def test_links_and_devices_in_a_tar(desk: Desk, tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "model.tar"
    with tarfile.open(path, "w") as tape:
        member = tarfile.TarInfo("model.bin")
        member.type, member.linkname = kind, "/etc/passwd"
        tape.addfile(member)
    model = await desk.imported(path)
    assert model["download"]["error"]["details"]["reason"] == "unsafe_archive"


@pytest.mark.proves("local-models.import.archive-safe")
async def test_a_link_in_a_zip(desk: Desk, tmp_path: Path) -> None:
    path = as_zip(tmp_path, CONTENTS)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    model = await desk.imported(path)
    assert model["download"]["error"]["details"]["reason"] == "unsafe_archive"


@pytest.mark.proves("local-models.import.archive-safe")
async def test_too_many_or_too_well_packed_files(desk: Desk, tmp_path: Path) -> None:
    path = as_zip(tmp_path, CONTENTS | {"bomb": bytes(5_000_000)})
    model = await desk.imported(path)
    assert model["download"]["error"]["details"]["reason"] == "unsafe_archive"
    many = {f"file{number}": b"" for number in range(10_001)}
    model = await desk.imported(as_zip(tmp_path, many))
    assert model["download"]["error"]["details"]["reason"] == "archive_too_large"


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
async def test_files_that_are_no_archives(desk: Desk, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.zip"
    path.write_bytes(content)
    assert (await desk.imported(path))["download"]["error"]["code"] == "MODEL_INVALID"


async def test_a_cut_archive(desk: Desk, tmp_path: Path) -> None:
    path = as_tar(tmp_path, CONTENTS)
    path.write_bytes(path.read_bytes()[:-200])
    assert (await desk.imported(path))["download"]["error"]["code"] == "MODEL_INVALID"
    assert left_behind(desk) == []


@pytest.mark.proves("local-models.import.not-a-model")
@pytest.mark.parametrize(
    "way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]
)
async def test_a_zip_that_is_damaged_inside(desk: Desk, tmp_path: Path, way: int) -> None:
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w", way) as archive:
        for name, content in CONTENTS.items():
            archive.writestr(name, content)
    packed = bytearray(path.read_bytes())
    middle = len(packed) // 2
    packed[middle : middle + 1000] = bytes(byte ^ 0x5A for byte in packed[middle : middle + 1000])
    path.write_bytes(packed)
    error = (await desk.imported(path))["download"]["error"]
    assert (error["code"], error["details"]["reason"]) == ("MODEL_INVALID", "damaged_archive")
    assert error["details"]["explanation"].startswith("The archive is damaged")
    assert left_behind(desk) == []


@pytest.mark.skipif(os.name == "nt", reason="no pipes with names")
async def test_what_would_be_read_for_ever_is_not_read(desk: Desk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.zip")
    error = (await desk.imported(tmp_path / "model.zip"))["download"]["error"]
    assert error["details"]["reason"] == "not_a_folder_or_archive"


async def test_a_full_disk_is_told_as_such(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    error = (await desk.imported(as_folder(tmp_path, CONTENTS)))["download"]["error"]
    assert error["code"] == "DISK_SPACE_INSUFFICIENT"
    assert left_behind(desk) == []


def test_looking_through_an_archive_can_be_broken_off(tmp_path: Path) -> None:
    path = as_tar(tmp_path, {"zeros": bytes(50_000_000), **CONTENTS})
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > 4:
            raise BrokenOff

    with pytest.raises(BrokenOff), importing.open_source(path, check) as source:
        source.sizes()


@pytest.mark.proves("local-models.import.no-path")
@pytest.mark.parametrize("body", [{"path": "/etc"}, {"package_id": "package_1", "path": "/etc"}])
async def test_paths_are_not_taken(desk: Desk, body: dict[str, str]) -> None:
    answer = await desk.post("import", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")
    assert await desk.events() == []


@pytest.mark.proves("local-models.import.handle-unknown")
async def test_an_unknown_handle(desk: Desk) -> None:
    answer = await desk.post("import", json={"package_id": "package_unknown"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RESOURCE_NOT_FOUND")


async def test_a_folder_that_vanished_meanwhile(desk: Desk, tmp_path: Path) -> None:
    folder = as_folder(tmp_path, CONTENTS)
    package_id = await desk.package(folder)
    shutil.rmtree(folder)
    await desk.post("import", json={"package_id": package_id})
    assert (await desk.ended())["download"]["error"]["code"] == "MODEL_INVALID"


async def test_an_import_repairs_a_damaged_model(desk: Desk, tmp_path: Path) -> None:
    await desk.downloaded()
    (desk.folder() / "tokenizer.json").unlink()
    assert (await desk.model())["status"] == "damaged"
    assert (await desk.imported(as_folder(tmp_path, CONTENTS)))["status"] == "installed"
    assert (desk.folder(MODEL) / "tokenizer.json").exists()


@pytest.mark.proves("local-models.cancel.post", "local-models.delete.in-use")
async def test_a_cancelled_import_leaves_nothing(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, cancelled = threading.Event(), threading.Event()

    def slowly(file: IO[bytes], limit: int | None = None) -> Iterator[bytes]:
        yield file.read(limit or 10)
        reading.set()
        cancelled.wait(30)
        yield b"more"

    monkeypatch.setattr(importing, "_blocks", slowly)
    package_id = await desk.package(as_folder(tmp_path, CONTENTS))
    await desk.post("import", json={"package_id": package_id})
    assert await asyncio.to_thread(reading.wait, 30)
    for answer in (
        await desk.app.http.delete(f"/api/local-models/{MODEL}"),
        await desk.post("import", json={"package_id": package_id}),
        await desk.post("download"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "MODEL_IN_USE")
    assert (await desk.post("cancel")).status_code == 202
    cancelled.set()
    model = await desk.ended()
    assert (model["status"], model["download"]["status"]) == ("not_installed", "cancelled")
    assert left_behind(desk) == []
    assert (await desk.events())[-1].event == "Cancelled"


@pytest.mark.proves("local-models.delete.only-own-files", "local-models.import.verified")
async def test_a_linked_model_stays_where_it_is(desk: Desk, tmp_path: Path) -> None:
    source = as_folder(tmp_path, CONTENTS)
    before = snapshot(source)
    body = {"package_id": await desk.package(source), "link": True}
    assert (await desk.post("import", json=body)).status_code == 202
    model = await desk.ended()
    assert (model["status"], model["download"]["status"]) == ("installed", "completed")
    assert model["disk_bytes"] >= sum(map(len, CONTENTS.values()))
    assert all((desk.folder() / name).is_symlink() for name in CONTENTS)
    # What the user changes is noticed as it would be in a copy.
    (source / "model.bin").write_bytes(CONTENTS["model.bin"][:-1])
    assert (await desk.model())["status"] == "damaged"
    (source / "model.bin").write_bytes(CONTENTS["model.bin"])
    assert (await desk.model())["status"] == "installed"
    assert (await desk.app.http.delete(f"/api/local-models/{MODEL}")).status_code == 204
    assert snapshot(source) == before
    assert not desk.folder().exists()


@pytest.mark.proves("local-models.delete.only-own-files", "local-models.import.verified")
@pytest.mark.parametrize("above", [False, True])
async def test_files_of_the_managed_folder_are_never_linked(desk: Desk, above: bool) -> None:
    """The import takes the place of the very folder that they lie in."""
    shutil.move(as_folder(desk.app.data_dir, CONTENTS), desk.folder())
    body = {
        "package_id": await desk.package(desk.managed if above else desk.folder()),
        "link": True,
    }
    assert (await desk.post("import", json=body)).status_code == 202
    assert (await desk.ended())["download"]["status"] == "completed"
    await desk.app.services.local_models.close()
    assert {name: (desk.folder() / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert (await desk.model())["status"] == "installed"


async def test_a_linked_model_is_checked_like_a_copy(desk: Desk, tmp_path: Path) -> None:
    source = as_folder(tmp_path, CONTENTS | {"model.bin": CONTENTS["model.bin"][:-1] + b"!"})
    body = {"package_id": await desk.package(source), "link": True}
    assert (await desk.post("import", json=body)).status_code == 202
    model = await desk.ended()
    assert model["download"]["error"]["code"] == "MODEL_INVALID"
    assert model["status"] == "not_installed" and left_behind(desk) == []
    assert (source / "model.bin").is_file()
