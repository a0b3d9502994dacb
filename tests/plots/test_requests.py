"""Plots over HTTP."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from sidecar.kernel.catalogue import ERRORS
from sidecar.plots import drawing
from sidecar.plots.geometry import make_geometry
from sidecar.plots.themes import CHART_THEMES
from tests.app_client import RunningApp
from tests.plots.reading import read_svg

CANARY = "canary-51c2"


async def draw(shared_app: RunningApp, source: str, **more: Any) -> dict[str, Any]:
    response = await shared_app.http.post("/api/plots/function", json={"source": source, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    has_error = any(d["severity"] == "error" for d in body["diagnostics"])
    assert (body["result"] is None) is has_error
    return body


@pytest.mark.proves("plots.endpoint.ok", "plots.endpoint.svg", "plots.endpoint.node-count")
async def test_a_plot_is_drawn(shared_app: RunningApp) -> None:
    body = await draw(shared_app, "y = sin(x)\n2x^2 + 1")
    assert body.keys() == {"result", "diagnostics", "node_count"}
    result = body["result"]
    assert result.keys() == {"content", "mime_type", "width", "height", "warnings"}
    assert (result["mime_type"], result["warnings"], body["diagnostics"]) == (
        "image/svg+xml",
        [],
        [],
    )
    root = read_svg(result["content"]).root
    assert (root.attrib["width"], root.attrib["height"]) == (
        str(result["width"]),
        str(result["height"]),
    )
    assert result["width"] > 0
    assert result["height"] > 0
    # x, sin; 2, x, 2, ^, *, 1, +
    assert body["node_count"] == 9


@pytest.mark.proves("plots.endpoint.source-limit")
async def test_a_source_has_a_length(shared_app: RunningApp) -> None:
    longest = "x" + " " * 19_999
    assert (await draw(shared_app, longest))["result"]
    response = await shared_app.http.post("/api/plots/function", json={"source": longest + " "})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


@pytest.mark.proves("plots.endpoint.field-violations")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"theme_id": "light"},
        {"source": None},
        {"source": 5},
        {"source": ["x"]},
        {"source": "x", "theme_id": 5},
        {"source": "x", "theme_id": None},
        [],
        None,
    ],
)
async def test_fields_must_be_right(shared_app: RunningApp, body: Any) -> None:
    response = await shared_app.http.post("/api/plots/function", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (422, "VALIDATION_ERROR")


@pytest.mark.proves(
    "plots.endpoint.syntax-error",
    "plots.endpoint.diagnostic-shape",
    "plots.endpoint.diagnostic-position",
)
@pytest.mark.parametrize("language", ["en", "zh-CN"])
async def test_a_mistake_is_no_failed_request(shared_app: RunningApp, language: str) -> None:
    response = await shared_app.http.post(
        "/api/plots/function",
        json={"source": "x\nx^2\nsin(x) + foo"},
        headers={"Accept-Language": language},
    )
    body = response.json()
    assert (response.status_code, body["result"]) == (200, None)
    (diagnostic,) = body["diagnostics"]
    assert diagnostic.keys() == {"severity", "code", "message", "line", "column"}
    message = diagnostic.pop("message")
    assert diagnostic == {
        "severity": "error",
        "code": "FUNCTION_PLOT_EXPRESSION_UNSAFE",
        "line": 3,
        "column": 10,
    }
    assert "foo" in message
    assert ("可用" in message) is (language == "zh-CN")


@pytest.mark.proves("plots.endpoint.empty-source")
async def test_nothing_is_no_plot(shared_app: RunningApp) -> None:
    for source in ("", "  \n "):
        (diagnostic,) = (await draw(shared_app, source))["diagnostics"]
        assert diagnostic["code"] == "FUNCTION_PLOT_PARSE_FAILED"


@pytest.mark.proves("plots.endpoint.warning-keeps-result")
async def test_a_warning_keeps_the_picture(shared_app: RunningApp) -> None:
    body = await draw(shared_app, "expressions: [{expression: x, color: bad}]\nunknown: 1")
    assert [d["severity"] for d in body["diagnostics"]] == ["warning", "warning"]
    assert body["result"]["content"]


@pytest.mark.proves("plots.limits.expressions", "plots.limits.nodes", "plots.limits.code")
async def test_expressions_and_nodes_are_limited(shared_app: RunningApp) -> None:
    assert (await draw(shared_app, "\n".join(["x"] * 16)))["result"]
    too_many = await draw(shared_app, "\n".join(["x"] * 17))
    (diagnostic,) = too_many["diagnostics"]
    assert (diagnostic["code"], diagnostic["line"]) == ("FUNCTION_PLOT_PARSE_FAILED", 17)
    assert "16" in diagnostic["message"]
    # 4,000 x and 3,998 + in two expressions, and 2 more nodes: 8,000.
    half = "+".join(["x"] * 2_000)
    exact = await draw(shared_app, f"{half}\n{half}\nsin(x)")
    assert exact["node_count"] == 8_000
    assert exact["result"]
    over = await draw(shared_app, f"{half}\n{half}\nsin(-x)")
    (diagnostic,) = over["diagnostics"]
    assert (diagnostic["code"], diagnostic["line"]) == ("FUNCTION_PLOT_PARSE_FAILED", 3)
    assert "8000" in diagnostic["message"]


@pytest.mark.proves("plots.theme.mapping", "plots.endpoint.theme-default")
async def test_each_theme_has_its_colours(shared_app: RunningApp) -> None:
    contents = {}
    for theme_id, colours in CHART_THEMES.items():
        content = (await draw(shared_app, "x", theme_id=theme_id))["result"]["content"]
        assert f'fill="{colours.background}"' in content
        assert f'stroke="{colours.series[0]}"' in content
        contents[theme_id] = content
    assert len(set(contents.values())) == 6
    assert (await draw(shared_app, "x"))["result"]["content"] == contents["light"]


@pytest.mark.proves("plots.theme.unknown", "plots.theme.unknown-warning")
async def test_an_unknown_theme_is_light_and_told_of(shared_app: RunningApp) -> None:
    result = (await draw(shared_app, "x", theme_id="neon"))["result"]
    light = (await draw(shared_app, "x"))["result"]
    assert result["content"] == light["content"]
    (warning,) = result["warnings"]
    assert "neon" in warning
    assert light["warnings"] == []


@pytest.mark.proves("plots.limits.concurrency", "plots.limits.concurrency-wait")
async def test_two_are_drawn_at_a_time(
    shared_app: RunningApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, changed = threading.Event(), threading.Condition()
    inside = most = 0

    def slow(*arguments: Any) -> Any:
        nonlocal inside, most
        with changed:
            inside += 1
            most = max(most, inside)
            changed.notify_all()
        assert gate.wait(30)
        try:
            return make_geometry(*arguments)
        finally:
            with changed:
                inside -= 1

    monkeypatch.setattr(drawing, "make_geometry", slow)
    requests = [asyncio.create_task(draw(shared_app, f"{n}x")) for n in range(1, 5)]

    def two_inside() -> bool:
        with changed:
            return changed.wait_for(lambda: inside == 2, 30)

    assert await asyncio.to_thread(two_inside)
    # The others wait; the rest of the server doesn't.
    for path in ("/health", "/api/tasks", "/api/exports"):
        assert (await shared_app.http.get(path)).status_code == 200
    assert not any(task.done() for task in requests)
    gate.set()
    bodies = await asyncio.wait_for(asyncio.gather(*requests), 30)
    assert all(body["result"] for body in bodies)
    assert most == 2


@pytest.mark.proves("plots.endpoint.stateless")
async def test_nothing_is_kept(shared_app: RunningApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def counts(conn: Any) -> dict[str, int]:
        tables = [r[0] for r in conn.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {t: conn.execute(f'SELECT count(*) FROM "{t}"').fetchone()[0] for t in tables}

    def files() -> set[str]:
        return {
            str(path)
            for path in shared_app.data_dir.rglob("*")
            if "app.db" not in path.name and path.is_file()
        }

    before = await shared_app.services.database.read(counts), files()
    source = f"expressions: [{{expression: x, label: {CANARY}}}]"
    assert CANARY in (await draw(shared_app, source))["result"]["content"]
    assert (await draw(shared_app, f"{CANARY}(x)"))["result"] is None
    assert (await shared_app.services.database.read(counts), files()) == before
    assert CANARY not in caplog.text
    assert CANARY not in repr([record.__dict__ for record in caplog.records])
    assert (await shared_app.http.get("/api/exports")).json()["page"]["total"] == 0


@pytest.mark.proves("plots.errors.table")
def test_the_six_codes_have_a_status() -> None:
    for code in (
        "MERMAID_PARSE_FAILED",
        "MERMAID_RENDER_FAILED",
        "MERMAID_SVG_UNSAFE",
        "FUNCTION_PLOT_PARSE_FAILED",
        "FUNCTION_PLOT_EXPRESSION_UNSAFE",
        "FUNCTION_PLOT_RENDER_FAILED",
    ):
        assert ERRORS[code].status == 422
