"""A running application."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app_client import RunningApp, running_app


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[RunningApp]:
    """Serve the application without a vault."""
    async with running_app(tmp_path, open_vault=False) as running:
        yield running
