import asyncio
import hashlib
import wave
import zipfile
from io import BytesIO
from typing import Any

import httpx
import pytest

from tests.media.client import ATTACHMENTS, MediaClient, code_of, eventually
from tests.media.samples import FORMATS, JFK, RATE, TINY_PNG, encoded, samples_of

pytestmark = pytest.mark.asyncio(loop_scope="package")
LIMIT = 26_214_400


def recording_of_size(size: int) -> bytes:
    """Return a recording of exactly *size* bytes."""
    target = BytesIO()
    with wave.open(target, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(bytes(size - 44 & ~1))
    return target.getvalue() + bytes(size & 1)


def _office(part: str) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(part, "<x/>")
    return target.getvalue()


@pytest.mark.proves(
    "media.attachments.upload",
    "media.attachments.model",
    "media.attachments.get",
    "media.idempotency.key-optional",
)
async def test_an_upload_gives_the_attachment(media: MediaClient) -> None:
    content = JFK.read_bytes()
    answer = await media.send("en-jfk.flac", content)
    assert answer.status_code == 201
    attachment = answer.json()
    assert set(attachment) == {
        "attachment_id", "file_name", "mime_type", "kind", "size", "sha256", "created_at",
    }  # fmt: skip
    assert all(value is not None for value in attachment.values())
    assert attachment["file_name"] == "en-jfk.flac"
    assert (attachment["kind"], attachment["mime_type"]) == ("audio", "audio/flac")
    assert attachment["size"] == len(content)
    assert attachment["sha256"] == hashlib.sha256(content).hexdigest()
    again = await media.http.get(f"{ATTACHMENTS}/{attachment['attachment_id']}")
    assert (again.status_code, again.json()) == (200, attachment)


@pytest.mark.proves("media.attachments.list")
async def test_the_list_is_newest_first(media: MediaClient) -> None:
    made = [(await media.upload("a.png", TINY_PNG))["attachment_id"] for _ in range(3)]
    answer = await media.http.get(ATTACHMENTS, params={"limit": 3, "kind": "image"})
    assert [item["attachment_id"] for item in answer.json()["items"]] == made[::-1]
    assert answer.json()["page"]["limit"] == 3
    assert code_of(await media.http.get(ATTACHMENTS, params={"kind": "song"})) == "VALIDATION_ERROR"


@pytest.mark.proves("media.attachments.upload-missing-file")
@pytest.mark.parametrize(
    "request_options",
    [
        {"content": b"no multipart"},
        {"json": {"file": "a.wav"}},
        {"data": {"file": "a.wav"}},
        {"files": {"other": ("a.png", TINY_PNG)}},
        {"files": {"file": (None, b"no file name")}},
        {
            "content": b"--x\r\nbroken",
            "headers": {"Content-Type": "multipart/form-data; boundary=x"},
        },
        {"content": b"", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
        {"content": b"", "headers": {"Content-Type": "multipart/form-data"}},
    ],
)
async def test_a_body_without_a_file_is_refused(
    media: MediaClient, request_options: dict[str, Any]
) -> None:
    before = media.kept_files()
    answer = await media.http.post(ATTACHMENTS, **request_options)
    assert answer.status_code == 422
    assert code_of(answer) == "VALIDATION_ERROR"
    assert answer.json()["error"]["details"]["errors"]
    assert media.kept_files() == before


@pytest.mark.proves("media.attachments.upload-empty")
async def test_an_empty_file_is_refused(media: MediaClient) -> None:
    before = media.kept_files()
    answer = await media.send("empty.wav", b"")
    assert (answer.status_code, code_of(answer)) == (400, "ATTACHMENT_EMPTY")
    assert media.kept_files() == before


@pytest.mark.proves("media.attachments.size-limit-inclusive")
async def test_a_file_of_the_limit_is_taken(media: MediaClient) -> None:
    attachment = await media.upload("long.wav", recording_of_size(LIMIT))
    assert attachment["size"] == LIMIT


@pytest.mark.proves("media.attachments.size-limit", "media.idempotency.limit-applies")
@pytest.mark.parametrize("excess", [1, 100_000, 1_048_576])
async def test_a_file_over_the_limit_is_refused(media: MediaClient, excess: int) -> None:
    before, count = media.kept_files(), await media.count()
    answer = await media.send(
        "long.wav", recording_of_size(LIMIT + excess), key=f"over-the-limit-{excess}"
    )
    assert (answer.status_code, code_of(answer)) == (413, "ATTACHMENT_TOO_LARGE")
    assert media.kept_files() == before
    assert await media.count() == count


@pytest.mark.proves("media.attachments.size-limit")
async def test_a_chunked_body_is_counted_too(media: MediaClient) -> None:
    boundary = "cut"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'

    async def body() -> Any:
        yield head.encode()
        for _ in range(27):
            yield bytes(1_048_576)

    before = media.kept_files()
    answer = await media.http.post(
        ATTACHMENTS,
        content=body(),
        headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
    )
    assert (answer.status_code, code_of(answer)) == (413, "ATTACHMENT_TOO_LARGE")
    assert media.kept_files() == before


@pytest.mark.proves(
    "media.attachments.upload-interrupted", "media.idempotency.failed-upload-frees-key"
)
async def test_a_broken_upload_leaves_nothing(media: MediaClient) -> None:
    before, count = media.kept_files(), await media.count()
    key = "broken-upload-0001"
    port = httpx.URL(media.app.base_url).port
    head = (
        f"POST {ATTACHMENTS} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {media.app.session_token}\r\nIdempotency-Key: {key}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5000000\r\n\r\n"
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    )
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + bytes(3_000_000))
    await writer.drain()
    await eventually(lambda: media.kept_files() != before)
    writer.transport.abort()
    await eventually(lambda: media.kept_files() == before)
    assert await media.count() == count
    answer = await media.send("a.flac", JFK.read_bytes(), key=key)
    assert answer.status_code == 201


@pytest.mark.proves("media.attachments.audio-types", "media.attachments.suffix-case")
@pytest.mark.parametrize("suffix", [*sorted(FORMATS), "M4A", "Wav"])
async def test_every_recording_type_is_taken(media: MediaClient, suffix: str) -> None:
    content = encoded(samples_of(JFK)[: 2 * RATE], suffix.lower())
    attachment = await media.upload(f"talk.{suffix}", content)
    assert attachment["kind"] == "audio"
    assert attachment["mime_type"].startswith("audio/")


@pytest.mark.proves("media.attachments.audio-types")
@pytest.mark.parametrize("suffix", ["mp4", "webm"])
async def test_a_video_is_a_video(media: MediaClient, suffix: str) -> None:
    content = encoded(samples_of(JFK)[:RATE], suffix, pictures=True)
    attachment = await media.upload(f"talk.{suffix}", content)
    assert (attachment["kind"], attachment["mime_type"]) == ("video", f"video/{suffix}")


@pytest.mark.proves("media.attachments.chat-types", "media.attachments.suffix-case")
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.docx", _office("word/document.xml"), "document"),
        ("a.PPTX", _office("ppt/presentation.xml"), "document"),
        (
            "a.ppt",
            bytes.fromhex("d0cf11e0a1b11ae1") + "PowerPoint Document".encode("utf-16-le"),
            "document",
        ),
        ("a.png", TINY_PNG, "image"),
        ("a.JPG", b"\xff\xd8\xff\xe0" + bytes(20), "image"),
        ("a.jpeg", b"\xff\xd8\xff\xe0" + bytes(20), "image"),
        ("a.webp", b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20), "image"),
    ],
)
async def test_documents_and_images_are_taken(
    media: MediaClient, name: str, content: bytes, kind: str
) -> None:
    assert (await media.upload(name, content))["kind"] == kind


@pytest.mark.proves("media.attachments.type-refused")
@pytest.mark.parametrize(
    "name", ["a.exe", "a.html", "a.svg", "a", ".wav", "a.wav.exe", "a.", "a.pdf"]
)
async def test_other_types_are_refused(media: MediaClient, name: str) -> None:
    before, count = media.kept_files(), await media.count()
    answer = await media.send(name, JFK.read_bytes())
    assert (answer.status_code, code_of(answer)) == (400, "UNSUPPORTED_ATTACHMENT_TYPE")
    assert media.kept_files() == before
    assert await media.count() == count


@pytest.mark.proves("media.attachments.audio-content-mismatch")
@pytest.mark.parametrize(
    "content",
    [b"This is a text. " * 200, TINY_PNG, b"RIFF", bytes(5000), _office("word/document.xml")],
)
@pytest.mark.parametrize("suffix", ["wav", "mp3", "m4a", "webm"])
async def test_content_that_is_no_recording_is_refused(
    media: MediaClient, content: bytes, suffix: str
) -> None:
    before = media.kept_files()
    answer = await media.send(f"talk.{suffix}", content)
    assert (answer.status_code, code_of(answer)) == (400, "UNSUPPORTED_AUDIO_FORMAT")
    assert media.kept_files() == before


@pytest.mark.proves("media.attachments.other-content-mismatch")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.docx", TINY_PNG),
        ("a.png", b"text"),
        ("a.pptx", _office("word/document.xml")),
        ("a.webp", JFK.read_bytes()),
    ],
)
async def test_content_of_another_kind_is_refused(
    media: MediaClient, name: str, content: bytes
) -> None:
    answer = await media.send(name, content)
    assert (answer.status_code, code_of(answer)) == (400, "UNSUPPORTED_ATTACHMENT_TYPE")


@pytest.mark.proves("media.attachments.file-name-safe")
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../x.flac", "x.flac"),
        ("C:\\x.flac", "x.flac"),
        ("/etc/课堂 录音.flac", "课堂 录音.flac"),
        ("a\tb.flac", "ab.flac"),
    ],
)
async def test_a_file_name_never_becomes_a_path(media: MediaClient, sent: str, kept: str) -> None:
    root = media.app.data_dir
    before = {path for path in root.parent.rglob("*") if path.parent != root / "attachments"}
    # Written by hand: client libraries clean the name themselves.
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{sent}"\r\n\r\n'
    answer = await media.http.post(
        ATTACHMENTS,
        content=head.encode() + JFK.read_bytes() + b"\r\n--x--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    assert answer.status_code == 201
    assert answer.json()["file_name"] == kept
    assert {
        path for path in root.parent.rglob("*") if path.parent != root / "attachments"
    } == before


@pytest.mark.proves("media.attachments.same-content-no-key")
async def test_the_same_file_twice_makes_two_attachments(media: MediaClient) -> None:
    first, second = await media.upload("a.png", TINY_PNG), await media.upload("a.png", TINY_PNG)
    assert first["attachment_id"] != second["attachment_id"]
