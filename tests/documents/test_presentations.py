"""The text of presentations that python-pptx and LibreOffice made, old ones among them."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.presentation import Presentation as PptxPresentation
from pptx.util import Inches

from sidecar.documents import libreoffice, worker
from sidecar.documents.libreoffice import find_soffice, to_pptx
from sidecar.documents.refusal import Refused
from sidecar.documents.service import DocumentService
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.paths import DataPaths
from sidecar.kernel.workers.client import WorkerPool
from sidecar.kernel.workers.process import Task
from tests.documents.samples import (
    OLD_PRESENTATION,
    PRESENTATION,
    converted,
    need_libreoffice,
    written,
)
from tests.kernel.waiting import gone, until

pytestmark = pytest.mark.asyncio(loop_scope="package")

EXPECTED = """## Slide 1: 项目 计划

- 要点一
  - 子要点
- 要点二

Notes:

讲者备注

## Slide 2: 数据

| 季度 | 收入 |
| --- | --- |
| 一 | 12\\|13 |

销量

|  | 销量 |
| --- | --- |
| 一月 | 1.5 |
| 二月 | 2 |

文本框"""


def plan() -> PptxPresentation:
    """Return a presentation with the usual things on it."""
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "项目 计划"
    frame = slide.placeholders[1].text_frame
    frame.text = "要点一"
    for text, level in (("子要点", 1), ("要点二", 0)):
        line = frame.add_paragraph()
        line.text, line.level = text, level
    slide.notes_slide.notes_text_frame.text = "讲者备注"
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "数据"
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(3), Inches(1)).table
    for index, text in enumerate(("季度", "收入", "一", "12|13")):
        table.cell(index // 2, index % 2).text = text
    chart = CategoryChartData()  # type: ignore[no-untyped-call]
    chart.categories = ["一月", "二月"]
    chart.add_series("销量", (1.5, 2))  # type: ignore[no-untyped-call]
    frame = slide.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, 0, Inches(2), Inches(3), Inches(2), chart
    )
    frame.chart.has_title = True
    frame.chart.chart_title.text_frame.text = "销量"
    box = slide.shapes.add_textbox(0, Inches(5), Inches(3), Inches(1))
    box.text_frame.text = "文本框"
    return made


@pytest.fixture(scope="package")
def old_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same presentation in PowerPoint's old format."""
    folder = tmp_path_factory.mktemp("ppt")
    plan().save(str(folder / "plan.pptx"))
    return converted(folder / "plan.pptx", "ppt", folder)


async def test_a_presentation_becomes_markdown_slide_by_slide(
    documents: DocumentService, file: Path
) -> None:
    plan().save(str(file))
    found = await documents.extract_text(file, PRESENTATION, name="计划.pptx", limit=10_000)
    assert found.text == EXPECTED
    assert not found.truncated
    assert found.warnings == ()


async def test_slides_come_in_their_order_and_a_long_text_is_cut(
    documents: DocumentService, file: Path
) -> None:
    made = Presentation()
    for number in range(30):
        made.slides.add_slide(made.slide_layouts[0]).shapes.title.text = f"第{number}张"
    order = made.slides._sldIdLst
    order.insert(0, order[-1])
    made.save(str(file))

    found = await documents.extract_text(file, PRESENTATION, name="a", limit=40)

    assert found.text == "## Slide 1: 第29张\n\n## Slide 2: 第0张\n\n## Sl"
    assert found.truncated


async def test_groups_are_read_and_what_is_on_every_slide_is_not(
    documents: DocumentService, file: Path
) -> None:
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    group = slide.shapes.add_group_shape()
    inner = group.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "组内\v换行"
    footers: Any = made.slide_layouts[6].placeholders
    for shape in footers:
        slide.shapes.clone_placeholder(shape)
        slide.shapes[-1].text_frame.text = "页脚"
    made.save(str(file))

    found = await documents.extract_text(file, PRESENTATION, name="a", limit=1000)

    assert found.text == "## Slide 1\n\n组内\n换行"


@pytest.mark.proves("chat.attachments.ppt")
async def test_an_old_presentation_is_read_with_libreoffice(
    documents: DocumentService, paths: DataPaths, old_plan: Path
) -> None:
    found = await documents.extract_text(old_plan, OLD_PRESENTATION, name="计划.ppt", limit=10_000)
    for text in ("## Slide 1: 项目 计划", "子要点", "讲者备注", "| 季度 | 收入 |", "文本框"):
        assert text in found.text
    assert list(paths.temporary.iterdir()) == []


@pytest.mark.proves("chat.attachments.ppt")
async def test_without_libreoffice_an_old_presentation_is_refused_with_advice(
    old_plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "find_soffice", lambda: None)
    params = {"path": str(old_plan), "kind": "ppt", "limit": 100, "folder": str(tmp_path)}
    with pytest.raises(Refused) as caught:
        worker.text(params, Task(1, lambda _: None))
    assert caught.value.reason == "converter_missing"


async def test_what_only_looks_like_an_old_presentation_is_refused(
    documents: DocumentService, paths: DataPaths, file: Path
) -> None:
    need_libreoffice()
    marks = "PowerPoint Document".encode("utf-16-le")
    written(file, bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2000) + marks + bytes(2000))
    with pytest.raises(ProjectError) as caught:
        await documents.extract_text(file, OLD_PRESENTATION, name="计划.ppt", limit=100)
    assert caught.value.details == {"name": "计划.ppt", "reason": "conversion_failed"}
    assert ".pptx" in caught.value.message("en")
    assert ".pptx" in caught.value.message("zh-CN")
    assert list(paths.temporary.iterdir()) == []


def converters(pid: int) -> list[psutil.Process]:
    """Return the processes of LibreOffice below a worker."""
    try:
        below = psutil.Process(pid).children(recursive=True)
        return [process for process in below if "soffice" in process.name()]
    except psutil.NoSuchProcess:
        return []


async def working_converters(*pids: int) -> list[int]:
    """Wait until LibreOffice itself runs, and return the ids of its processes."""
    await until(
        lambda: any(process.name() == "soffice.bin" for pid in pids for process in converters(pid))
    )
    return [process.pid for pid in pids for process in converters(pid)]


@pytest.mark.skipif(sys.platform != "linux", reason="LibreOffice's processes have other names")
async def test_a_cancellation_ends_libreoffice_too(
    documents: DocumentService, pool: WorkerPool, paths: DataPaths, old_plan: Path
) -> None:
    reading = asyncio.create_task(
        documents.extract_text(old_plan, OLD_PRESENTATION, name="a", limit=100)
    )
    await until(lambda: bool(pool.children()))
    pids = await working_converters(*(child.pid for child in pool.children()))

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    await gone(*pids)
    assert list(paths.temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="LibreOffice's processes have other names")
async def test_libreoffice_ends_with_a_server_that_is_gone(old_plan: Path, tmp_path: Path) -> None:
    need_libreoffice()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sidecar",
        "worker",
        "documents",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    assert child.stdin is not None
    child.stdin.write(
        b'{"type":"request","id":1,"method":"text","params":{"path":"%s","kind":"ppt",'
        b'"limit":100,"folder":"%s"}}\n' % (os.fsencode(old_plan), os.fsencode(folder))
    )
    pids = await working_converters(child.pid)

    # All that a worker sees of a server that was killed.
    child.stdin.close()

    await gone(child.pid, *pids)
    await child.wait()


def program(folder: Path, lines: str) -> Path:
    """Make a program that stands in the place of LibreOffice."""
    path = folder / "soffice"
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
@pytest.mark.parametrize("lines", ["exit 1", "exit 0", "kill -9 $$"])
async def test_a_converter_that_makes_nothing_has_failed(
    old_plan: Path, tmp_path: Path, lines: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(Refused) as caught:
        to_pptx(old_plan, folder, program(tmp_path, lines), lambda: None)
    assert caught.value.reason == "conversion_failed"


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
async def test_a_converter_that_hangs_is_ended_with_its_children(
    old_plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libreoffice, "LIMIT_SECONDS", 0.5)
    folder = tmp_path / "folder"
    folder.mkdir()
    hanging = program(tmp_path, f"sleep 600 & echo $! > '{tmp_path}/pid'; wait")
    with pytest.raises(Refused) as caught:
        to_pptx(old_plan, folder, hanging, lambda: None)
    assert caught.value.reason == "took_too_long"
    await gone(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
async def test_a_converter_that_fills_the_memory_is_ended_with_its_children(
    old_plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libreoffice, "MOST_MEMORY", 100 * 1024**2)
    folder = tmp_path / "folder"
    folder.mkdir()
    greedy = "import time; held = bytes(200 * 1024**2).replace(b'\\0', b'x'); time.sleep(600)"
    lines = f"{sys.executable} -c \"{greedy}\" & echo $! > '{tmp_path}/pid'; wait"
    with pytest.raises(Refused) as caught:
        to_pptx(old_plan, folder, program(tmp_path, lines), lambda: None)
    assert caught.value.reason == "too_complex"
    await gone(int((tmp_path / "pid").read_text()))


LINKED = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.presentation">
<office:body><office:presentation><draw:page draw:name="p"><draw:frame svg:width="5cm" svg:height="5cm">
<draw:image xlink:href="{address}" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/>
</draw:frame></draw:page></office:presentation></office:body></office:document>"""


async def test_libreoffice_fetches_nothing_that_a_file_links_to(tmp_path: Path) -> None:
    need_libreoffice()
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        source = tmp_path / "linked.fodp"
        written(source, LINKED.format(address=f"http://127.0.0.1:{port}/x.png").encode())
        await asyncio.to_thread(converted, source, "pptx", tmp_path)
        assert asked, "without the profile it does fetch"

        asked.clear()
        libreoffice.make_profile(tmp_path / "hardened")
        await asyncio.to_thread(converted, source, "pptx", tmp_path, tmp_path / "hardened")
        assert asked == []


async def test_libreoffice_is_found_where_installers_put_it(tmp_path: Path) -> None:
    windows = tmp_path / "Program Files"
    place = windows / "LibreOffice" / "program"
    place.mkdir(parents=True)
    (place / "soffice.com").touch()
    environment = {"PATH": "", "PROGRAMFILES": str(windows)}
    assert find_soffice("win32", environment) == place / "soffice.com"

    mac = tmp_path / "Applications" / "LibreOffice.app" / "Contents" / "MacOS"
    mac.mkdir(parents=True)
    (mac / "soffice").touch()
    assert find_soffice("darwin", {"PATH": "", "HOME": str(tmp_path)}) == mac / "soffice"

    assert find_soffice("win32", {"PATH": ""}) is None
