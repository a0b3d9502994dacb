"""Downloads from a server that behaves, and from one that doesn't."""

import asyncio
import os
import threading
from dataclasses import replace

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.network_settings import PROXY_SETTING
from sidecar.kernel.setting_store import put_setting
from sidecar.local_models.model_jobs import DOWNLOAD_KIND
from tests.fakes.model_source import Asked
from tests.local_models.conftest import (
    CONTENTS,
    GATED,
    MODEL,
    UNKNOWN,
    Desk,
    sha256,
    weights,
    write_catalogue,
)

TOTAL = sum(map(len, CONTENTS.values()))
WEIGHTS = CONTENTS["model.bin"]


def holds_everything(desk: Desk, model_id: str = MODEL) -> bool:
    return all(
        (desk.folder(model_id) / name).read_bytes() == content for name, content in CONTENTS.items()
    )


def staged(desk: Desk, model_id: str = MODEL) -> list[str]:
    folder = desk.managed / ".staging" / model_id / "download"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.proves(
    "local-models.download.post",
    "local-models.list.download-field",
    "local-models.list.fields",
    "local-models.events.names",
    "local-models.events.progress",
    "local-models.download.whole-or-nothing",
)
async def test_a_download(desk: Desk) -> None:
    answer = await desk.post("download")
    assert answer.status_code == 202
    assert answer.json()["status"] == "downloading"
    model = await desk.ended()
    assert model["status"] == "installed"
    assert model["download"] == {
        "status": "completed",
        "bytes": TOTAL,
        "total": TOTAL,
        "error": None,
    }
    assert model["in_use"] is False and model["purpose"] == "transcription"
    assert holds_everything(desk) and staged(desk) == []
    events = await desk.events()
    assert [events[0].event, events[-1].event] == ["Queued", "Completed"]
    assert {event.event for event in events[1:-1]} == {"Progress"}
    last = events[-2].wire_data()
    assert (last["bytes"], last["total"], last["percent"]) == (TOTAL, TOTAL, 100.0)
    assert last["phase"] == "downloading" and last["message"]
    assert [event.terminal for event in events].count(True) == 1
    assert all(0 <= event.data["percent"] <= 100 for event in events[1:-1])


@pytest.mark.proves("local-models.download.already-installed")
async def test_an_installed_model_is_not_asked_for_again(desk: Desk) -> None:
    await desk.downloaded()
    asked = len(desk.source.asked)
    answer = await desk.post("download")
    assert answer.status_code == 202 and answer.json()["status"] == "installed"
    assert len(desk.source.asked) == asked
    assert [event.event for event in await desk.events()].count("Queued") == 1


@pytest.mark.proves("local-models.download.repeat-joins")
async def test_a_second_request_joins(desk: Desk) -> None:
    gate = desk.served("model.bin").gate = threading.Event()
    answers = await asyncio.gather(*(desk.post("download") for _ in range(5)))
    assert {answer.status_code for answer in answers} == {202}
    gate.set()
    assert (await desk.ended())["status"] == "installed"
    assert [event.event for event in await desk.events()].count("Queued") == 1
    assert len(desk.source.asked) == len(CONTENTS)


@pytest.mark.proves("local-models.download.repairs-damaged", "local-models.list.damaged")
@pytest.mark.parametrize("harm", ["cut", "changed", "missing"])
async def test_a_damaged_model_is_repaired(desk: Desk, harm: str) -> None:
    await desk.downloaded()
    path = desk.folder() / "model.bin"
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(WEIGHTS[:-1] if harm == "cut" else WEIGHTS[:-1] + b"!")
        os.utime(path, ns=(1, 1))
    assert (await desk.model())["status"] == "damaged"
    finder = desk.app.services.media.transcriptions
    with pytest.raises(ProjectError) as refused:
        await finder.check_usable()
    # A folder without its weights is no model to the recogniser.
    assert refused.value.code in ("LOCAL_MODEL_NOT_INSTALLED", "TRANSCRIPTION_MODEL_UNAVAILABLE")
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)
    await finder.check_usable()


# -- sources that fail -----------------------------------------------------------------------------


@pytest.mark.proves("local-models.download.source-failure")
@pytest.mark.parametrize("status", [403, 404, 500])
async def test_refusals_end_it_after_every_mirror(desk: Desk, status: int) -> None:
    for mirror in (False, True):
        desk.served("model.bin", mirror=mirror).status = status
    model = await desk.downloaded()
    error = model["download"]["error"]
    assert model["status"] == "not_installed" and model["download"]["status"] == "failed"
    assert error["code"] == "MODEL_DOWNLOAD_FAILED" and "secret words" not in str(model)
    assert [failure["reason"] for failure in error["details"]["sources"]] == [f"http_{status}"] * 2
    assert any("model.bin" in path for path in desk.mirror.paths())
    events = await desk.events()
    assert events[-1].event == "Failed"
    assert events[-1].data["error"]["code"] == "MODEL_DOWNLOAD_FAILED"
    assert not desk.folder().exists()


@pytest.mark.proves("local-models.download.source-failure")
async def test_a_source_that_falls_silent(desk: Desk) -> None:
    for mirror in (False, True):
        desk.served("model.bin", mirror=mirror).stall_after = 1000
    model = await desk.downloaded()
    assert model["download"]["error"]["code"] == "MODEL_DOWNLOAD_FAILED"
    reasons = [failure["reason"] for failure in model["download"]["error"]["details"]["sources"]]
    assert reasons == ["timeout", "timeout"]


@pytest.mark.proves("local-models.download.source-failure")
async def test_nobody_there(desk: Desk) -> None:
    desk.source.files.clear()
    desk.mirror.files.clear()
    assert (await desk.downloaded())["download"]["error"]["code"] == "MODEL_DOWNLOAD_FAILED"


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_a_mirror_helps_out(desk: Desk, status: int) -> None:
    desk.served("model.bin").status = status
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)
    assert [path.rpartition("/")[2] for path in desk.mirror.paths()] == ["model.bin"]


async def test_a_mirror_goes_on_where_the_first_source_fell_silent(desk: Desk) -> None:
    served = desk.served("model.bin")
    served.stall_after = 100_000

    def refuse_later(asked: Asked) -> None:
        if asked.range is not None:
            served.status = 500

    desk.source.before_answer = refuse_later
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)
    assert desk.mirror.asked[0].range == "bytes=100000-"


async def test_a_connection_that_breaks_again_and_again(desk: Desk) -> None:
    desk.served("model.bin").cut_after = 100_000
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)
    asked = [ask.range for ask in desk.source.asked if ask.path.endswith("model.bin")]
    assert asked[0] is None and len(asked) >= 4 and desk.mirror.asked == []


async def test_a_source_without_ranges_that_breaks(desk: Desk) -> None:
    served = desk.served("model.bin")
    served.cut_after, served.ranges = 100_000, False
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)


# -- wrong files -------------------------------------------------------------------------------------


@pytest.mark.proves("local-models.download.hash-mismatch", "local-models.download.whole-or-nothing")
@pytest.mark.parametrize(
    "wrong", ["changed", "short", "long", "length-lies-long", "length-lies-short"]
)
async def test_wrong_files_are_not_kept(desk: Desk, wrong: str) -> None:
    for mirror in (False, True):
        served = desk.served("model.bin", mirror=mirror)
        match wrong:
            case "changed":
                served.content = WEIGHTS[:-1] + b"!"
            case "short":
                served.short_to = len(WEIGHTS) - 10
            case "long":
                served.content = WEIGHTS + b"more"
            case "length-lies-long":
                served.length = len(WEIGHTS) + 100
            case _:
                served.length = len(WEIGHTS) - 100
    model = await desk.downloaded()
    assert model["status"] == "not_installed" and model["disk_bytes"] is None
    assert model["download"]["error"]["code"] == "MODEL_HASH_MISMATCH"
    assert not desk.folder().exists()
    assert not [name for name in staged(desk) if name.startswith("model.bin")]


async def test_a_right_mirror_makes_up_for_a_wrong_source(desk: Desk) -> None:
    desk.served("model.bin").content = weights(400_000)[:-3] + b"abc"
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)


async def test_a_file_without_a_known_hash_is_held_to_what_the_hub_says(desk: Desk) -> None:
    for mirror in (False, True):
        desk.served("model.bin", UNKNOWN, mirror=mirror).linked_hash = sha256(b"another")
    model = await desk.downloaded(UNKNOWN)
    assert model["download"]["error"]["code"] == "MODEL_HASH_MISMATCH"
    desk.served("model.bin", UNKNOWN).linked_hash = sha256(WEIGHTS)
    assert (await desk.downloaded(UNKNOWN))["status"] == "installed"
    assert (await desk.model(UNKNOWN))["hashes_known"] is False


async def test_a_file_without_a_known_hash_must_have_the_right_structure(desk: Desk) -> None:
    for mirror in (False, True):
        desk.served("model.bin", UNKNOWN, mirror=mirror).content = b"<html>please log in</html>"
    model = await desk.downloaded(UNKNOWN)
    assert model["download"]["error"]["code"] == "MODEL_HASH_MISMATCH"
    assert model["status"] == "not_installed"


# -- going on ------------------------------------------------------------------------------------------


@pytest.mark.proves(
    "local-models.download.resumes",
    "local-models.cancel.post",
    "local-models.cancel.stops",
    "local-models.cancel.model-state",
)
async def test_a_cancelled_download_goes_on_later(desk: Desk) -> None:
    gate = threading.Event()
    served = desk.served("model.bin")
    served.gate = gate
    desk.app.services.local_models.jobs.options = replace(
        desk.app.services.local_models.jobs.options, read_seconds=30
    )
    await desk.post("download")
    part = await desk.partly(16 * 1024)
    answer = await desk.post("cancel")
    assert answer.status_code == 202 and answer.json()["status"] == "accepted"
    async with asyncio.timeout(2):
        model = await desk.ended()
    assert model["download"]["status"] == "cancelled" and model["status"] == "not_installed"
    held = part.stat().st_size
    served.gate = None
    gate.set()
    assert part.stat().st_size == held
    model = await desk.downloaded()
    assert model["status"] == "installed" and holds_everything(desk)
    assert desk.source.asked[-3].range == f"bytes={held}-"
    names = [event.event for event in await desk.events() if event.event != "Progress"]
    assert names == ["Queued", "Cancelled", "Queued", "Completed"]


@pytest.mark.proves("local-models.download.resumes")
@pytest.mark.parametrize("if_range", [True, False], ids=["if-range", "if-range ignored"])
async def test_a_file_that_changed_between_ranges_is_fetched_anew(
    desk: Desk, if_range: bool
) -> None:
    served = desk.served("model.bin", UNKNOWN)
    served.cut_after, served.if_range = 100_000, if_range
    served.change_to = weights(500_000)
    model = await desk.downloaded(UNKNOWN)
    assert model["status"] == "installed"
    assert (desk.folder(UNKNOWN) / "model.bin").read_bytes() == weights(500_000)


async def test_a_range_that_can_no_longer_be_had(desk: Desk) -> None:
    served = desk.served("model.bin", UNKNOWN)
    served.cut_after, served.ranges = 200_000, False
    desk.served("model.bin", UNKNOWN, mirror=True).status = 404
    assert (await desk.downloaded(UNKNOWN))["download"]["status"] == "failed"
    served.content, served.cut_after, served.ranges, served.if_range = weights(9), None, True, False
    model = await desk.downloaded(UNKNOWN)
    assert model["status"] == "installed"
    assert (desk.folder(UNKNOWN) / "model.bin").read_bytes() == weights(9)


@pytest.mark.proves("local-models.cancel.nothing-to-cancel")
async def test_nothing_to_cancel(desk: Desk) -> None:
    for _ in range(2):
        answer = await desk.post("cancel")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "DOWNLOAD_NOT_ACTIVE")
        await desk.downloaded()


@pytest.mark.proves("local-models.download.disk-full")
async def test_too_little_room(desk: Desk) -> None:
    service = desk.app.services.local_models
    roomy = service.jobs.options
    service.jobs.options = replace(roomy, free=lambda _: 1 << 20)
    model = await desk.downloaded()
    assert model["download"]["error"]["code"] == "DISK_SPACE_INSUFFICIENT"
    assert desk.source.asked == []
    service.jobs.options = roomy
    assert (await desk.downloaded())["status"] == "installed"


@pytest.mark.proves("local-models.download.disk-full")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")  # noqa: PTH110
async def test_a_disk_that_fills_up_on_the_way(desk: Desk) -> None:
    folder = desk.managed / ".staging" / MODEL / "download"
    folder.mkdir(parents=True)
    (folder / "model.bin.part").symlink_to("/dev/full")
    model = await desk.downloaded()
    assert model["download"]["error"]["code"] == "DISK_SPACE_INSUFFICIENT"
    assert (await desk.downloaded(UNKNOWN))["status"] == "installed"


# -- limits ----------------------------------------------------------------------------------------


async def test_two_run_and_the_third_waits(desk: Desk) -> None:
    gates = []
    for model_id in (MODEL, GATED, UNKNOWN):
        gate = desk.served("config.json", model_id).gate = threading.Event()
        gates.append(gate)
        await desk.post("download", model_id)
    await desk.until(lambda model: model["download"]["status"] == "running", GATED)
    assert (await desk.model(UNKNOWN))["download"]["status"] == "queued"
    for gate in gates:
        gate.set()
    for model_id in (MODEL, GATED, UNKNOWN):
        assert (await desk.ended(model_id))["status"] == "installed"


@pytest.mark.proves("local-models.download.unknown-model")
@pytest.mark.parametrize("model_id", ["nothing", "..", "diagnostics", "runtime-components", "A B"])
async def test_unknown_models(desk: Desk, model_id: str) -> None:
    base = "/api/local-models/" + model_id.replace("..", "%2E%2E").replace(" ", "%20")
    http = desk.app.http
    answers = [
        await http.post(f"{base}/download"),
        await http.post(f"{base}/cancel"),
        await http.post(f"{base}/import", json={"package_id": "package_1"}),
        await http.get(f"{base}/events"),
        await http.delete(base),
    ]
    if model_id == "..":
        assert {answer.status_code for answer in answers} <= {404, 405}
        return
    codes = [(answer.status_code, answer.json()["error"]["code"]) for answer in answers]
    assert codes[:4] == [(404, "MODEL_NOT_FOUND")] * 4
    removal = (405, "METHOD_NOT_ALLOWED") if model_id == "diagnostics" else codes[0]
    assert codes[4] == removal


async def test_a_package_is_a_source(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts lie in two installed packages, as the real ones do; nothing is fetched."""
    site = tmp_path_factory.mktemp("site")
    middle = len(WEIGHTS) // 2
    for name, part in (("carrier_one", WEIGHTS[:middle]), ("carrier_two", WEIGHTS[middle:])):
        (site / name / "data").mkdir(parents=True)
        (site / name / "__init__.py").write_text("", encoding="utf-8")
        (site / name / "data" / "part").write_bytes(part)
    monkeypatch.syspath_prepend(str(site))
    models = desk.app.services.local_models.library.catalogue.models()
    files = tuple(
        file.model_copy(update={"package": ("carrier_one/data/part", "carrier_two/data/part")})
        if file.path == "model.bin"
        else file
        for file in models[MODEL].files
    )
    models[MODEL] = models[MODEL].model_copy(update={"files": files})
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)
    assert not [path for path in desk.source.paths() if path.endswith("model.bin")]
    await desk.app.http.delete(f"/api/local-models/{MODEL}")
    (site / "carrier_two" / "data" / "part").write_bytes(b"not it")
    assert (await desk.downloaded())["status"] == "installed"
    assert [path for path in desk.source.paths() if path.endswith("model.bin")]


async def test_a_proxy_of_the_settings_is_used(desk: Desk) -> None:
    hub = "http://hub.invalid"
    write_catalogue(desk.managed, [hub])
    for path, served in list(desk.source.files.items()):
        desk.mirror.files[hub + path] = served
    proxy = desk.mirror.url
    await desk.app.services.database.write(lambda tx: put_setting(tx, PROXY_SETTING, proxy))
    assert (await desk.downloaded())["status"] == "installed"
    assert holds_everything(desk)
    assert {path.startswith(hub) for path in desk.mirror.paths()} == {True}


async def test_a_source_on_this_machine_is_asked_directly(desk: Desk) -> None:
    nobody = "http://127.0.0.1:9"
    await desk.app.services.database.write(lambda tx: put_setting(tx, PROXY_SETTING, nobody))
    assert (await desk.downloaded())["status"] == "installed"


async def test_a_model_that_took_its_place_before_the_process_died_stays(desk: Desk) -> None:
    """What a kill between the rename and the commit leaves: an unfinished job, a whole model."""
    await desk.downloaded()
    asked = len(desk.source.asked)
    jobs = desk.app.services.jobs
    request = {"model_id": MODEL}
    await desk.app.services.database.write(lambda tx: jobs.create(tx, DOWNLOAD_KIND, request))
    async with asyncio.timeout(30):
        told = [batch async for batch in desk.app.services.events.subscribe(MODEL)]
    assert told[-1][-1].event == "Completed"
    assert len(desk.source.asked) == asked and holds_everything(desk)
