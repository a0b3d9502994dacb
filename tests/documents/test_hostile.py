"""Documents that were made to do harm, or are simply broken."""

import io
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docx import Document
from pptx import Presentation

from sidecar.documents.refusal import REASONS
from sidecar.documents.service import DocumentService
from sidecar.kernel.catalogue import MESSAGES
from sidecar.kernel.errors import ProjectError
from sidecar.kernel.workers.client import WorkerPool
from tests.documents.samples import (
    OLD_PRESENTATION,
    PRESENTATION,
    WORD,
    paragraph,
    replaced,
    word_file,
    written,
)

pytestmark = pytest.mark.asyncio(loop_scope="package")

OLE = bytes.fromhex("d0cf11e0a1b11ae1")


async def refused(documents: DocumentService, path: Path, media_type: str = WORD) -> str:
    """Return the reason for which a file is refused; the error says which file it is."""
    with pytest.raises(ProjectError) as caught:
        await documents.extract_text(path, media_type, name="计划.docx", limit=100_000)
    error = caught.value
    assert error.code == "CHAT_ATTACHMENT_FAILED"
    assert error.details["name"] == "计划.docx"
    reason = str(error.details["reason"])
    for locale in ("en", "zh-CN"):
        text = MESSAGES[f"attachment.{reason}"]
        assert "计划.docx" in error.message(locale)
        assert (text.zh if locale == "zh-CN" else text.en) in error.message(locale)
        assert str(path) not in error.message(locale)
    return reason


def word_bytes(text: str = "内容") -> bytes:
    document = Document()
    document.add_paragraph(text)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def slides_bytes() -> bytes:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[0])
    slide.shapes.title.text = "标题"
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


async def test_every_reason_has_its_text() -> None:
    assert {f"attachment.{reason}" for reason in REASONS} <= MESSAGES.keys()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive at all",
        b"PK\x03\x04",
        word_bytes()[:-200],
        word_bytes()[:500],
        b"\x00" * 10_000,
    ],
    ids=["empty", "text", "head", "end-missing", "cut", "zeros"],
)
async def test_what_is_no_whole_archive_is_damaged(
    documents: DocumentService, file: Path, content: bytes
) -> None:
    written(file, content)
    assert await refused(documents, file) == "damaged"


async def test_a_file_that_is_gone(documents: DocumentService, file: Path) -> None:
    assert await refused(documents, file) == "missing"
    assert await refused(documents, file, OLD_PRESENTATION) == "missing"


async def test_a_file_of_another_type_than_its_name_says(
    documents: DocumentService, file: Path
) -> None:
    written(file, slides_bytes())
    assert await refused(documents, file, WORD) == "wrong_type"
    assert await refused(documents, file, OLD_PRESENTATION) == "wrong_type"
    written(file, word_bytes())
    assert await refused(documents, file, PRESENTATION) == "wrong_type"
    written(file, OLE + bytes(1000))
    assert await refused(documents, file, WORD) == "wrong_type"
    assert await refused(documents, file, "audio/wav") == "unsupported"


async def test_a_password_is_told_of(documents: DocumentService, file: Path) -> None:
    written(file, OLE + bytes(1000) + "EncryptedPackage".encode("utf-16-le"))
    assert await refused(documents, file, WORD) == "encrypted"
    assert await refused(documents, file, PRESENTATION) == "encrypted"
    marks = "PowerPoint Document EncryptedSummary".encode("utf-16-le")
    written(file, OLE + bytes(1000) + marks)
    assert await refused(documents, file, OLD_PRESENTATION) == "encrypted"


async def test_an_archive_with_a_password_is_told_of(
    documents: DocumentService, file: Path
) -> None:
    content = bytearray(word_bytes())
    # The flag of encryption in every entry of the directory.
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        content[at + 8] |= 1
        at = content.find(b"PK\x01\x02", at + 4)
    written(file, content)
    assert await refused(documents, file) == "encrypted"


async def test_a_document_without_text_is_never_an_empty_text(
    documents: DocumentService, file: Path
) -> None:
    assert await refused(documents, word_file("<w:p/><w:p> </w:p>", file)) == "no_text"
    presentation = Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[6])
    presentation.save(str(file))
    assert await refused(documents, file, PRESENTATION) == "no_text"
    Presentation().save(str(file))
    assert await refused(documents, file, PRESENTATION) == "no_text"


LAUGHS = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}]>', "&l9;"),
        (f'<!DOCTYPE d [<!ENTITY l0 "{"x" * 100_000}">]>', "&l0;" * 10_000),
        ('<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "&e;"),
        ('<!DOCTYPE d [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x">%p;]>', "x"),
        ('<!DOCTYPE d SYSTEM "file:///etc/passwd">', "x"),
        ("<!DOCTYPE d []>", "plain"),
    ],
    ids=["laughs", "quadratic", "external", "parameter", "dtd", "empty"],
)
async def test_entities_are_never_resolved(
    documents: DocumentService, file: Path, before: str, text: str
) -> None:
    path = word_file(paragraph(text), file, before=before)
    assert await refused(documents, path) in ("damaged", "too_complex")


async def test_an_entity_in_an_attribute_is_not_resolved_either(
    documents: DocumentService, file: Path
) -> None:
    path = word_file(
        f'<w:p w:rsidR="&l9;">{paragraph("x")}</w:p>',
        file,
        before=f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}]>',
    )
    assert await refused(documents, path) in ("damaged", "too_complex")


def with_body(file: Path, body: Callable[[], Iterator[bytes]]) -> Path:
    def parts() -> Iterator[bytes]:
        yield b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
        yield from body()
        yield b"</w:body></w:document>"

    return replaced(word_bytes(), {"word/document.xml": parts()}, file)


async def test_what_unpacks_to_too_much_is_refused(documents: DocumentService, file: Path) -> None:
    blank = b"<w:p>" + b" " * 9_000_000 + b"</w:p>"
    path = with_body(file, lambda: (blank for _ in range(32)))
    assert path.stat().st_size < 2_000_000
    assert await refused(documents, path) == "too_large"


async def test_an_archive_that_lies_about_its_sizes_is_refused(
    documents: DocumentService, file: Path
) -> None:
    blank = b"<w:p>" + b" " * 9_000_000 + b"</w:p>"
    content = bytearray(with_body(file, lambda: (blank for _ in range(32))).read_bytes())
    at = content.rfind(b"PK\x01\x02")
    struct.pack_into("<I", content, at + 24, 100)  # the size when unpacked
    written(file, content)
    assert await refused(documents, file) in ("damaged", "too_large")


async def test_what_fills_the_memory_ends_the_worker_and_not_the_server(
    documents: DocumentService, pool: WorkerPool, file: Path
) -> None:
    path = with_body(file, lambda: iter([b"<w:p>", *[b"<r a='' b=''/>" * 500_000] * 30, b"</w:p>"]))
    assert await refused(documents, path) == "too_complex"

    written(file, word_bytes("之后"))
    assert (await documents.extract_text(file, WORD, name="a", limit=100)).text == "之后"


@pytest.mark.parametrize("depth", [300, 100_000])
async def test_what_is_nested_too_deeply_is_refused(
    documents: DocumentService, file: Path, depth: int
) -> None:
    path = word_file("<w:sdt>" * depth + "</w:sdt>" * depth, file)
    assert await refused(documents, path) == "too_complex"


async def test_tables_in_tables_are_read_as_deep_as_they_can_be(
    documents: DocumentService, file: Path
) -> None:
    body = paragraph("芯")
    for _ in range(80):
        body = f"<w:tbl><w:tr><w:tc>{body}</w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>"
    found = await documents.extract_text(word_file(body, file), WORD, name="a", limit=100_000)
    assert "芯" in found.text


async def test_a_style_that_is_based_on_itself_ends(documents: DocumentService, file: Path) -> None:
    styles = (
        b'<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        b'<w:style w:styleId="a"><w:basedOn w:val="b"/></w:style>'
        b'<w:style w:styleId="b"><w:basedOn w:val="a"/></w:style></w:styles>'
    )
    body = paragraph("文", '<w:pStyle w:val="a"/>')
    word_file(body, file, parts={"word/styles.xml": styles})
    assert (await documents.extract_text(file, WORD, name="a", limit=100)).text == "文"


async def test_spans_and_levels_out_of_all_reason_are_bounded(
    documents: DocumentService, file: Path
) -> None:
    cell = f'<w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr>{paragraph("格")}</w:tc>'
    body = f"<w:tbl><w:tr>{cell}{cell}</w:tr></w:tbl>" + paragraph(
        "项",
        '<w:outlineLvl w:val="-5"/><w:numPr><w:ilvl w:val="9e9"/><w:numId w:val="x"/></w:numPr>',
    )
    found = await documents.extract_text(word_file(body, file), WORD, name="a", limit=10_000)
    assert found.text.count("格") == 2
    assert len(found.text) < 2_000


async def test_an_archive_with_too_many_entries_is_refused(
    documents: DocumentService, file: Path
) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(20_001):
            archive.writestr(str(number), b"")
    assert await refused(documents, file) == "too_large"


async def test_other_compressions_are_refused(documents: DocumentService, file: Path) -> None:
    with (
        zipfile.ZipFile(io.BytesIO(word_bytes())) as source,
        zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert await refused(documents, file) == "damaged"


async def test_a_package_that_points_outside_itself_reads_nothing_there(
    documents: DocumentService, file: Path
) -> None:
    relations = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        b'<Relationship Id="r1" Type="http://x/officeDocument" Target="%s"%s/></Relationships>'
    )
    for target, mode in [
        (b"../../../../etc/passwd", b""),
        (b"file:///etc/passwd", b' TargetMode="External"'),
        (b"/word/none.xml", b""),
    ]:
        replaced(word_bytes(), {"_rels/.rels": relations % (target, mode)}, file)
        assert await refused(documents, file) == "damaged"


async def answer(documents: DocumentService, path: Path, media_type: str) -> str:
    """Return "text", or the reason for which the file is refused."""
    try:
        found = await documents.extract_text(path, media_type, name="a", limit=1000)
    except ProjectError as error:
        return str(error.details["reason"])
    return "text" if found.text.strip() else ""


@pytest.mark.parametrize(("media_type", "make"), [(WORD, word_bytes), (PRESENTATION, slides_bytes)])
async def test_whatever_byte_is_wrong_the_answer_is_text_or_a_reason(
    documents: DocumentService, file: Path, media_type: str, make: Callable[[], bytes]
) -> None:
    chance = random.Random(7)
    original = make()
    answers = set()
    for _ in range(150):
        content = bytearray(original)
        for _ in range(chance.choice([1, 3, 30])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        written(file, content)
        answers.add(await answer(documents, file, media_type))
    assert {"text", "damaged"} <= answers <= {"text", *REASONS}


@pytest.mark.parametrize("part", ["word/document.xml", "word/styles.xml", "_rels/.rels"])
async def test_whatever_is_wrong_in_the_xml_the_answer_is_text_or_a_reason(
    documents: DocumentService, file: Path, part: str
) -> None:
    chance = random.Random(11)
    package = word_bytes()
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        original = archive.read(part)
    answers = set()
    for _ in range(60):
        content = bytearray(original)
        start = chance.randrange(len(content))
        content[start : start + chance.randrange(1, 40)] = chance.choice(
            [b"", b"<", b"</w:p>", b"<w:tbl>", b'"', b"&#0;", b"\xff\xfe", b"<w:r>" * 50]
        )
        replaced(package, {part: bytes(content)}, file)
        answers.add(await answer(documents, file, WORD))
    assert "damaged" in answers
    assert answers <= {"text", *REASONS}
