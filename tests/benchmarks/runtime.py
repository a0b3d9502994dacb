"""Figures of the managed runtime; prints them and judges nothing.

    .venv/bin/python -m tests.benchmarks.runtime WHEELHOUSE [--rounds 3] [--json]

WHEELHOUSE is a folder with every package of the CPU lock, which pip makes:

    .venv/bin/python -m pip download --no-deps --require-hashes -d WHEELHOUSE -r cuda_installer/locks/cpu.txt

The installation is measured up to its verification, beside plain uv with the same lock, each from
an empty cache; then the status, read over HTTP.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cuda_installer import flavours, installing
from cuda_installer.children import Children
from cuda_installer.settings import RuntimeSettings
from tests.app_client import running_app

PATH = "/api/local-models/runtime-components/cuda"
READS = 300


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of the best round; milliseconds of the status."""

    installer: float
    verification: float
    plain_uv: float
    ratio: float
    status_median_ms: float
    status_slowest_ms: float


def time_installer(wheelhouse: Path, root: Path) -> tuple[float, float]:
    """Return the seconds up to the verification, and those of it."""
    began: dict[str, float] = {}
    settings = RuntimeSettings(flavour="cpu", wheelhouse=str(wheelhouse))

    def note(stage: str, _: str) -> None:
        began.setdefault(stage, time.perf_counter())

    start = time.perf_counter()
    installing.install(root, settings, Children(), note)
    return began["verifying"] - start, began["finishing"] - began["verifying"]


def time_uv(wheelhouse: Path, folder: Path) -> float:
    """Return the seconds that uv takes for an environment with the same lock."""
    uv = str(Path(sys.executable).with_name("uv"))
    environment = {**os.environ, "UV_NO_CONFIG": "1", "UV_CACHE_DIR": str(folder / "cache")}
    install = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-index"]
    lock = flavours.by_name("cpu").lock
    start = time.perf_counter()
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")],
        [
            *install,
            "--find-links",
            str(wheelhouse),
            "--python",
            str(folder / "venv"),
            "-r",
            str(lock),
        ],
    ):
        subprocess.run(command, env=environment, check=True)
    return time.perf_counter() - start


async def time_status(folder: Path) -> list[float]:
    """Return the milliseconds of reading the status."""
    taken: list[float] = []
    async with running_app(folder, open_vault=False) as app:
        for _ in range(READS):
            start = time.perf_counter()
            (await app.http.get(PATH)).raise_for_status()
            taken.append((time.perf_counter() - start) * 1000)
    return taken


def measure(wheelhouse: Path, rounds: int) -> Figures:
    """Measure everything."""
    ours: list[tuple[float, float]] = []
    plain: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            plain.append(time_uv(wheelhouse, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            ours.append(time_installer(wheelhouse, Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        status = asyncio.run(time_status(Path(folder)))
    installer, verification = min(ours)
    return Figures(
        installer,
        verification,
        min(plain),
        installer / min(plain),
        statistics.median(status),
        max(status),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Figures of the managed runtime.")
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    figures = asdict(measure(parsed.wheelhouse.absolute(), parsed.rounds))
    if parsed.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:20} {value:10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
