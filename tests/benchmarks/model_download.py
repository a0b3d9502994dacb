"""How fast a model's file is fetched, checked and placed, beside curl from the same local server.

    python -m tests.benchmarks.model_download [MiB]

curl leaves the file in the system's cache and checks nothing. So beside both stands what the product does besides: the
time that SHA-256 takes for what lies in memory, and until a file of this size is on the disk.
"""

import asyncio
import hashlib
import http.server
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from sidecar.kernel.outbound_http import OutboundHttp
from sidecar.local_models.catalogue import CatalogueModel
from sidecar.local_models.fetching import FileFetch
from sidecar.local_models.installed import sha256_of

ROUNDS = 3
PATH = "test/model/resolve/main/model.bin"


def serve(file: Path, told: Connection) -> None:
    """Serve *file* by the kernel's own copying until the process is ended."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(file.stat().st_size))
            self.end_headers()
            self.wfile.flush()
            with file.open("rb") as source:
                self.connection.sendfile(source)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.send(server.server_address[1])
    server.serve_forever()


async def fetch(model: CatalogueModel, folder: Path) -> None:
    """Fetch the file as the product does."""

    async def told(_: int) -> None:
        """Nobody listens."""

    http = OutboundHttp()
    await FileFetch(model, model.files[0], folder, http).run(told)
    await http.close()


def sync(file: Path) -> None:
    """Wait until a file is on the disk."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def timed(work: object, *arguments: object) -> float:
    """Return how many seconds a call takes."""
    began = time.perf_counter()
    work(*arguments)  # type: ignore[operator]
    return time.perf_counter() - began


def main() -> None:
    """Print the best of some rounds, taken in turns."""
    mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        file = folder / "source.bin"
        with file.open("wb") as output:
            for _ in range(mebibytes):
                output.write(os.urandom(1 << 20))
        content = file.read_bytes()
        ours, told = multiprocessing.Pipe()
        server = multiprocessing.Process(target=serve, args=(file, told), daemon=True)
        server.start()
        base = f"http://127.0.0.1:{ours.recv()}"
        model = CatalogueModel.model_validate(
            {
                "model_id": "model",
                "display_name": "model",
                "purpose": "transcription",
                "format": "whisper",
                "licence": "MIT",
                "repository": "test/model",
                "size_bytes": file.stat().st_size,
                "mirrors": [base],
                "files": [
                    {"path": "model.bin", "size": file.stat().st_size, "sha256": sha256_of(file)}
                ],
            }
        )
        curl = ["curl", "--silent", "--output", str(folder / "curl.bin"), f"{base}/{PATH}"]
        times: dict[str, list[float]] = {"product": [], "curl": [], "hash": [], "sync": []}
        for _ in range(ROUNDS):
            times["curl"].append(timed(subprocess.check_call, curl))
            times["sync"].append(timed(sync, folder / "curl.bin"))
            (folder / "curl.bin").unlink()
            times["hash"].append(timed(hashlib.sha256, content))
            target = folder / "product"
            times["product"].append(timed(asyncio.run, fetch(model, target)))
            shutil.rmtree(target)
        server.terminate()
    best = {name: min(values) for name, values in times.items()}
    for name, seconds in best.items():
        print(f"{name:10} {seconds:6.2f} s  {mebibytes / seconds:6.0f} MiB/s")
    print(f"speed, product / curl                 {best['curl'] / best['product']:.2f}")
    whole = best["curl"] + best["hash"] + best["sync"]
    print(f"speed, product / curl, hash and sync  {whole / best['product']:.2f}")


if __name__ == "__main__":
    main()
