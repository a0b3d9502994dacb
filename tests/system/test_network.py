"""A proxy and certificate authorities, set by the app."""

import asyncio
from pathlib import Path
from typing import Any

import certifi
import pytest

from tests.app_client import RunningApp, running_app

PATH = "/api/system/network"
UNSET = {"proxy": None, "ca_file": None}


async def test_they_are_kept_over_a_restart(tmp_path: Path) -> None:
    wanted = {"proxy": "http://127.0.0.1:7890", "ca_file": certifi.where()}
    async with running_app(tmp_path) as app:
        assert (await app.http.get(PATH)).json() == UNSET
        answer = await app.http.put(PATH, json=wanted)
        assert (answer.status_code, answer.json()) == (200, wanted)
    async with running_app(tmp_path) as app:
        assert (await app.http.get(PATH)).json() == wanted
        assert (await app.http.put(PATH, json=UNSET)).status_code == 200
        assert (await app.http.get(PATH)).json() == UNSET


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"proxy": ""}, "proxy"),
        ({"proxy": "127.0.0.1:7890"}, "proxy"),
        ({"proxy": "socks5://127.0.0.1:1080"}, "proxy"),
        ({"proxy": "http://user:secret@127.0.0.1:7890"}, "proxy"),
        ({"proxy": "http://127.0.0.1:7890/path?x"}, "proxy"),
        ({"proxy": "http://127.0.0.1:0"}, "proxy"),
        ({"ca_file": "authorities.pem"}, "ca_file"),
        ({"ca_file": "/there/is/no/such.pem"}, "ca_file"),
        ({"ca_file": __file__}, "ca_file"),
        ({"ca_file": "/dev/zero"}, "ca_file"),
        ({"ca_file": "/x\u0000"}, "ca_file"),
        ({"other": "x"}, "other"),
    ],
)
async def test_what_is_no_way_out_is_refused(
    tmp_path: Path, changed: dict[str, Any], place: str
) -> None:
    async with running_app(tmp_path) as app:
        before = {"proxy": "http://127.0.0.1:7890", "ca_file": None}
        await app.http.put(PATH, json=before)
        answer = await app.http.put(PATH, json={**UNSET, **changed})
        assert answer.status_code == 422
        error = answer.json()["error"]
        assert error["code"] == "VALIDATION_ERROR"
        assert place in error["details"]["errors"][0]["loc"]
        assert "secret" not in answer.text
        assert (await app.http.get(PATH)).json() == before


async def _models(app: RunningApp, provider_id: str) -> str | None:
    answer = await app.http.get(f"/api/providers/{provider_id}/models")
    return answer.json()["error"]["code"] if answer.status_code != 200 else None


async def test_a_proxy_holds_from_the_next_request_on(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        body = b'{"object": "list", "data": []}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, running_app(tmp_path) as app:
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        provider = {
            "name": "Far away",
            "provider_type": "openai_compatible",
            "base_url": "http://models.example.invalid/v1",
        }
        made = (await app.http.post("/api/providers", json=provider)).json()["provider_id"]
        assert await _models(app, made) == "PROVIDER_UNAVAILABLE"
        await app.http.put(PATH, json={"proxy": proxy, "ca_file": None})
        assert await _models(app, made) is None
        assert asked == [b"GET http://models.example.invalid/v1/models HTTP/1.1\r\n"]
        await app.http.put(PATH, json=UNSET)
        assert await _models(app, made) == "PROVIDER_UNAVAILABLE"
