"""One application with one speech worker for the tests of this folder, since a model takes seconds to load."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.app_client import running_app
from tests.media.client import MediaClient
from tests.media.samples import JFK, RATE, encoded, samples_of


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def media(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MediaClient]:
    """A client of an application with an open vault and the real speech model."""
    async with running_app(tmp_path_factory.mktemp("media")) as app:
        yield MediaClient(app)


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def speech(media: MediaClient) -> dict[str, Any]:
    """The finished job of the English recording, with words, made once."""
    return await media.transcribed(JFK, "en-jfk.flac", word_timestamps=True)


@pytest_asyncio.fixture(loop_scope="package")
async def short(media: MediaClient) -> dict[str, Any]:
    """The finished job of four seconds of English: a test's own transcript, which it may edit."""
    content = encoded(samples_of(JFK)[: 4 * RATE], "flac")
    return await media.transcribed(content, "访谈.flac", language="en")


@pytest.fixture
def attachments_folder(media: MediaClient) -> Path:
    """Where the application keeps uploads."""
    return media.app.data_dir / "attachments"
