"""Of the pictures that a text names, those of the vault are taken in."""

import base64
import os
import socket
import struct
import zlib
from pathlib import Path

import pytest

from sidecar.export.pictures.images import picture_type
from sidecar.kernel.catalogue import localise
from tests.export.conftest import LIMITS, ExportMarkdown
from tests.export.pictures.samples import JPEG, WEBP, chunk, png
from tests.export.reading import read_html


async def shown(
    export: ExportMarkdown, markdown: str, folder: str = ""
) -> tuple[list[str], str, list[str]]:
    """Return the data of the pictures in the document, its words, and the keys of the warnings."""
    result = await export(markdown, folder=folder)
    main = read_html(result.file.path.read_bytes()).one("main")
    images = [image.attributes["src"] for image in main.all("img")]
    return images, main.text.strip(), [warning.key for warning in result.warnings]


@pytest.mark.proves("export.images.vault-only")
async def test_whole_pictures_of_the_vault_are_taken_in(
    export_markdown: ExportMarkdown, tmp_path: Path
) -> None:
    kinds = {
        "a.png": (png(), "image/png"),
        "b.jpg": (JPEG, "image/jpeg"),
        "c.webp": (WEBP, "image/webp"),
    }
    for name, (content, _) in kinds.items():
        (tmp_path / "vault" / name).write_bytes(content)
    images, _, warnings = await shown(
        export_markdown, " ".join(f"![alt]({name})" for name in kinds)
    )
    expected = [
        f"data:{mime_type};base64,{base64.b64encode(content).decode()}"
        for content, mime_type in kinds.values()
    ]
    assert (images, warnings) == (expected, [])


@pytest.mark.proves("export.images.other-format")
@pytest.mark.parametrize(
    "content",
    [
        b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"text",
        b"",
        png()[:-20],
        png()[:-4] + b"1234",
        png().replace(b"IDAT", b"IDAX"),
        JPEG[:-30],
        JPEG[:20],
        WEBP[:-8],
    ],
)
async def test_other_or_broken_pictures_are_not(
    export_markdown: ExportMarkdown, tmp_path: Path, content: bytes
) -> None:
    assert picture_type(content) is None
    (tmp_path / "vault" / "a.png").write_bytes(content)
    result = await shown(export_markdown, "![the words](a.png)")
    assert result == ([], "the words", ["warning.export_image_unreadable"])


@pytest.mark.proves("export.images.remote-refused")
async def test_nothing_is_fetched(
    export_markdown: ExportMarkdown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for address in ("https://example.org/a.png", "HTTP://example.org/a.png", "//example.org/a.png"):
        result = await shown(export_markdown, f"![the words]({address})")
        assert result == ([], "the words", ["warning.export_image_remote"])


@pytest.mark.proves("export.images.outside-vault-refused")
async def test_nothing_outside_the_vault_is_read(
    export_markdown: ExportMarkdown, tmp_path: Path
) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    (tmp_path / "vault" / "link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "vault" / "folder").symlink_to(tmp_path)
    absolute = (tmp_path / "secret.png").as_posix()
    for address in (
        "../secret.png",
        "x/../../secret.png",
        "%2e%2e/secret.png",
        "..%2fsecret.png",
        "..\\\\secret.png",
        absolute,
        f"file://{absolute}",
        "link.png",
        "folder/secret.png",
        "C:/secret.png",
        "~/secret.png",
    ):
        images, words, warnings = await shown(export_markdown, f"![the words]({address})")
        assert (images, words) == ([], "the words"), address
        assert warnings == ["warning.export_image_outside_vault"], address


async def test_what_is_no_file_is_not_opened(
    export_markdown: ExportMarkdown, tmp_path: Path
) -> None:
    (tmp_path / "vault" / "dir.png").mkdir()
    assert (await shown(export_markdown, "![a](dir.png)"))[2] == ["warning.export_image_missing"]
    assert (await shown(export_markdown, "![a](none.png)"))[2] == ["warning.export_image_missing"]
    assert (await shown(export_markdown, "![a](n%00.png)"))[2] == ["warning.export_image_missing"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "vault" / "pipe.png")
        assert (await shown(export_markdown, "![a](pipe.png)"))[2] == [
            "warning.export_image_unreadable"
        ]


async def test_addresses_start_at_the_folder_of_the_text(
    export_markdown: ExportMarkdown, tmp_path: Path
) -> None:
    (tmp_path / "vault" / "课程" / "图").mkdir(parents=True)
    (tmp_path / "vault" / "课程" / "图" / "a b.png").write_bytes(png())
    for address in ("图/a%20b.png", "<图/a b.png>", "../课程/./图/a%20b.png"):
        images, _, warnings = await shown(export_markdown, f"![a]({address})", folder="课程")
        assert (len(images), warnings) == (1, [])


async def test_the_budgets_of_pictures(export_markdown: ExportMarkdown, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    filler = 2_000_000 - len(png()) - 12
    (vault / "most.png").write_bytes(png(extra=b"x" * filler))
    (vault / "more.png").write_bytes(png(extra=b"x" * (filler + 1)))
    assert (vault / "most.png").stat().st_size == 2_000_000
    images, words, warnings = await shown(export_markdown, "![a](most.png) ![the words](more.png)")
    assert (len(images), words) == (1, "the words")
    assert warnings == ["warning.export_image_too_large"]

    (vault / "a.png").write_bytes(png())
    images, words, warnings = await shown(
        export_markdown, "![a](a.png)\n" * 64 + "![the words](a.png)"
    )
    assert (len(images), words) == (LIMITS.resources, "the words")
    assert warnings == ["warning.export_resource_limit"]


async def test_a_warning_names_the_picture(export_markdown: ExportMarkdown) -> None:
    result = await export_markdown("text\n\n![a](pictures/missing.png)")
    (warning,) = localise(result.warnings, "en")
    assert "pictures/missing.png" in warning
    assert "line 3" in warning


@pytest.mark.proves("export.hostile.bounded", "export.images.other-format")
@pytest.mark.parametrize("format_", ["pdf", "docx"])
async def test_pictures_that_would_fill_the_memory_are_not_decoded(
    export_markdown: ExportMarkdown, tmp_path: Path, format_: str
) -> None:
    rows = zlib.compress(b"\0" * (2_501 * 20_000))
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )
    assert len(bomb) < 100_000
    (tmp_path / "vault" / "bomb.png").write_bytes(bomb)
    result = await export_markdown("![the words](bomb.png)", format_=format_)
    assert [warning.key for warning in result.warnings] == ["warning.export_image_unreadable"]
    assert result.file.size < 200_000
