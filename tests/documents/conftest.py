"""A service with real worker processes, on a data directory of the test's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.documents.service import DocumentService
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import WorkerPool


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def pool() -> AsyncIterator[WorkerPool]:
    """The workers, which take a moment to start."""
    workers = WorkerPool()
    yield workers
    await workers.close()


@pytest.fixture(scope="package")
def paths(tmp_path_factory: pytest.TempPathFactory) -> DataPaths:
    """The data directory."""
    found = DataPaths(tmp_path_factory.mktemp("data"))
    found.create()
    return found


@pytest.fixture(scope="package")
def documents(paths: DataPaths, pool: WorkerPool) -> DocumentService:
    """The service."""
    return DocumentService(paths, pool)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test puts its attachment; the name says nothing, as in the product."""
    return tmp_path / "attachment"
