"""An installed model read whole, to find what a disk spoiled."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.local_models.service import LocalModels, ModelLibrary
from sidecar.local_models.verification import ModelVerification
from tests.local_models.conftest import CONTENTS, MODEL, Desk

LIST = "/api/local-models"


class Gate(threading.Event):
    """Knows how many blocks came to it."""

    blocks = 0


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Holds every verification after its first block, until it is set or the verification cancelled."""
    opened = Gate()
    count = ModelVerification._count

    def counted(work: ModelVerification, size: int) -> None:
        count(work, size)
        opened.blocks += 1
        while not (opened.wait(0.01) or work._end.is_set()):
            pass

    monkeypatch.setattr(ModelVerification, "_count", counted)
    yield opened
    opened.set()


async def reading(desk: Desk) -> None:
    """Begin a verification and wait until it has read something."""
    await desk.downloaded()
    answer = await desk.post("verify")
    assert answer.status_code == 202, answer.text
    await desk.until(lambda model: model["verification"]["bytes"] > 0)


async def told(desk: Desk) -> list[tuple[str, dict[str, Any]]]:
    """Return the stored events of the newest work on the model, heartbeats apart."""
    beginning = await desk.app.services.local_models.beginning(MODEL)
    events = await desk.events()
    return [(each.event, each.wire_data()) for each in events if each.sequence > beginning]


@pytest.mark.proves("local-models.verify.post", "local-models.download.repairs-damaged")
@pytest.mark.parametrize("restarted", [False, True])
async def test_what_a_disk_spoils_is_found_by_reading(desk: Desk, restarted: bool) -> None:
    await desk.downloaded()
    assert (await desk.verified())["status"] == "installed"
    spoilt = desk.folder() / "model.bin"
    times = spoilt.stat()
    content = bytearray(spoilt.read_bytes())
    content[200_000] ^= 1
    spoilt.write_bytes(content)
    os.utime(spoilt, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (await desk.model())["status"] == "installed"
    assert (await desk.verified())["status"] == "damaged"
    with pytest.raises(ProjectError):
        await desk.app.services.media.transcriptions.check_usable()
    if restarted:
        fresh = ModelLibrary(desk.managed, LocalModels((desk.managed,)))
        known = fresh.get(MODEL)
        assert known is not None and known.damaged
    assert (await desk.downloaded())["status"] == "installed"
    assert (await desk.verified())["status"] == "installed"
    await desk.app.services.media.transcriptions.check_usable()


@pytest.mark.proves("local-models.verify.post")
async def test_what_somebody_put_there_is_held_to_the_catalogue(desk: Desk) -> None:
    """Its structure says nothing of what is in its texts."""
    desk.folder().mkdir()
    for name, content in CONTENTS.items():
        (desk.folder() / name).write_bytes(content)
    assert (await desk.verified())["status"] == "installed"
    (desk.folder() / "installed.json").unlink()
    (desk.folder() / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert (await desk.model())["status"] == "installed"
    assert (await desk.verified())["status"] == "damaged"
    (desk.folder() / "installed.json").unlink()
    (desk.folder() / "tokenizer.json").unlink()
    for _ in range(2):
        assert (await desk.verified())["status"] == "damaged"
    assert (await desk.downloaded())["status"] == "installed"


@pytest.mark.proves("local-models.verify.post")
async def test_only_what_lies_there_is_verified(desk: Desk) -> None:
    answer = await desk.post("verify")
    assert (answer.status_code, answer.json()["error"]["code"]) == (
        409,
        "LOCAL_MODEL_NOT_INSTALLED",
    )
    assert (await desk.post("verify", "nothing")).json()["error"]["code"] == "MODEL_NOT_FOUND"
    desk.served("model.bin").gate = gate = threading.Event()
    await desk.post("download")
    assert (await desk.post("verify")).json()["error"]["code"] == "MODEL_IN_USE"
    gate.set()
    await desk.ended()


@pytest.mark.proves("local-models.verify.post", "local-models.events.names")
async def test_a_verification_tells_how_far_it_is(desk: Desk, gate: Gate) -> None:
    await reading(desk)
    model = await desk.model()
    assert (model["status"], model["verification"]["status"]) == ("installed", "running")
    again = await desk.post("verify")
    assert (again.status_code, again.json()["verification"]["status"]) == (202, "running")
    gate.set()
    model = await desk.ended(what="verification")
    size = sum(map(len, CONTENTS.values()))
    assert (model["verification"]["status"], model["verification"]["bytes"]) == ("completed", size)
    events = await told(desk)
    names = [name for name, _ in events]
    assert (names[0], names[-1], names.count("Completed")) == ("Queued", "Completed", 1)
    progress = [data for name, data in events if name == "Progress"]
    assert {data["phase"] for data in progress} == {"verifying"}
    assert 0 < progress[0]["bytes"] < size == progress[-1]["bytes"] == progress[-1]["total"]
    assert events[-1][1] == {"status": "completed", "bytes": size, "damaged": False}


@pytest.mark.proves("local-models.verify.post", "local-models.delete.in-use")
async def test_a_model_that_is_being_read_stays(desk: Desk, gate: Gate) -> None:
    await reading(desk)
    await desk.app.services.media.transcriptions.check_usable()
    answers = [await desk.app.http.delete(f"{LIST}/{MODEL}")]
    package = await desk.package(desk.managed)
    answers.append(await desk.post("import", json={"package_id": package}))
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "MODEL_IN_USE")
    # A model that is whole needs no download.
    assert (await desk.post("download")).status_code == 202
    assert (await desk.model())["download"]["status"] == "completed"
    gate.set()
    assert (await desk.ended(what="verification"))["status"] == "installed"
    assert (await desk.app.http.delete(f"{LIST}/{MODEL}")).status_code == 204


@pytest.mark.proves("local-models.verify.post", "local-models.cancel.stops")
async def test_a_cancelled_verification_finds_nothing(desk: Desk, gate: Gate) -> None:
    await reading(desk)
    manifest = (desk.folder() / "installed.json").read_bytes()
    assert (await desk.post("cancel")).status_code == 202
    async with asyncio.timeout(2):
        model = await desk.ended(what="verification")
    assert (model["status"], model["verification"]["status"]) == ("installed", "cancelled")
    assert model["verification"]["error"]["code"] == "JOB_CANCELLED"
    assert gate.blocks == 1
    assert (desk.folder() / "installed.json").read_bytes() == manifest
    assert [name for name, _ in await told(desk)][-1] == "Cancelled"
    gate.set()
    assert (await desk.verified())["status"] == "installed"


@pytest.mark.proves("local-models.verify.post")
async def test_a_model_that_vanishes_before_it_is_read(desk: Desk) -> None:
    await desk.downloaded()
    jobs = desk.app.services.jobs
    jobs._running["model_verification"] += 1
    await desk.post("verify")
    desk.folder().rename(desk.managed.parent / "elsewhere")
    jobs._running["model_verification"] -= 1
    jobs._dispatch("model_verification")
    model = await desk.ended(what="verification")
    assert (model["status"], model["verification"]["status"]) == ("not_installed", "failed")
    assert model["verification"]["error"]["code"] == "LOCAL_MODEL_NOT_INSTALLED"
