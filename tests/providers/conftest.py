"""A provider service and a server that plays the provider; and the application with one."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app_client import RunningApp, running_app
from tests.fakes.upstream import FakeUpstream, fake_upstream
from tests.providers.bench import Bench, bench_in


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_in(tmp_path) as made:
        yield made


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with fake_upstream() as started:
        yield started


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    async with running_app(tmp_path, open_vault=False, models_dirs=()) as started:
        yield started


@pytest.fixture
def configuration(upstream: FakeUpstream) -> dict[str, Any]:
    return {
        "name": "某服务",
        "provider_type": "openai_compatible",
        "base_url": upstream.url,
        "default_model": "m",
    }
