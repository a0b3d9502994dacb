"""What is asked for, and what is refused."""

import asyncio
import hashlib
import re
from typing import Any

import pytest

from sidecar.app import offline_openapi
from sidecar.export import service
from sidecar.export.pdf.support import PdfSupport
from sidecar.kernel.catalogue import ERRORS
from tests.app_client import RunningApp
from tests.export import client
from tests.export.client import markdown_request
from tests.export.reading import read_html

NULLABLE = ("progress", "file", "error", "error_code", "started_at", "completed_at")
FIELDS = {"job_id", "status", "format", "warnings", "created_at", *NULLABLE}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
PALETTE = dict.fromkeys(("page", "surface", "text", "muted", "code", "border", "accent"), "#112233")


@pytest.mark.proves("export.create.accepted")
async def test_an_export_is_accepted_and_queued(shared_app: RunningApp) -> None:
    response = await shared_app.http.post("/api/exports", json=markdown_request("# Hello"))
    assert response.status_code == 202
    job = response.json()
    assert job["status"] == "queued"
    assert [job[name] for name in NULLABLE] == [None] * len(NULLABLE)
    assert TIME.fullmatch(job["created_at"])
    assert job["warnings"] == []


@pytest.mark.proves(
    "export.job.fields",
    "export.get.ok",
    "export.job.times",
    "export.job.progress",
    "export.file.metadata",
    "export.file.ok",
    "export.file.retention",
)
async def test_a_completed_export_and_its_file(shared_app: RunningApp) -> None:
    job, content = await client.export(
        shared_app, markdown_request("# 标题\n\ntext", title="操作系统复习")
    )
    assert job.keys() == FIELDS
    assert job["error"] is None
    assert job["error_code"] is None
    assert job["warnings"] == []
    times = [job["created_at"], job["started_at"], job["completed_at"], job["file"]["expires_at"]]
    assert all(TIME.fullmatch(time) for time in times)
    assert times == sorted(times)
    assert job["progress"].keys() == {"phase", "current", "total", "percent", "message"}
    file = job["file"]
    assert file.keys() == {"file_name", "mime_type", "size", "sha256", "expires_at"}
    assert file["file_name"] == "操作系统复习.html"
    assert file["size"] == len(content)
    assert file["sha256"] == hashlib.sha256(content).hexdigest()
    # A day later, to the millisecond.
    completed, expires = job["completed_at"], file["expires_at"]
    assert completed[10:] == expires[10:]
    assert completed[:10] != expires[:10]

    response = await shared_app.http.get(f"/api/exports/{job['job_id']}/file")
    assert response.headers["content-type"].partition(";")[0] == file["mime_type"] == "text/html"
    assert int(response.headers["content-length"]) == file["size"]
    assert response.headers["content-disposition"].startswith("attachment; ")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert [h.text for h in read_html(content).all("h1")] == ["操作系统复习", "标题"]


@pytest.mark.proves("export.file.filename-clean")
async def test_no_title_breaks_the_header(shared_app: RunningApp) -> None:
    title = '恶意"\r\nSet-Cookie: a=b\x00/../..\\名字'
    job, _ = await client.export(shared_app, markdown_request("text", title=title))
    response = await shared_app.http.get(f"/api/exports/{job['job_id']}/file")
    header = response.headers["content-disposition"]
    assert "set-cookie" not in response.headers
    assert re.fullmatch(r"attachment; filename=\"[^\"\\/]+\"; filename\*=UTF-8''[\w.~%-]+", header)
    assert "%E6%81%B6%E6%84%8F" in header
    assert not any(part in header for part in ("%22", "%2F", "%5C", "%0D", "%0A", "%00"))


@pytest.mark.proves("export.source.markdown")
async def test_a_text_needs_no_note(shared_app: RunningApp) -> None:
    _, content = await client.export(shared_app, markdown_request("# From nowhere"))
    assert read_html(content).one("h1").text == "From nowhere"


@pytest.mark.proves("export.source.type-or-field-invalid")
@pytest.mark.parametrize(
    "source",
    [
        {"type": "file", "path": "/etc/passwd"},
        {"type": "note"},
        {"type": "note", "markdown": "x"},
        {"type": "note", "note_id": None},
        {"type": "markdown"},
        {"type": "markdown", "note_id": "note_1"},
        {"type": "markdown", "markdown": None},
        {"type": "markdown", "markdown": 5},
        {"markdown": "x"},
        {},
        None,
        "note_1",
    ],
)
async def test_a_source_must_be_whole(shared_app: RunningApp, source: Any) -> None:
    status, code, _ = await client.error_of(shared_app, {"source": source, "format": "html"})
    assert (status, code) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize("format_", ["txt", "", None, "HTML", 5, ["html"]])
async def test_the_format_must_be_known(shared_app: RunningApp, format_: Any) -> None:
    body = markdown_request("x") | {"format": format_}
    assert (await client.error_of(shared_app, body))[:2] == (422, "VALIDATION_ERROR")
    assert (await client.error_of(shared_app, {"source": body["source"]}))[0] == 422


async def test_what_cannot_be_made_is_said_so(
    shared_app: RunningApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = PdfSupport({"WeasyPrint": "here", "Pango": None}, "apt install libpango-1.0-0")
    monkeypatch.setattr(service, "pdf_support", lambda: without)
    status, code, details = await client.error_of(
        shared_app, markdown_request("x") | {"format": "pdf"}
    )
    assert (status, code) == (501, "CAPABILITY_NOT_AVAILABLE")
    assert (details["format"], details["missing"]) == ("pdf", ["Pango"])
    assert "pango" in details["command"]
    info = (await shared_app.http.get("/api/system/info")).json()
    assert "pdf_export" in str(info)
    # The other formats need none of it.
    job, _ = await client.export(shared_app, markdown_request("x") | {"format": "docx"})
    assert job["file"]["file_name"].endswith(".docx")


@pytest.mark.proves("export.source.markdown-limit", "export.source.markdown-limit-status")
async def test_the_length_of_a_text_is_limited_in_characters(shared_app: RunningApp) -> None:
    for format_ in ("html", "docx"):
        body = markdown_request("字" * 200_001) | {"format": format_}
        status, code, details = await client.error_of(shared_app, body)
        assert (status, code) == (422, "VALIDATION_ERROR")
        assert "字" not in str(details)
    for format_ in ("html", "docx"):
        body = markdown_request("字" * 200_000) | {"format": format_}
        assert (await client.ended(shared_app, await client.create(shared_app, body)))[
            "status"
        ] == "completed"


@pytest.mark.proves("export.options.defaults")
async def test_options_may_be_left_out(shared_app: RunningApp) -> None:
    spelled = {
        "theme_id": "light",
        "include_title": True,
        "include_metadata": False,
        "page_size": "A4",
        "code_theme": "github-light",
        "palette": None,
    }
    source = "# T\n\n```python\nx = 1\n```"
    ways: list[dict[str, Any]] = [
        {},
        {"options": {}},
        {"options": {"theme_id": "light"}},
        {"options": spelled},
    ]
    contents = [
        (await client.export(shared_app, markdown_request(source, **options)))[1]
        for options in ways
    ]
    assert len(set(contents)) == 1


@pytest.mark.proves("export.options.invalid", "export.palette.shape")
@pytest.mark.parametrize(
    ("options", "member"),
    [
        ({"page_size": "A3"}, ["page_size"]),
        ({"page_size": None}, ["page_size"]),
        ({"code_theme": "neon"}, ["code_theme"]),
        ({"include_title": "yes"}, ["include_title"]),
        ({"include_metadata": 1}, ["include_metadata"]),
        ({"theme_id": 5}, ["theme_id"]),
        ({"palette": "dark"}, ["palette"]),
        ({"palette": {**PALETTE, "page": "red"}}, ["palette", "page"]),
        ({"palette": {**PALETTE, "text": "#12345"}}, ["palette", "text"]),
        ({"palette": {**PALETTE, "text": "#1234567"}}, ["palette", "text"]),
        ({"palette": {**PALETTE, "text": "#112233\n"}}, ["palette", "text"]),
        ({"palette": {**PALETTE, "text": "url(x)"}}, ["palette", "text"]),
        ({"palette": {k: v for k, v in PALETTE.items() if k != "accent"}}, ["palette", "accent"]),
        ("all", []),
        (None, []),
    ],
)
async def test_options_have_their_own_code(
    shared_app: RunningApp, options: Any, member: list[str]
) -> None:
    body = markdown_request("x", options=options)
    status, code, details = await client.error_of(shared_app, body)
    assert (status, code) == (422, "EXPORT_OPTIONS_INVALID")
    assert [error["loc"] for error in details["errors"]] == [["body", "options", *member]]


@pytest.mark.proves("export.title.limit")
async def test_a_title_has_200_characters_at_most(shared_app: RunningApp) -> None:
    job, content = await client.export(shared_app, markdown_request("text", title="字" * 200))
    assert read_html(content).one("h1").text == "字" * 200
    assert len(job["file"]["file_name"].encode()) <= 255
    status, code, _ = await client.error_of(shared_app, markdown_request("x", title="字" * 201))
    assert (status, code) == (422, "VALIDATION_ERROR")


@pytest.mark.proves("export.images.file-path-outside")
@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x.md", "a/../../x.md", "C:\\x.md", "c:/x.md", "\\\\host\\x", "~/x", "a\0b"],
)
async def test_a_path_must_stay_inside_the_vault(shared_app: RunningApp, path: str) -> None:
    body = markdown_request("x")
    body["source"]["file_path"] = path
    status, code, details = await client.error_of(shared_app, body)
    assert (status, code) == (422, "VALIDATION_ERROR")
    assert details["errors"][0]["loc"][-1] == "file_path"


@pytest.mark.proves("export.assets.shape", "export.assets.default")
async def test_the_form_of_assets(shared_app: RunningApp) -> None:
    good = {"kind": "mermaid", "source_hash": "0" * 64, "png_base64": "aGVsbG8="}
    for wrong in (
        {"kind": "svg"},
        {"source_hash": "0" * 63},
        {"source_hash": "g" * 64},
        {"source_hash": None},
        {"png_base64": None},
    ):
        body = markdown_request("x", assets=[good | wrong])
        assert (await client.error_of(shared_app, body))[:2] == (422, "VALIDATION_ERROR")
    _, with_none = await client.export(shared_app, markdown_request("x", assets=[]))
    _, without = await client.export(shared_app, markdown_request("x"))
    assert with_none == without


@pytest.mark.proves("export.list.page", "export.list.order", "export.list.filters")
async def test_the_list_of_exports(app: RunningApp) -> None:
    empty = (await app.http.get("/api/exports")).json()
    assert empty == {"items": [], "page": {"total": 0, "limit": 50, "offset": 0}}
    made = [await client.create(app, markdown_request(f"# {n}")) for n in range(5)]
    for job_id in made:
        await client.ended(app, job_id)
    pages = [
        (await app.http.get("/api/exports", params={"limit": 2, "offset": offset})).json()
        for offset in (0, 2, 4)
    ]
    assert [job["job_id"] for page in pages for job in page["items"]] == made[::-1]
    assert [page["page"] for page in pages] == [
        {"total": 5, "limit": 2, "offset": offset} for offset in (0, 2, 4)
    ]
    for params, total in (
        ({"status": "completed"}, 5),
        ({"status": "failed"}, 0),
        ({"format": "html"}, 5),
        ({"format": "pdf"}, 0),
        ({"status": "completed", "format": "html", "limit": "1"}, 5),
        ({"status": "", "format": "", "limit": "", "offset": ""}, 5),
    ):
        found = (await app.http.get("/api/exports", params=params)).json()
        assert found["page"]["total"] == total
        assert len(found["items"]) == min(total, found["page"]["limit"])


@pytest.mark.proves("export.list.invalid")
@pytest.mark.parametrize(
    "query",
    [
        "status=done",
        "format=txt",
        "offset=-1",
        "limit=0",
        "limit=201",
        "limit=x",
        "status=processing",
    ],
)
async def test_a_list_query_must_make_sense(shared_app: RunningApp, query: str) -> None:
    response = await shared_app.http.get(f"/api/exports?{query}")
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.proves("export.get.unknown")
async def test_an_unknown_job(shared_app: RunningApp) -> None:
    for method, path in (("GET", ""), ("POST", "/cancel"), ("GET", "/file")):
        response = await shared_app.http.request(method, f"/api/exports/export_unknown{path}")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "EXPORT_JOB_NOT_FOUND"


@pytest.mark.proves("export.job.warnings-strings")
async def test_warnings_are_told_in_the_readers_language(shared_app: RunningApp) -> None:
    job, _ = await client.export(
        shared_app, markdown_request("a\n\n$\\x$\n\n![alt](https://example.org/a.png)")
    )
    assert len(job["warnings"]) == 2
    assert all(isinstance(warning, str) for warning in job["warnings"])
    assert "formula in line 3" in job["warnings"][0]
    assert "picture in line 5" in job["warnings"][1]
    response = await shared_app.http.get(
        f"/api/exports/{job['job_id']}", headers={"Accept-Language": "zh-CN"}
    )
    assert response.json()["warnings"][0].startswith("第 3 行的公式")


@pytest.mark.proves("export.errors.status-table")
def test_the_statuses_of_the_codes() -> None:
    statuses = {
        "EXPORT_SOURCE_NOT_FOUND": 404,
        "EXPORT_JOB_NOT_FOUND": 404,
        "EXPORT_OPTIONS_INVALID": 422,
        "EXPORT_ASSET_INVALID": 422,
        "EXPORT_UNSUPPORTED_CONTENT": 422,
        "EXPORT_FILE_EXPIRED": 410,
        "EXPORT_OUTPUT_TOO_LARGE": 413,
        "EXPORT_RENDER_FAILED": 500,
    }
    assert {code: ERRORS[code].status for code in statuses} == statuses


@pytest.mark.proves("export.source.no-local-path", "export.images.file-path-base")
async def test_no_field_of_a_request_makes_the_server_read_a_file(
    shared_app: RunningApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = shared_app.data_dir.parent / "secret.md"
    secret.write_text("SECRET CONTENT", encoding="utf-8")
    (shared_app.data_dir.parent / "vault").mkdir()
    (shared_app.data_dir.parent / "vault" / "named.md").write_text(
        "SECRET CONTENT", encoding="utf-8"
    )
    path = secret.as_posix()
    body = markdown_request(f"![a]({path}) ![b](file://{path}) [c]({path})", title=path)
    body["source"]["file_path"] = "named.md"
    body["options"] = {"theme_id": path}
    _, content = await client.export(shared_app, body)
    assert b"SECRET CONTENT" not in content


async def test_a_ticket_opens_the_download(shared_app: RunningApp) -> None:
    job, content = await client.export(shared_app, markdown_request("text"))
    path = f"/api/exports/{job['job_id']}/file"
    ticket = await shared_app.http.post("/api/tickets", json={"path": path})
    assert ticket.status_code in (200, 201), ticket.text
    response = await shared_app.anonymous.get(ticket.json()["url"])
    assert (response.status_code, response.content) == (200, content)
    assert (await shared_app.anonymous.get(path)).status_code == 401


async def test_many_exports_at_once(shared_app: RunningApp) -> None:
    ids = await asyncio.gather(
        *(client.create(shared_app, markdown_request(f"# {n}")) for n in range(12))
    )
    jobs = [await client.ended(shared_app, job_id) for job_id in ids]
    assert {job["status"] for job in jobs} == {"completed"}


@pytest.mark.proves("export.errors.openapi")
def test_the_errors_of_each_path_are_documented() -> None:
    paths = offline_openapi()["paths"]
    expected = {
        ("/api/exports", "post"): {
            "EXPORT_SOURCE_NOT_FOUND": "404",
            "EXPORT_OPTIONS_INVALID": "422",
            "EXPORT_ASSET_INVALID": "422",
            "VALIDATION_ERROR": "422",
            "CAPABILITY_NOT_AVAILABLE": "501",
            "VAULT_NOT_OPEN": "409",
            "PAYLOAD_TOO_LARGE": "413",
        },
        ("/api/exports", "get"): {"VALIDATION_ERROR": "422"},
        ("/api/exports/{job_id}", "get"): {"EXPORT_JOB_NOT_FOUND": "404"},
        ("/api/exports/{job_id}/cancel", "post"): {
            "EXPORT_JOB_NOT_FOUND": "404",
            "JOB_ALREADY_FINISHED": "409",
        },
        ("/api/exports/{job_id}/file", "get"): {
            "EXPORT_JOB_NOT_FOUND": "404",
            "EXPORT_FILE_EXPIRED": "410",
        },
    }
    assert {path for path in paths if path.startswith("/api/exports")} == {p for p, _ in expected}
    for (path, method), codes in expected.items():
        responses = paths[path][method]["responses"]
        for code, status in codes.items():
            assert f"`{code}`" in responses[status]["description"], (path, code)
    # What a job can end with is told where it is read.
    description = paths["/api/exports/{job_id}"]["get"]["description"]
    for code in ("EXPORT_RENDER_FAILED", "EXPORT_OUTPUT_TOO_LARGE", "EXPORT_UNSUPPORTED_CONTENT"):
        assert code in description
