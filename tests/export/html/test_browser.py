"""Exported HTML in a real browser, with an eye on the network."""

import asyncio
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from sidecar.export.schemas import ExportOptions
from tests.export.conftest import ExportMarkdown

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is here")


@pytest.fixture
def outside() -> Iterator[tuple[str, list[str]]]:
    """Serve the address of a server outside of the document, and what it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def show(page: Path, folder: Path) -> tuple[Image.Image, str]:
    """Open *page* and return what is seen and the document that scripts have left."""
    assert BROWSER is not None
    picture = folder / "seen.png"
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'browser'}",
        "--window-size=1000,1600",
        "--virtual-time-budget=3000",
    ]
    command += [f"--screenshot={picture}", "--dump-dom", page.as_uri()]
    result = subprocess.run(command, capture_output=True, check=True, timeout=120)
    return Image.open(picture).convert("RGB"), result.stdout.decode()


def hostile(address: str) -> str:
    return f"""\
# Title

<script>document.title = "RAN"; fetch("{address}/fetch")</script>

<img src="{address}/html.png" onerror="document.title='RAN'"> ![remote]({address}/markdown.png)

<link rel="stylesheet" href="{address}/style.css"><style>@import url({address}/import.css);</style>

<iframe src="{address}/frame"></iframe> [link]({address}/link "a link") [script](javascript:alert(1))

<svg onload="document.title='RAN'"><image href="{address}/svg.png"/></svg>

$x^2$ and $\\href{{{address}/math}}{{y}}$

```function-plot
expressions: [{{expression: x, label: '<image href="{address}/plot.png"/>', color: red}}]
```
"""


@pytest.mark.proves(
    "export.html.self-contained", "export.html.raw-html-safe", "export.render.plot-html"
)
async def test_a_browser_fetches_and_runs_nothing(
    export_markdown: ExportMarkdown, outside: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, asked = outside
    control = tmp_path / "control.html"
    control.write_text(
        f"<title>x</title><script>document.title = 'RAN'</script><img src='{address}/control.png'>",
        encoding="utf-8",
    )
    _, left = await asyncio.to_thread(show, control, tmp_path)
    # The browser is one that would.
    assert "/control.png" in asked
    assert "<title>RAN</title>" in left

    asked.clear()
    result = await export_markdown(hostile(address), title="Title")
    seen, left = await asyncio.to_thread(show, result.file.path, tmp_path)
    assert asked == []
    assert "<title>Title</title>" in left
    assert "RAN</title>" not in left
    colours = {colour for _, colour in seen.getcolors(1_000_000) or []}
    assert (255, 0, 0) in colours  # the plot


async def test_the_colours_of_a_theme_are_seen(
    export_markdown: ExportMarkdown, tmp_path: Path
) -> None:
    result = await export_markdown("# 标题\n\n文字", options=ExportOptions(theme_id="dark"))
    seen, _ = await asyncio.to_thread(show, result.file.path, tmp_path)
    assert seen.getpixel((3, 3)) == (0x0D, 0x11, 0x17)
