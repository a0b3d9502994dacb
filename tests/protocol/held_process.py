"""A sidecar whose jobs run for ever, whatever they are told: `python held_process.py serve …`."""

import asyncio
import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sidecar import services as wiring
from sidecar.cli import main
from sidecar.kernel.jobs.engine import JobContext
from sidecar.kernel.settings import Settings

build_services = wiring.build_services


async def never_done(_: JobContext) -> NoReturn:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def build_held_services(settings: Settings) -> wiring.Services:
    services = build_services(settings)
    for kind in services.jobs.kinds.values():
        services.jobs.register(replace(kind, run=never_done, concurrency=2))
    return services


if __name__ == "__main__":
    wiring.build_services = build_held_services
    sys.exit(main())
