"""The component over HTTP: what it says, and what an installation does."""

import asyncio
import json
import shutil
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import httpx
import psutil
import pytest

from cuda_installer import state
from cuda_installer.state import LastInstall
from sidecar.runtime.installations import RESOURCE
from sidecar.runtime.schemas import RuntimeStage
from tests.app_client import ROOT, RunningApp, running_app
from tests.cuda_installer.conftest import is_gone
from tests.cuda_installer.packages import PYANNOTE, HoldingIndex, Wheelhouse, torch_files
from tests.cuda_installer.test_install import files_of
from tests.runtime.conftest import PATH, component, finished, install, settled

Variables = Callable[..., None]
STAGES = get_args(RuntimeStage)


async def events(app: RunningApp, after: int = 0) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and data of the events that are stored."""
    found, _ = await app.services.events.page(RESOURCE, after, 1000)
    return [(event.event, event.wire_data()) for event in found]


async def installers() -> list[psutil.Process]:
    """The installers that this process runs."""
    children = await asyncio.to_thread(psutil.Process().children)
    return [child for child in children if "--follow-stdin" in child.cmdline()]


def site_packages(app: RunningApp) -> Path:
    """Where the packages of the only environment lie."""
    return next(app.data_dir.glob("runtime/environments/*/lib/python*/site-packages"))


@pytest.mark.proves(
    "local-models.runtime.get",
    "local-models.runtime.not-installed",
    "local-models.runtime.read-only",
    "local-models.runtime.field-types",
)
async def test_nothing_is_installed(app: RunningApp) -> None:
    found = await component(app)
    assert found == {
        "status": "not_installed",
        "stage": None,
        "supported": True,
        "custom_interpreter": False,
        "cuda_available": False,
        "torch": None,
        "error": None,
    }
    assert not (app.data_dir / "runtime").exists()
    assert await events(app) == [] and await installers() == []


@pytest.mark.proves("local-models.runtime.optional")
async def test_the_server_does_without(app: RunningApp) -> None:
    paths = (await app.http.get("/openapi.json")).json()["paths"]
    plain = [p for p, item in paths.items() if "get" in item and "{" not in p and "events" not in p]
    assert len(plain) > 8
    for path in plain:
        client = app.host if path.startswith("/host") else app.http
        answer = await client.get(path)
        # No vault is open; that is what some of them say.
        assert answer.status_code in (200, 409, 422), (path, answer.text)
    info = (await app.http.get("/api/system/info")).json()
    assert info["capabilities"]["cuda"]["available"] is False


@pytest.mark.proves(
    "local-models.runtime.install",
    "local-models.runtime.install-response",
    "local-models.runtime.stage-names",
    "local-models.runtime.no-fake-percent",
    "local-models.runtime.events",
    "local-models.runtime.statuses",
    "local-models.runtime.cuda-available-true-only-real",
)
async def test_an_installation(app: RunningApp) -> None:
    answer = await install(app)
    assert answer["status"] == "installing" and answer["stage"] in STAGES
    async with app.http.stream("GET", f"{PATH}/events") as stream:
        frames = [line async for line in stream.aiter_lines()]
    names = [line.removeprefix("event: ") for line in frames if line.startswith("event: ")]
    assert names[0] == "Queued" and names[-1] == "Completed"
    assert set(names[1:-1]) == {"Progress"}
    data = [json.loads(line[6:])["data"] for line in frames if line.startswith("data: ")]
    progress = data[1:-1]
    places = [STAGES.index(item["stage"]) for item in progress]
    assert places == sorted(places) and progress[0]["stage"] == "preparing"
    assert {STAGES[place] for place in places} >= {"installing", "verifying", "finishing"}
    for item in progress:
        assert item["percent"] is None and item["total"] == 0 and item["message"]
        assert not any(str(app.data_dir) in str(value) for value in item.values())
    found = await component(app)
    assert (found["status"], found["stage"]) == ("installed", None)
    assert (found["torch"], found["cuda_available"]) == ("2.13.0+cpu", False)


@pytest.mark.proves("local-models.runtime.install-already-there")
async def test_a_sound_runtime_is_left_alone(app: RunningApp) -> None:
    await install(app)
    await finished(app)
    before = await events(app)
    assert (await install(app))["status"] == "installed"
    assert await events(app) == before and await installers() == []


async def test_an_outdated_runtime_is_made_anew(app: RunningApp, house: Wheelhouse) -> None:
    await install(app)
    await finished(app)
    house.add("torch", "2.14.0+cpu", torch_files("2.14.0+cpu"))
    assert (await component(app))["status"] == "installed"
    assert (await install(app))["status"] == "installing"
    assert (await finished(app))["torch"] == "2.14.0+cpu"


@pytest.mark.proves("local-models.runtime.install-once")
async def test_asking_again_joins(app: RunningApp, held: HoldingIndex) -> None:
    answers = await asyncio.gather(*(install(app) for _ in range(6)))
    assert {answer["status"] for answer in answers} == {"installing"}
    assert await asyncio.to_thread(held.asked.wait, 30)
    assert (await install(app))["stage"] in ("resolving", "downloading")
    assert len(await installers()) == 1
    held.released.set()
    assert (await finished(app))["status"] == "installed"
    names = [name for name, _ in await events(app)]
    assert names.count("Queued") == names.count("Completed") == 1


async def test_an_installer_that_is_killed(app: RunningApp, held: HoldingIndex) -> None:
    await install(app)
    assert await asyncio.to_thread(held.asked.wait, 30)
    (installer,) = await installers()
    children = await asyncio.to_thread(installer.children, recursive=True)
    assert [child.name() for child in children] == ["uv"]
    installer.kill()
    found = await finished(app)
    assert found["status"] == "interrupted"
    assert (await events(app))[-1][1]["error"]["code"] == "RUNTIME_INSTALL_INTERRUPTED"
    assert await asyncio.to_thread(is_gone, children[0])


async def test_an_installation_at_a_terminal(app: RunningApp, held: HoldingIndex) -> None:
    words = ["runtime", "--root", str(app.data_dir / "runtime"), "install"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sidecar", *words, stderr=asyncio.subprocess.DEVNULL, cwd=ROOT
    )
    assert await asyncio.to_thread(held.asked.wait, 30)
    found = await component(app)
    assert found["status"] == "installing" and found["stage"] in ("resolving", "downloading")
    assert (await install(app))["status"] == "installing"
    assert await events(app) == [] and await installers() == []
    held.released.set()
    assert await process.wait() == 0
    assert (await settled(app))["status"] == "installed"


@pytest.mark.proves("local-models.runtime.install-no-uv")
async def test_without_uv(app: RunningApp, variables: Variables) -> None:
    variables(uv="/nowhere/uv")
    answer = await app.http.post(PATH)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "UV_NOT_INSTALLED")
    assert (await component(app))["status"] == "not_installed"
    assert await events(app) == [] and not (app.data_dir / "runtime").exists()


@pytest.mark.proves("local-models.runtime.unsupported", "local-models.runtime.install-unsupported")
async def test_an_unsupported_platform(app: RunningApp, variables: Variables) -> None:
    variables(platform="freebsd-x86_64")
    assert (await component(app))["supported"] is False
    answer = await app.http.post(PATH)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "PLATFORM_UNSUPPORTED")
    assert await events(app) == [] and not (app.data_dir / "runtime").exists()


@pytest.mark.proves(
    "local-models.runtime.install-failed",
    "local-models.runtime.install-after-failure",
    "local-models.runtime.installed-is-verified",
)
async def test_a_failed_installation(app: RunningApp, house: Wheelhouse, tmp_path: Path) -> None:
    house.add("torch", "2.13.0+cpu", {"torch/__init__.py": f"raise ImportError('{tmp_path}')"})
    await install(app)
    found = await finished(app)
    assert found["status"] == "failed" and found["torch"] is None
    error = found["error"]
    assert error["code"] == "RUNTIME_INSTALL_FAILED"
    assert error["details"]["reason"] == "verification_failed"
    assert error["details"]["explanation"].startswith("The runtime was set up")
    assert str(tmp_path) not in str(error) and "ImportError" not in str(error)
    name, data = (await events(app))[-1]
    assert name == "Failed" and data["error"]["code"] == "RUNTIME_INSTALL_FAILED"
    house.add("torch", "2.13.0+cpu", torch_files())
    await install(app)
    assert (await finished(app))["status"] == "installed"


async def test_a_full_disk_tells_what_is_needed(app: RunningApp) -> None:
    figures = {"needed_bytes": 1_300_000_000, "free_bytes": 5}
    root = app.data_dir / "runtime"
    root.mkdir()
    state.write_last(root, LastInstall("failed", None, "disk_full", "cpu", figures))
    error = (await component(app))["error"]
    assert error["code"] == "DISK_SPACE_INSUFFICIENT"
    assert error["details"].items() >= {"reason": "disk_full", **figures}.items()


@pytest.mark.proves("local-models.runtime.transaction")
async def test_a_failure_leaves_the_earlier_runtime(app: RunningApp, house: Wheelhouse) -> None:
    await install(app)
    await finished(app)
    interpreter = await app.services.runtime.interpreter()
    assert interpreter is not None
    house.add("torch", "2.14.0+cpu", {"torch/__init__.py": "raise ImportError"})
    await install(app)
    found = await finished(app)
    assert (found["status"], found["torch"]) == ("failed", "2.13.0+cpu")
    assert await app.services.runtime.interpreter() == interpreter


@pytest.mark.proves(
    "local-models.runtime.torch-version",
    "local-models.runtime.broken-environment",
    "local-models.runtime.restart-rechecks",
)
async def test_damage_is_noticed_at_the_next_start(tmp_path: Path) -> None:
    async with running_app(tmp_path, open_vault=False) as app:
        await settled(app)
        await install(app)
        assert (await finished(app))["status"] == "installed"
        packages = site_packages(app)
    async with running_app(tmp_path, open_vault=False) as app:
        found = await settled(app)
        assert (found["status"], found["torch"]) == ("installed", "2.13.0+cpu")
        assert await app.services.runtime.interpreter() is not None
    shutil.rmtree(packages / "torch")
    async with running_app(tmp_path, open_vault=False) as app:
        found = await settled(app)
        assert (found["status"], found["torch"]) == ("failed", None)
        assert found["error"]["details"]["reason"] == "environment_broken"
        assert await app.services.runtime.interpreter() is None
        await install(app)
        assert (await finished(app))["status"] == "installed"


async def test_an_environment_that_vanishes_is_noticed(app: RunningApp) -> None:
    await install(app)
    await finished(app)
    shutil.rmtree(app.data_dir / "runtime" / "environments")
    found = await settled(app)
    assert (found["status"], found["torch"]) == ("failed", None)


@pytest.fixture
def own(tmp_path: Path, variables: Variables) -> Path:
    """An interpreter of the user's own, with all that is needed."""
    folder = tmp_path / "own"
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name, text in {**torch_files("2.15.0"), **PYANNOTE}.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text, encoding="utf-8")
    variables(interpreter=str(folder / "bin" / "python"))
    return folder


@pytest.mark.proves(
    "local-models.runtime.custom-interpreter", "local-models.runtime.custom-interpreter-untouched"
)
async def test_an_interpreter_of_the_users_own(own: Path, app: RunningApp) -> None:
    before = files_of(own)
    answer = await app.http.get(PATH)
    found = answer.json()
    assert (found["status"], found["torch"]) == ("installed", "2.15.0")
    assert found["custom_interpreter"] is True and str(own) not in answer.text
    assert (await install(app))["status"] == "checking"
    assert (await settled(app))["status"] == "installed"
    assert await app.services.runtime.interpreter() == own / "bin" / "python"
    for folder in list(own.glob("lib/python*/site-packages/pyannote")):  # noqa: ASYNC240
        shutil.rmtree(folder)
    before = {name: at for name, at in before.items() if "pyannote" not in name}
    await install(app)
    answer = await app.http.get(PATH)
    found = await settled(app)
    assert found["status"] == "failed"
    assert found["error"]["details"]["reason"] == "interpreter_unsuitable"
    assert str(own) not in str(found)
    after = {name: at for name, at in files_of(own).items() if not name.endswith("site-packages")}
    assert after == {k: v for k, v in before.items() if not k.endswith("site-packages")}
    assert await events(app) == []


@pytest.mark.proves("local-models.runtime.checking")
async def test_an_examination_that_takes_long(tmp_path: Path, variables: Variables) -> None:
    gate = tmp_path / "gate"
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\nwhile [ ! -e "{gate}" ]; do sleep 0.02; done\nexec "{sys.executable}" "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    variables(interpreter=str(program))
    async with running_app(tmp_path, open_vault=False) as app:
        found = await component(app)
        assert (found["status"], found["cuda_available"]) == ("checking", None)
        gate.touch()
        # The interpreter of the tests has no torch.
        assert (await settled(app))["status"] == "failed"


async def test_cursors_of_several_installations(app: RunningApp, house: Wheelhouse) -> None:
    async def follow(**cursor: int) -> list[str]:
        async with app.http.stream("GET", f"{PATH}/events", params=cursor) as stream:
            lines = [line async for line in stream.aiter_lines()]
        return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]

    house.add("torch", "2.13.0+cpu", {"torch/__init__.py": "raise ImportError"})
    await install(app)
    await finished(app)
    first = await follow()
    assert (first[0], first[-1]) == ("Queued", "Failed")
    house.add("torch", "2.13.0+cpu", torch_files())
    await install(app)
    await finished(app)
    second = await follow()
    assert (second[0], second[-1]) == ("Queued", "Completed")
    assert await follow(after_sequence=1) == [*first, *second][1:]
    answer = await app.http.get(
        f"{PATH}/events", headers={"Last-Event-ID": str(len(first) + len(second))}
    )
    assert answer.status_code == 204


async def test_the_stream_waits_for_the_first_installation(app: RunningApp) -> None:
    async with app.http.stream("GET", f"{PATH}/events") as stream:
        assert stream.status_code == 200
        await install(app)
        lines = [line async for line in stream.aiter_lines()]
    assert "event: Queued" in lines and "event: Completed" in lines


async def test_messages_come_in_the_readers_language(app: RunningApp, house: Wheelhouse) -> None:
    house.add("torch", "2.13.0+cpu", {"torch/__init__.py": "raise ImportError"})
    await install(app)
    await finished(app)
    answer: httpx.Response = await app.http.get(PATH, headers={"Accept-Language": "zh-CN"})
    assert answer.json()["error"]["details"]["explanation"].startswith("运行环境已建立")
