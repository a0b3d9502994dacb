"""The list of models, what lies on the disk, and removal."""

import asyncio
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from sidecar.local_models import installed
from sidecar.local_models.catalogue import Catalogue, bundled_models, is_model_id
from sidecar.local_models.library import Known
from sidecar.local_models.structure import wrong_files
from tests.app_client import MODELS_DIR, running_app
from tests.local_models.conftest import CONTENTS, MODEL, UNKNOWN, Desk

LIST = "/api/local-models"


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.proves(
    "local-models.list.get",
    "local-models.list.no-side-effects",
    "local-models.list.disk-bytes-not-installed",
    "local-models.list.no-paths",
)
async def test_the_whole_catalogue_is_listed(desk: Desk) -> None:
    answer = await desk.app.http.get(LIST)
    body = answer.json()
    assert answer.status_code == 200
    listed = [item["model_id"] for item in body["items"]]
    assert listed == [*bundled_models(), MODEL, "test-gated", UNKNOWN]
    assert body["page"] == {"total": len(listed), "limit": 50, "offset": 0}
    assert {item["status"] for item in body["items"]} == {"not_installed"}
    assert {item["disk_bytes"] for item in body["items"]} == {None}
    assert {item["download"] for item in body["items"]} == {None}
    assert str(desk.app.data_dir) not in answer.text
    assert desk.source.asked == [] and desk.mirror.asked == []
    assert sorted(path.name for path in desk.managed.iterdir()) == ["catalogue.json"]
    page = (await desk.app.http.get(LIST, params={"limit": 2, "offset": 1})).json()
    assert [item["model_id"] for item in page["items"]] == listed[1:3]


@pytest.mark.proves(
    "local-models.list.disk-bytes",
    "local-models.list.disk-bytes-apart",
    "local-models.list.disk-bytes-null",
)
async def test_disk_bytes_are_those_on_the_disk(desk: Desk) -> None:
    model = await desk.downloaded()
    size = folder_size(desk.folder())
    assert model["disk_bytes"] == size != model["download"]["bytes"]
    extra = desk.folder() / "below" / "extra.bin"
    extra.parent.mkdir()
    extra.write_bytes(b"x" * 1234)
    model = await desk.model()
    assert model["disk_bytes"] == size + 1234
    assert model["download"]["bytes"] == sum(map(len, CONTENTS.values()))
    extra.unlink()
    assert (await desk.model())["disk_bytes"] == size
    (desk.folder() / "gone").symlink_to("nowhere")
    model = await desk.model()
    assert (model["disk_bytes"], model["status"]) == (None, "installed")


async def test_bytes_of_a_download_are_not_those_on_the_disk(desk: Desk) -> None:
    gate = desk.served("model.bin").gate = threading.Event()
    await desk.post("download")
    await desk.partly(1000)
    assert (await desk.model())["disk_bytes"] is None
    gate.set()
    await desk.ended()


@pytest.mark.proves("local-models.list.get", "local-models.delete.only-own-files")
async def test_models_that_lie_there_besides(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(MODELS_DIR / "whisper-base", elsewhere, copy_function=os.link)
    desk.managed.joinpath("my-own").symlink_to(elsewhere)
    model = await desk.model("my-own")
    assert (model["status"], model["purpose"], model["removable"]) == (
        "installed",
        "transcription",
        True,
    )
    before = folder_size(elsewhere)
    answer = await desk.app.http.delete(f"{LIST}/my-own")
    assert answer.status_code == 204
    assert not desk.managed.joinpath("my-own").is_symlink()
    assert folder_size(elsewhere) == before


@pytest.mark.parametrize("name", ["Belle-Whisper-V3", "我的模型", "a model of mine"])
async def test_models_keep_the_names_they_came_with(desk: Desk, name: str) -> None:
    """What is used is shown, and can be removed."""
    shutil.copytree(MODELS_DIR / "whisper-base", desk.managed / name)
    assert (await desk.model(name))["status"] == "installed"
    (desk.managed / name / "model.bin").write_bytes(b"cut")
    assert (await desk.model(name))["status"] == "damaged"
    error = (await desk.downloaded(name))["download"]["error"]
    assert (error["code"], error["details"]["reason"]) == ("MODEL_DOWNLOAD_FAILED", "own_model")
    assert error["details"]["explanation"].startswith("This model is one of your own")
    assert (await desk.app.http.delete(f"{LIST}/{name}")).status_code == 204
    assert not (desk.managed / name).exists()


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "a/b", "a\\b", "a:b", "a\nb", "nul", "Diagnostics", "x" * 101],
)
def test_what_names_no_model(name: str) -> None:
    assert not is_model_id(name)


async def test_a_model_of_another_folder_is_shown_and_left_alone(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        items = (await app.http.get(LIST)).json()["items"]
        base = next(item for item in items if item["model_id"] == "whisper-base")
        assert base["status"] == "installed" and base["removable"] is False
        assert base["disk_bytes"] == folder_size(MODELS_DIR / "whisper-base")
        answer = await app.http.delete(f"{LIST}/whisper-base")
        assert answer.json()["error"]["code"] == "LOCAL_MODEL_NOT_INSTALLED"
        assert (MODELS_DIR / "whisper-base" / "model.bin").is_file()


async def test_no_list_shows_a_download_that_is_over_without_its_model(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The download ends while the list looks at the disk."""
    desk.served("model.bin").gate = gate = threading.Event()
    await desk.post("download")
    await desk.partly(16 * 1024)
    library = desk.app.services.local_models.library
    looked, over = threading.Event(), threading.Event()
    look = library.all

    def slowly() -> list[Known]:
        found = look()
        looked.set()
        over.wait(30)
        return found

    monkeypatch.setattr(library, "all", slowly)
    listing = asyncio.create_task(desk.model())
    assert await asyncio.to_thread(looked.wait, 30)
    gate.set()
    async for _ in desk.app.services.events.subscribe(MODEL):
        # To the end of the download.
        continue
    over.set()
    model = await listing
    assert (model["status"], model["download"]["status"]) == ("downloading", "running")


async def test_files_that_lie_there_are_parsed_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in CONTENTS.items():
        desk.folder().mkdir(exist_ok=True)
        (desk.folder() / name).write_bytes(content)
    parsed: list[str] = []

    def counted(folder: Path, names: list[str]) -> list[str]:
        parsed.extend(names)
        return wrong_files(folder, names)

    monkeypatch.setattr(installed, "wrong_files", counted)
    for _ in range(3):
        assert (await desk.model())["status"] == "installed"
    assert sorted(parsed) == sorted(CONTENTS)
    (desk.folder() / "tokenizer.json").write_bytes(b"{")
    assert (await desk.model())["status"] == "damaged"
    (desk.folder() / "tokenizer.json").unlink()
    assert (await desk.model())["status"] == "damaged"


@pytest.mark.proves("local-models.delete.installed", "local-models.delete.not-installed")
async def test_removal(desk: Desk) -> None:
    await desk.downloaded()
    answer = await desk.app.http.delete(f"{LIST}/{MODEL}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert not desk.folder().exists()
    assert (await desk.model())["status"] == "not_installed"
    assert list((desk.managed / ".staging").iterdir()) == []
    answer = await desk.app.http.delete(f"{LIST}/{MODEL}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (
        409,
        "LOCAL_MODEL_NOT_INSTALLED",
    )


@pytest.mark.proves("local-models.delete.partial")
async def test_what_a_given_up_download_left_can_be_removed(desk: Desk) -> None:
    desk.served("model.bin").gate = gate = threading.Event()
    await desk.post("download")
    part = await desk.partly(16 * 1024)
    await desk.post("cancel")
    await desk.ended()
    gate.set()
    assert part.is_file()
    assert (await desk.app.http.delete(f"{LIST}/{MODEL}")).status_code == 204
    assert not [path for path in (desk.managed / ".staging").rglob("*") if path.is_file()]
    assert (await desk.app.http.delete(f"{LIST}/{MODEL}")).status_code == 409


@pytest.mark.proves("local-models.delete.in-use")
async def test_a_model_that_is_being_fetched_is_not_removed(desk: Desk) -> None:
    gate = desk.served("model.bin").gate = threading.Event()
    await desk.post("download")
    answer = await desk.app.http.delete(f"{LIST}/{MODEL}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "MODEL_IN_USE")
    gate.set()
    assert (await desk.ended())["status"] == "installed"


@pytest.mark.proves("local-models.list.fixed-paths-first")
async def test_fixed_paths_are_no_models(desk: Desk) -> None:
    for name in ("diagnostics", "runtime-components"):
        shutil.copytree(MODELS_DIR / "whisper-base", desk.managed / name, copy_function=os.link)
        answer = await desk.app.http.delete(f"{LIST}/{name}")
        wanted = "METHOD_NOT_ALLOWED" if name == "diagnostics" else "MODEL_NOT_FOUND"
        assert answer.json()["error"]["code"] == wanted
        assert (desk.managed / name).is_dir()
    assert "scope" in (await desk.app.http.get(f"{LIST}/diagnostics")).json()
    listed = [item["model_id"] for item in (await desk.app.http.get(LIST)).json()["items"]]
    assert "diagnostics" not in listed


async def test_files_cannot_be_put_outside_by_a_catalogue(desk: Desk) -> None:
    path = desk.managed / "catalogue.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"model.bin"', '"../../model.bin"'), encoding="utf-8")
    answer = await desk.post("download")
    assert answer.json()["error"]["code"] == "MODEL_NOT_FOUND"
    assert await asyncio.to_thread(lambda: list(desk.managed.parent.rglob("model.bin"))) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"version": 1,', "line 1 column 15"),
        ('{"version": 1, "mirrors": [], "models": [{"model_id": "A B"}]}', "models.0.model_id: "),
        ('{"version": 9, "mirrors": [], "models": []}', "version: "),
    ],
)
def test_a_catalogue_of_the_users_says_what_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, place: str
) -> None:
    (tmp_path / "catalogue.json").write_text(text, encoding="utf-8")
    assert Catalogue(tmp_path).models() == bundled_models()
    (record,) = caplog.records
    assert record.message == "models.catalogue_invalid"
    assert place in record.__dict__["reason"] and "A B" not in record.__dict__["reason"]


def test_the_bundled_catalogue() -> None:
    models = bundled_models()
    assert {model.purpose for model in models.values()} == {
        "transcription",
        "diarization",
        "speaker_matching",
        "embedding",
        "rerank",
    }
    for model in models.values():
        assert len(model.mirrors) >= 2 and model.licence and model.page
        assert model.known_size == model.size_bytes
        assert all(file.sha256 for file in model.files)
        # What "main" means may change, and then no hash is right any more.
        assert re.fullmatch("[0-9a-f]{40}", model.revision)
    first = next(model for model in models.values() if model.purpose == "embedding")
    assert first.recommended and first.languages == ("zh",)
    assert models["pyannote-community-1"].gated


def test_the_hashes_of_whisper_base_are_those_of_the_real_files() -> None:
    from sidecar.local_models.installed import sha256_of

    for file in bundled_models()["whisper-base"].files:
        path = MODELS_DIR / "whisper-base" / file.path
        assert (path.stat().st_size, sha256_of(path)) == (file.size, file.sha256)
