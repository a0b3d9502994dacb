"""The whole application inside the test's own event loop, behind a real socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from host_bridge.protocol import SessionSettings, new_token
from sidecar.app import build_asgi
from sidecar.kernel.http.server import HttpServer, bind_loopback
from sidecar.kernel.migrations import migrate
from sidecar.kernel.settings import resolve_settings
from sidecar.services import Services, build_services

if TYPE_CHECKING:
    from starlette.types import ASGIApp

ROOT = Path(__file__).resolve().parents[1]
MODELS_DIR = ROOT / ".models"
"""Where ``dev.py`` puts the speech model that tests use."""


@dataclass(slots=True)
class RunningApp:
    """A running application and clients for it."""

    services: Services
    http: httpx.AsyncClient
    """Sends the session token."""
    host: httpx.AsyncClient
    """Sends the host token."""
    anonymous: httpx.AsyncClient
    """Sends no token."""
    base_url: str
    session_token: str
    host_token: str
    vault: Path | None
    data_dir: Path
    asgi: "ASGIApp"
    """The application as it is served."""


@contextlib.asynccontextmanager
async def running_app(
    folder: Path,
    *,
    open_vault: bool = True,
    models_dirs: tuple[Path, ...] = (MODELS_DIR,),
    locale: str | None = None,
) -> AsyncIterator[RunningApp]:
    """Serve the application with its data in *folder*; a second call goes on with the same data."""
    session = SessionSettings(session_token=new_token(), host_token=new_token(), locale=locale)
    settings = resolve_settings(session, data_dir=folder / "data", extra_models=models_dirs)
    settings.paths.create()
    migrate(settings.paths.database)
    services = build_services(settings)
    listener = bind_loopback(0)
    services.gate.port = listener.getsockname()[1]
    await services.start()
    ready = asyncio.Event()
    asgi = build_asgi(services, lambda: None)
    server = HttpServer(asgi, ready.set)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait_for(ready.wait(), 10)
    await services.start_background()
    base_url = services.gate.base_url
    clients = [
        httpx.AsyncClient(
            base_url=base_url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=60,
            trust_env=False,
        )
        for token in (settings.session_token, settings.host_token, None)
    ]
    vault: Path | None = None
    try:
        if open_vault:
            vault = folder / "vault"
            vault.mkdir(exist_ok=True)
            opened = await clients[1].post("/host/vault", json={"path": str(vault)})
            assert opened.status_code == 200, opened.text
        yield RunningApp(
            services,
            http=clients[0],
            host=clients[1],
            anonymous=clients[2],
            base_url=base_url,
            session_token=settings.session_token,
            host_token=settings.host_token,
            vault=vault,
            data_dir=settings.paths.root,
            asgi=asgi,
        )
    finally:
        for client in clients:
            await client.aclose()
        await services.close()
        server.should_exit = True
        await serving
        await services.close_database()
