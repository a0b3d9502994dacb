"""A running application."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.app_client import RunningApp, running_app


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningApp]:
    """Serve one application without a vault to all tests of a file."""
    async with running_app(tmp_path_factory.mktemp("app"), open_vault=False) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that share an application in the event loop that it runs in."""
    for item in items:
        if "tests/plots/" in item.path.as_posix() and "shared_app" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
