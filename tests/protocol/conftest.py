"""One running application for all tests of this folder."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from tests.protocol.jobs import Jobs
from tests.protocol.live import LiveApp
from tests.protocol.operations import BY_NAME, Operation
from tests.protocol.specimens import JOBS, SHOWN_JOBS, SPECIMENS, Request


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveApp]:
    """The application; tests leave no job of theirs behind that hasn't ended."""
    live = LiveApp(tmp_path_factory.mktemp("protocol"))
    yield live
    live.stop()


@pytest.fixture
def no_real_work(app: LiveApp) -> Iterator[None]:
    """For tests that make many jobs: they wait, and are cancelled at the end of the test."""
    for kind in SHOWN_JOBS:
        Jobs(app, kind).completed()
    with contextlib.ExitStack() as holds:
        for kind in JOBS:
            holds.enter_context(app.holding(kind))
        yield


@dataclass
class Answers:
    """Sends specimens; what one answered is asked for once and kept."""

    app: LiveApp
    kept: dict[str, tuple[Request, httpx.Response]] = field(default_factory=dict)

    def request(self, operation: Operation) -> Request:
        """Make a request that succeeds."""
        if str(operation) not in SPECIMENS:
            pytest.skip("no specimen: test_every_operation_has_a_specimen fails")
        return SPECIMENS[str(operation)].make(self.app)

    def client(self, operation: Operation) -> httpx.Client:
        """The client that may send it."""
        return self.app.host if operation.host_only else self.app.session

    def of(self, operation: Operation) -> tuple[Request, httpx.Response]:
        """Return the kept request and answer of an operation's specimen."""
        name = str(operation)
        if name not in self.kept:
            request = self.request(operation)
            self.kept[name] = (request, request.send(self.client(operation), BY_NAME[name]))
        return self.kept[name]


@pytest.fixture(scope="session")
def answers(app: LiveApp) -> Answers:
    """What the operations answer to their specimens."""
    return Answers(app)
