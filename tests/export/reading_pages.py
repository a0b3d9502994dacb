"""Reads PDF and Word files."""

import io
import re
import subprocess
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import docx
from docx.document import Document as WordDocument
from PIL import Image

from tests.export.needs import need_program

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def _run(tool: str, *arguments: str, content: bytes) -> bytes:
    need_program(tool)
    result = subprocess.run(
        [tool, *arguments], input=content, capture_output=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert b"Syntax Error" not in result.stderr, result.stderr
    return result.stdout


@dataclass(frozen=True)
class Pdf:
    """A PDF as Poppler's tools see it."""

    content: bytes

    @property
    def text(self) -> str:
        return _run("pdftotext", "-", "-", content=self.content).decode()

    @property
    def words(self) -> str:
        """The text without any blank: where lines break is the layout's affair."""
        return "".join(self.text.split())

    @property
    def info(self) -> dict[str, str]:
        lines = _run("pdfinfo", "-", content=self.content).decode().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def pages(self) -> int:
        return int(self.info["Pages"])

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the first page in points."""
        width, _, height = self.info["Page size"].split()[:3]
        return round(float(width)), round(float(height))

    @property
    def fonts(self) -> list[tuple[str, bool, bool]]:
        """Name, embedded, subset of each font."""
        lines = _run("pdffonts", "-", content=self.content).decode().splitlines()[2:]
        return [
            (line.split()[0], line.split()[-5] == "yes", line.split()[-4] == "yes")
            for line in lines
        ]

    @property
    def bitmaps(self) -> int:
        return len(_run("pdfimages", "-list", "-", content=self.content).decode().splitlines()) - 2

    def page(self, number: int = 1, dots: int = 60) -> Image.Image:
        """Return a page as pixels."""
        place = ("-f", str(number), "-l", str(number), "-r", str(dots), "-png", "-")
        return Image.open(io.BytesIO(_run("pdftoppm", *place, content=self.content))).convert("RGB")

    @property
    def streams(self) -> str:
        """What the pages draw."""
        found = []
        for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", self.content, re.DOTALL):
            try:
                # The last byte of the data may look like a part of the line's end.
                found.append(zlib.decompressobj().decompress(match[1]).decode("latin-1"))
            except zlib.error:
                continue
        return "\n".join(found)

    @property
    def colours(self) -> set[str]:
        """The colours that are drawn with, ``#rrggbb``."""
        pattern = r"(?<![\d.])([\d.]+) ([\d.]+) ([\d.]+) (?:rg|RG|scn|SCN)\b"
        return {
            "#" + "".join(f"{round(float(share) * 255):02x}" for share in match.groups())
            for match in re.finditer(pattern, self.streams)
        }


@dataclass(frozen=True)
class Word:
    """A Word file, as XML and as python-docx sees it."""

    content: bytes

    @property
    def document(self) -> WordDocument:
        return docx.Document(io.BytesIO(self.content))

    def part(self, name: str) -> ET.Element:
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            return ET.fromstring(archive.read(name))

    @property
    def names(self) -> list[str]:
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            assert archive.testzip() is None
            return archive.namelist()

    @property
    def body(self) -> ET.Element:
        return self.part("word/document.xml")

    @property
    def text(self) -> str:
        """The words of the body, a line for each paragraph."""
        return self.text_of("word/document.xml")

    @property
    def notes(self) -> str:
        """The words of the footnotes."""
        return self.text_of("word/footnotes.xml") if "word/footnotes.xml" in self.names else ""

    def text_of(self, name: str) -> str:
        lines = []
        for paragraph in self.part(name).iter(f"{WORD}p"):
            parts = [
                {f"{WORD}t": e.text or "", f"{WORD}br": "\n", f"{WORD}tab": "\t"}.get(e.tag, "")
                for e in paragraph.iter()
            ]
            lines.append("".join(parts))
        return "\n".join(lines)

    @property
    def pictures(self) -> list[str]:
        """The descriptions of the pictures in the body."""
        return [e.attrib.get("descr", "") for e in self.body.iter() if e.tag.endswith("}docPr")]

    @property
    def media(self) -> list[bytes]:
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            return [archive.read(name) for name in self.names if name.startswith("word/media/")]


def read_pdf(content: bytes | Path) -> Pdf:
    content = content if isinstance(content, bytes) else content.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
    return Pdf(content)


def read_docx(content: bytes | Path) -> Word:
    word = Word(content if isinstance(content, bytes) else content.read_bytes())
    for name in word.names:
        if name.endswith((".xml", ".rels")):
            word.part(name)
    return word
