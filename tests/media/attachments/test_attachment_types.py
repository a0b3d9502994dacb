import zipfile
from pathlib import Path

import pytest

from sidecar.media.attachments.types import document_or_image_type, recording_type
from tests.media.samples import TINY_PNG


def _archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "<x/>")
    return path


def test_office_files_are_known_by_their_parts(tmp_path: Path) -> None:
    docx = _archive(tmp_path / "a", "[Content_Types].xml", "word/document.xml")
    pptx = _archive(tmp_path / "b", "[Content_Types].xml", "ppt/presentation.xml")
    plain = _archive(tmp_path / "c", "word/document.xml")
    assert document_or_image_type(docx, ".docx")
    assert document_or_image_type(pptx, ".pptx")
    for path, suffix in ((docx, ".pptx"), (pptx, ".docx"), (plain, ".docx"), (docx, ".ppt")):
        assert document_or_image_type(path, suffix) is None


def test_an_old_presentation_is_known_by_its_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.ppt"
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(504)
    path.write_bytes(head + "PowerPoint Document".encode("utf-16-le") + bytes(512))
    assert document_or_image_type(path, ".ppt")
    path.write_bytes(head + "WordDocument".encode("utf-16-le"))
    assert document_or_image_type(path, ".ppt") is None


@pytest.mark.parametrize(
    ("content", "mime_type"),
    [
        (TINY_PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
        (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20), "image/webp"),
    ],
)
def test_the_content_decides_which_image_type_it_is(
    tmp_path: Path, content: bytes, mime_type: str
) -> None:
    path = tmp_path / "picture"
    path.write_bytes(content)
    found = document_or_image_type(path, ".jpg")
    assert found is not None
    assert (found.kind, found.mime_type) == ("image", mime_type)


@pytest.mark.parametrize("content", [b"", b"plain text", b"RIFF\0\0\0\0WAVEfmt ", b"<svg/>"])
def test_other_content_is_no_image(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(content)
    assert document_or_image_type(path, ".png") is None


def test_pictures_make_a_video() -> None:
    assert recording_type("mov,mp4,m4a,3gp,3g2,mj2", has_pictures=False).kind == "audio"  # type: ignore[union-attr]
    assert recording_type("mov,mp4,m4a,3gp,3g2,mj2", has_pictures=True).mime_type == "video/mp4"  # type: ignore[union-attr]
    assert recording_type("png_pipe", has_pictures=True) is None
