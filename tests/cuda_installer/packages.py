"""Small real wheels, lock files for them, and an index that can be made to wait."""

import base64
import hashlib
import ssl
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

# Enough of torch for the examination: it computes, on the processor alone.
TORCH = """
__version__ = "{version}"

class version:
    cuda = {cuda!r}

class cuda:
    @staticmethod
    def is_available():
        return {has_device}

    @staticmethod
    def get_device_name(number):
        return "a device"

class Tensor:
    def __init__(self, rows):
        self.rows = rows
    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return Tensor([[sum(a * b for a, b in zip(row, c)) for c in columns] for row in self.rows])
    def sum(self):
        return Tensor([[sum(map(sum, self.rows))]])
    def item(self):
        return self.rows[0][0]

def ones(shape, device="cpu"):
    value = {on_cuda} if device == "cuda" else 1.0
    return Tensor([[value] * shape[1] for _ in range(shape[0])])
"""

PYANNOTE = {
    "pyannote/audio/__init__.py": '__version__ = "4.0.7"\n',
    "pyannote/audio/pipelines.py": "class SpeakerDiarization:\n    def apply(self): ...\n",
    "onnxruntime/__init__.py": "class InferenceSession: ...\n",
}


def torch_files(
    version: str = "2.13.0+cpu", cuda: str | None = None, on_cuda: str | None = None
) -> dict[str, str]:
    """Return the files of a small torch; with *on_cuda* it has a device that computes with this."""
    text = TORCH.format(
        version=version, cuda=cuda, has_device=on_cuda is not None, on_cuda=on_cuda or "None"
    )
    return {"torch/__init__.py": text}


def build_wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """Write a wheel with *files* and return it."""
    info = f"{name}-{version}.dist-info"
    entries = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = [
        f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in entries.items()
    ]
    entries[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in entries.items():
            packed.writestr(path, text)
    return wheel


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Wheelhouse:
    """A folder with the packages of a small runtime, and the folder with its lock."""

    def __init__(self, folder: Path, flavour: str = "cpu") -> None:
        self.wheels = folder / "wheels"
        self.locks = folder / "locks"
        self.flavour = flavour
        self.locks.mkdir(parents=True, exist_ok=True)
        self._pins: dict[str, str] = {}

    def add(self, name: str, version: str, files: Mapping[str, str]) -> Self:
        """Build a package and lock it; one of this name takes the place of the earlier one."""
        wheel = build_wheel(self.wheels, name.replace("-", "_"), version, files)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        self._pins[name] = f"{name}=={version} \\\n    --hash=sha256:{digest}\n"
        text = "".join(self._pins.values())
        (self.locks / f"{self.flavour}.txt").write_text(text, encoding="utf-8")
        return self

    def environment(self) -> dict[str, str]:
        """The variables by which an installer takes everything from here."""
        return {
            "CUDA_INSTALLER_LOCKS": str(self.locks),
            "CUDA_INSTALLER_WHEELHOUSE": str(self.wheels),
            "CUDA_INSTALLER_DRIVER": "none",
        }


def small_runtime(folder: Path) -> Wheelhouse:
    """Build the packages of a small runtime."""
    house = Wheelhouse(folder)
    house.add("torch", "2.13.0+cpu", torch_files())
    return house.add("pyannote-audio", "4.0.7", PYANNOTE)


class HoldingIndex:
    """A package index on this machine that gives out no package before it is released.

    It answers also as a proxy before any other index. ``addresses`` are what it was asked for.
    """

    def __init__(self, wheels: Path, tls: ssl.SSLContext | None = None) -> None:
        self._wheels = wheels
        self._scheme = "https" if tls else "http"
        self.addresses: list[str] = []
        self.asked = threading.Event()
        self.released = threading.Event()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def address(self) -> str:
        """What an installer is told."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/simple"

    def environment(self, house: Wheelhouse) -> dict[str, str]:
        """The variables by which an installer takes everything from this index."""
        return {
            "CUDA_INSTALLER_LOCKS": str(house.locks),
            "CUDA_INSTALLER_INDEX": self.address,
            "CUDA_INSTALLER_TORCH_INDEX": self.address,
            "CUDA_INSTALLER_DRIVER": "none",
        }

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer with a page of links, or with a package once that is allowed."""
        self.addresses.append(request.path)
        path = unquote(urlsplit(request.path).path).strip("/")
        if path.startswith("simple/"):
            name = path.removeprefix("simple/").replace("-", "_")
            links = "".join(
                f'<a href="/files/{wheel.name}">{wheel.name}</a>\n'
                for wheel in sorted(self._wheels.glob(f"{name}-*.whl"))
            )
            self._send(request, f"<!DOCTYPE html><html><body>{links}</body></html>".encode())
            return
        self.asked.set()
        self.released.wait(60)
        self._send(request, (self._wheels / Path(path).name).read_bytes())

    def _send(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        kind = "text/html" if body.startswith(b"<!DOCTYPE") else "application/octet-stream"
        try:
            request.send_response(200)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except ConnectionError:
            # Whoever asked was killed meanwhile; that is what many of these tests are about.
            request.close_connection = True

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
