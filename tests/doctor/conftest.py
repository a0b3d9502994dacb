"""What the doctor's tests share."""

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that nobody listens on: it is bound, so that nobody else gets it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
