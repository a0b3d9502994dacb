"""The application with a small runtime to install, and ways to watch it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import RunningApp, running_app
from tests.cuda_installer.packages import HoldingIndex, Wheelhouse, small_runtime

PATH = "/api/local-models/runtime-components/cuda"
WAIT_SECONDS = 60.0


@pytest.fixture
def house(tmp_path: Path) -> Wheelhouse:
    """The packages of a small runtime."""
    return small_runtime(tmp_path)


@pytest.fixture
def index(house: Wheelhouse) -> Iterator[HoldingIndex]:
    """An index that holds the packages back."""
    with HoldingIndex(house.wheels) as served:
        yield served


@pytest.fixture(autouse=True)
def variables(house: Wheelhouse, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installations take everything from the small wheelhouse, unless a test says otherwise."""

    def set_all(**changes: str) -> None:
        for name, value in changes.items():
            monkeypatch.setenv(f"CUDA_INSTALLER_{name.upper()}", value)

    for name, value in house.environment().items():
        monkeypatch.setenv(name, value)
    set_all(uv=str(Path(sys.executable).with_name("uv")))
    return set_all


@pytest.fixture
def held(index: HoldingIndex, house: Wheelhouse, variables: Callable[..., None]) -> HoldingIndex:
    """Makes installations wait for a package."""
    told = index.environment(house)
    variables(
        wheelhouse="",
        index=told["CUDA_INSTALLER_INDEX"],
        torch_index=told["CUDA_INSTALLER_TORCH_INDEX"],
    )
    return index


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """The application, once it knows that no runtime is installed."""
    async with running_app(tmp_path, open_vault=False) as running:
        await settled(running)
        yield running


async def settled(app: RunningApp) -> dict[str, Any]:
    """Wait until an examination is over, and return the component."""
    async with asyncio.timeout(WAIT_SECONDS):
        # The component has no event for the end of an examination.
        while (found := await component(app))["status"] == "checking":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


async def finished(app: RunningApp, seconds: float = WAIT_SECONDS) -> dict[str, Any]:
    """Wait for the last event of the latest installation, and return the component then."""
    async with asyncio.timeout(seconds):
        await app.http.get(f"{PATH}/events", timeout=seconds)
    return await component(app)


async def component(app: RunningApp) -> dict[str, Any]:
    """Return what GET answers."""
    answer = await app.http.get(PATH)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def install(app: RunningApp) -> dict[str, Any]:
    """Ask for an installation and return the answer."""
    answer = await app.http.post(PATH)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found
