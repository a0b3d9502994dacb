"""The three formats over HTTP."""

import asyncio
import base64
import dataclasses
from typing import Any

import pytest

from sidecar.export.service import ExportSettings
from sidecar.kernel.catalogue import ERRORS
from tests.app_client import RunningApp
from tests.export import client
from tests.export.client import markdown_request
from tests.export.pictures.samples import png
from tests.export.pictures.test_assets import asset
from tests.export.reading import read_html
from tests.export.reading_pages import read_docx, read_pdf
from tests.export.test_jobs import LARGE, artefacts

WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MIME_TYPES = {"html": "text/html", "pdf": "application/pdf", "docx": WORD_TYPE}
PALETTE = {
    "page": "#fdf6e3",
    "surface": "#eee8d5",
    "text": "#073642",
    "muted": "#586e75",
    "code": "#6c2ec4",
    "border": "#b58900",
    "accent": "#cb4b16",
}


def request(markdown: str, format_: str, **more: Any) -> dict[str, Any]:
    return markdown_request(markdown, **more) | {"format": format_}


@pytest.mark.proves("export.format.values", "export.file.mime-types", "export.file.ok")
@pytest.mark.parametrize("format_", list(MIME_TYPES))
async def test_each_format_gives_its_file(shared_app: RunningApp, format_: str) -> None:
    job, content = await client.export(
        shared_app, request("# 标题\n\ntext 文字 $x^2$", format_, title="操作系统")
    )
    assert job["format"] == format_
    assert job["warnings"] == []
    assert job["file"]["file_name"] == f"操作系统.{format_}"
    assert job["file"]["mime_type"] == MIME_TYPES[format_]
    response = await shared_app.http.get(f"/api/exports/{job['job_id']}/file")
    assert response.headers["content-type"].partition(";")[0] == MIME_TYPES[format_]
    if format_ == "html":
        assert "文字" in read_html(content).text
    elif format_ == "pdf":
        assert "文字" in read_pdf(content).text
    else:
        assert "文字" in read_docx(content).text


@pytest.mark.proves("export.render.mermaid-asset", "export.assets.hash-rule", "export.assets.reuse")
@pytest.mark.parametrize("format_", list(MIME_TYPES))
async def test_pictures_of_the_client_are_shown(shared_app: RunningApp, format_: str) -> None:
    diagram, formula, image = "graph TD; 甲-->B", "\\unknown{x}", "https://example.org/a.png"
    text = f"```mermaid\n{diagram}\n```\n\n$${formula}$$ ${formula}$\n\n![words]({image})"
    assets = [
        asset("mermaid", diagram, png(31, 20)),
        asset("math_block", formula, png(32, 20)),
        asset("math_inline", formula, png(33, 20)),
        asset("image", image, png(34, 20)),
    ]
    job, content = await client.export(shared_app, request(text, format_, assets=assets))
    assert job["warnings"] == []
    if format_ == "html":
        assert len(read_html(content).all("img")) == 4
    elif format_ == "pdf":
        pdf = read_pdf(content)
        assert pdf.bitmaps == 4
        assert "graph" not in pdf.text
        assert (255, 0, 0) in [colour for _, colour in pdf.page(dots=72).getcolors(100_000) or []]
    else:
        word = read_docx(content)
        assert word.pictures == [diagram, formula, formula, "words"]
        assert "graph" not in word.text


@pytest.mark.proves(
    "export.assets.count-limit",
    "export.assets.pixels-limit",
    "export.assets.bytes-limit",
    "export.assets.limit-code",
    "export.assets.duplicate",
)
async def test_assets_have_budgets_except_for_pdf(shared_app: RunningApp) -> None:
    many = [asset("mermaid", f"{n}", png()) for n in range(65)]
    large = [asset("mermaid", "large", png(2000, 2001))]
    in_sum = [asset("mermaid", f"{n}", png(2000, 2000)) for n in range(4)] + many[5:6]
    heavy = [asset("mermaid", f"{n}", png(extra=b"x" * 2_800_000)) for n in range(3)]
    for assets in (many, large, in_sum, heavy):
        for format_ in ("html", "docx"):
            status, code, _ = await client.error_of(
                shared_app, request("x", format_, assets=assets)
            )
            assert (status, code) == (422, "EXPORT_ASSET_INVALID")
        job = await client.ended(
            shared_app, await client.create(shared_app, request("x", "pdf", assets=assets))
        )
        assert job["status"] == "completed"
    for format_ in MIME_TYPES:
        fits = request("x", format_, assets=many[:64])
        assert (await client.ended(shared_app, await client.create(shared_app, fits)))["file"]
        twice = [many[0], many[0] | {"png_base64": base64.b64encode(png(3, 3)).decode()}]
        broken = [many[0] | {"png_base64": base64.b64encode(png()[:-9]).decode()}]
        for assets in (twice, broken):
            status, code, _ = await client.error_of(
                shared_app, request("x", format_, assets=assets)
            )
            assert (status, code) == (422, "EXPORT_ASSET_INVALID")


@pytest.mark.proves("export.budget.pdf-source-length")
async def test_a_long_text_becomes_a_pdf(shared_app: RunningApp) -> None:
    text = "\n\n".join(f"第{n}段 " + "文" * 400 for n in range(520))
    assert len(text) > 200_000
    job, content = await client.export(shared_app, request(text, "pdf"))
    assert job["warnings"] == []
    assert "第519段" in read_pdf(content).text
    assert (await client.error_of(shared_app, request(text, "docx")))[0] == 422


@pytest.mark.proves(
    "export.errors.output-too-large", "export.errors.output-limit", "export.budget.pdf-output"
)
async def test_a_file_that_would_be_too_large_is_not_made(app: RunningApp) -> None:
    service = app.services.exports
    assert ExportSettings().output_bytes == 64 * 1024 * 1024
    assert service._settings == ExportSettings()
    service._settings = dataclasses.replace(service._settings, output_bytes=2_000)
    for format_ in ("html", "docx"):
        job = await client.ended(app, await client.create(app, request("words", format_)))
        assert (job["status"], job["error_code"]) == ("failed", "EXPORT_OUTPUT_TOO_LARGE")
        assert job["file"] is None
    assert artefacts(app) == []
    job, content = await client.export(app, request("words " * 500, "pdf"))
    assert len(content) > 2_000


@pytest.mark.proves(
    "export.exporter.unsupported-content", "export.exporter.unsupported-content-case"
)
@pytest.mark.parametrize("format_", list(MIME_TYPES))
async def test_a_document_of_which_nothing_can_be_shown_fails(
    shared_app: RunningApp, format_: str
) -> None:
    lost = "![](data:image/svg+xml;base64,PHN2Zz4=)\n\n![](data:text/plain,x)"
    job = await client.ended(shared_app, await client.create(shared_app, request(lost, format_)))
    assert (job["status"], job["error_code"]) == ("failed", "EXPORT_UNSUPPORTED_CONTENT")
    assert job["file"] is None
    # A part that is kept as source, or an empty text, is no such loss.
    for text in (f"{lost}\n\n```mermaid\npie\n```", f"{lost}\n\nword", "", "  \n"):
        job = await client.ended(
            shared_app, await client.create(shared_app, request(text, format_))
        )
        assert job["status"] == "completed"


@pytest.mark.proves("export.queue.concurrency")
async def test_jobs_of_every_format_wait_for_their_turn(app: RunningApp) -> None:
    running = [await client.create(app, request(LARGE, "html")) for _ in range(2)]
    waiting = [await client.create(app, request(f"text {n}", "pdf")) for n in range(4)]
    for job_id in running:
        await client.works(app, job_id)
    for job_id in waiting:
        assert (await client.read(app, job_id))["status"] == "queued"
    assert len(app.services.workers.children()) == 2
    for job_id in running:
        await app.http.post(f"/api/exports/{job_id}/cancel")
    jobs = await asyncio.gather(*(client.ended(app, job_id) for job_id in waiting))
    assert [job["status"] for job in jobs] == ["completed"] * 4


@pytest.mark.proves("export.cancel.running", "export.queue.others-unblocked")
async def test_laying_out_pages_is_cancelled(app: RunningApp) -> None:
    rows = "\n".join(f"| {n} | *b* | c |" for n in range(20_000))
    job_id = await client.create(app, request(f"| a | b | c |\n|---|---|---|\n{rows}", "pdf"))
    await client.works(app, job_id)
    assert (await app.http.get("/api/tasks")).status_code == 200
    assert (await app.http.post(f"/api/exports/{job_id}/cancel")).status_code == 202
    job = await client.ended(app, job_id)
    assert (job["status"], job["file"]) == ("cancelled", None)
    assert artefacts(app) == []
    # Nothing is laid out any more: the next one has its turn at once.
    assert (await client.ended(app, await client.create(app, request("x", "pdf"))))["file"]


@pytest.mark.proves("export.palette.frozen", "export.palette.pdf")
async def test_the_palette_of_the_request_is_used(app: RunningApp) -> None:
    running = [await client.create(app, request(LARGE, "html")) for _ in range(2)]
    options = {"palette": PALETTE, "theme_id": "dark"}
    body = request("text", "pdf", options=options)
    job_id = await client.create(app, body)
    # What the client shows meanwhile is another matter.
    options["palette"] = dict.fromkeys(PALETTE, "#123456")
    await client.create(app, request("text", "pdf", options=options))
    for other in running:
        await app.http.post(f"/api/exports/{other}/cancel")
    assert (await client.ended(app, job_id))["status"] == "completed"
    response = await app.http.get(f"/api/exports/{job_id}/file")
    assert read_pdf(response.content).page().getpixel((1, 1)) == (0xFD, 0xF6, 0xE3)


@pytest.mark.proves("export.errors.status-table", "export.errors.output-too-large")
def test_the_statuses_of_the_errors() -> None:
    assert ERRORS["EXPORT_OUTPUT_TOO_LARGE"].status == 413
    assert ERRORS["EXPORT_UNSUPPORTED_CONTENT"].status == 422
    assert ERRORS["EXPORT_RENDER_FAILED"].status == 500


@pytest.mark.proves("export.hostile.bounded")
@pytest.mark.parametrize("format_", ["pdf", "docx"])
async def test_hostile_texts_end_in_a_file(shared_app: RunningApp, format_: str) -> None:
    texts = [
        ">" * (10_000 if format_ == "docx" else 1_000) + " deep",
        "\n".join(" " * depth + "- a" for depth in range(120)),
        "[" * 10_000,
        "**a " * 300 + " b**" * 300,
        "| a | b |\n|-|-|\n" + "| 1 | 2 |\n" * 150,
        "`a``" * 500,
        "$" + "{" * 5_000 + "$",
        "&#x1F600;" * 2_000,
        "<!DOCTYPE x [<!ENTITY a 'b'>]>&a;",
        "word " * 4_000,
    ]
    for text in texts:
        job = await client.ended(
            shared_app, await client.create(shared_app, request(text, format_))
        )
        assert job["status"] == "completed", (text[:20], job)
    assert (await shared_app.http.get("/health")).status_code == 200
