"""Nothing heavy is loaded before the server is ready."""

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
}


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
        imported = set(re.findall(r"\|\s+(\w+)[\w.]*\n", log.read_text(encoding="utf-8")))
        process.stdin.close()
        process.wait(20)

    assert b'"ready"' in ready
    assert {"fastapi", "uvicorn", "pydantic"} <= imported
    assert imported & HEAVY == set()
