"""Nothing heavy is loaded before the server is ready."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

from host_bridge.protocol import SessionSettings

HEAVY = {
    *(
        "av",
        "ctranslate2",
        "faster_whisper",
        "huggingface_hub",
        "numpy",
        "onnxruntime",
        "tokenizers",
    ),
    *("weasyprint", "docx", "matplotlib", "markdown_it", "pygments", "nh3", "yaml", "mcp"),
    *("cryptography", "keyring", "watchfiles", "httpx", "psutil", "sqlalchemy", "torch"),
    "pydantic.v1.main",
}
LATER = {
    *(
        "sidecar.chat.attachments",
        "sidecar.chat.preparation",
        "sidecar.chat.rounds",
        "sidecar.chat.turn",
    ),
    *(
        "sidecar.export.exporter",
        "sidecar.export.pictures.formulas",
        "sidecar.export.pictures.images",
    ),
    *("sidecar.plots.drawing", "sidecar.plots.geometry", "sidecar.plots.source"),
    *(
        "sidecar.providers.protocols.adapters",
        "sidecar.providers.protocols.anthropic",
        "sidecar.providers.protocols.ollama",
    ),
    "sidecar.providers.calls.mock",
}
"""Modules of ours that a run loads when somebody asks for what they do."""

BUILD_APPLICATION = """
import json
from pathlib import Path
from sidecar.serve import import_app
import_app()
from pydantic import BaseModel
from host_bridge.protocol import SessionSettings
from sidecar.app import build_asgi
from sidecar.kernel.settings import resolve_settings
from sidecar.services import build_services
def subclasses(model):
    for subclass in model.__subclasses__():
        yield subclass
        yield from subclasses(subclass)
settings = resolve_settings(SessionSettings(), data_dir=Path("unused"))
build_asgi(build_services(settings), lambda: None)
built = {f"{m.__module__}.{m.__name__}": m.__pydantic_complete__ for m in subclasses(BaseModel)}
print(json.dumps(built))
"""


def test_nothing_heavy_is_imported_by_the_time_of_the_ready_line(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    command = [sys.executable, "-X", "importtime", "-m", "sidecar", "serve"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*command, "--data-dir", str(tmp_path / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(SessionSettings().to_line())
        process.stdin.flush()
        ready = process.stdout.readline()
        modules = re.findall(r"\|\s+([\w.]+)\n", log.read_text(encoding="utf-8"))
        process.stdin.close()
        process.wait(20)

    imported = {*modules, *(module.partition(".")[0] for module in modules)}
    assert b'"ready"' in ready
    assert {"fastapi", "uvicorn", "pydantic"} <= imported
    assert imported & HEAVY == set()
    assert imported & LATER == set()
    assert all(importlib.util.find_spec(module) for module in LATER)


def test_models_are_built_when_they_are_used_and_not_before() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", BUILD_APPLICATION], capture_output=True, check=True, timeout=60
    )
    built: dict[str, bool] = json.loads(answer.stdout)

    assert {"sidecar.chat.schemas.ChatRequest", "fastapi.openapi.models.OpenAPI"} <= set(built)
    # Those that are built make defaults of others, or can't be told without building them.
    assert sum(built.values()) < len(built) / 10
