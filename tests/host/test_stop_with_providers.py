"""A provider that doesn't answer holds up no stop."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from host_bridge.protocol import SHUTDOWN_LIMIT_SECONDS
from tests.fakes.upstream import Answer, FakeUpstream, fake_upstream
from tests.host.conftest import Start
from tests.host.serving import request_bytes


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with fake_upstream() as started:
        yield started


@pytest.mark.proves("host.stop.time-limit")
def test_a_hanging_provider_holds_up_no_stop(start: Start, upstream: FakeUpstream) -> None:
    sidecar = start()
    upstream.respond = lambda _: Answer(no_head=True, end="hold")
    provider = {
        "name": "a",
        "provider_type": "openai_compatible",
        "base_url": upstream.url,
        "default_model": "m",
    }
    provider_id = sidecar.post("/api/providers", provider).json()["provider_id"]
    probes = [{"provider": provider, "stream": stream} for stream in (True, False)]
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/api/providers/request-probe", probe) for probe in probes
    ]
    requests += [
        ("POST", "/api/providers/test", provider),
        ("GET", f"/api/providers/{provider_id}/models", {}),
    ]
    connections = []
    try:
        for method, path, told in requests:
            body = json.dumps(told).encode()
            more = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
            headers = sidecar.headers(token=sidecar.tokens.session, more=more)
            connection = socket.create_connection(("127.0.0.1", sidecar.port), timeout=20)
            connections.append(connection)
            connection.sendall(request_bytes(method, path, headers, body))
        assert upstream.wait_for(len(requests))
        sidecar.close_stdin()
        assert sidecar.wait(SHUTDOWN_LIMIT_SECONDS) == 0
    finally:
        for connection in connections:
            connection.close()
    assert all(request.hung_up.wait(5) for request in upstream.received)
    assert "Traceback" not in sidecar.stderr()
