from urllib.parse import unquote

import pytest

from tests.media.attachments.test_uploads import _office
from tests.media.client import ATTACHMENTS, MediaClient, code_of
from tests.media.samples import JFK, TINY_PNG

pytestmark = pytest.mark.asyncio(loop_scope="package")
SPEECH = JFK.read_bytes()


async def _content_path(media: MediaClient, name: str = "a.flac", content: bytes = SPEECH) -> str:
    return f"{ATTACHMENTS}/{(await media.upload(name, content))['attachment_id']}/content"


@pytest.mark.proves("media.attachments.content")
async def test_the_bytes_come_back_unchanged(media: MediaClient) -> None:
    answer = await media.http.get(await _content_path(media))
    assert answer.status_code == 200
    assert answer.content == SPEECH
    assert answer.headers["Content-Type"] == "audio/flac"
    assert answer.headers["Content-Length"] == str(len(SPEECH))
    assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.proves("media.attachments.content-range")
@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=100-199", 100, 199),
        ("bytes=200000-", 200_000, len(SPEECH) - 1),
        ("bytes=-500", len(SPEECH) - 500, len(SPEECH) - 1),
        (f"bytes=10-{10**12}", 10, len(SPEECH) - 1),
    ],
)
async def test_a_part_comes_alone(media: MediaClient, asked: str, first: int, last: int) -> None:
    answer = await media.http.get(await _content_path(media), headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == SPEECH[first : last + 1]
    assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{len(SPEECH)}"


@pytest.mark.proves("media.attachments.content-range-invalid")
async def test_a_part_past_the_end_is_refused(media: MediaClient) -> None:
    answer = await media.http.get(
        await _content_path(media), headers={"Range": f"bytes={len(SPEECH)}-"}
    )
    assert (answer.status_code, code_of(answer)) == (416, "RANGE_NOT_SATISFIABLE")
    assert answer.headers["Content-Range"] == f"bytes */{len(SPEECH)}"


@pytest.mark.parametrize("asked", ["bytes=5-2", "lines=1-2", "nonsense"])
async def test_what_is_no_range_gives_the_whole_file(media: MediaClient, asked: str) -> None:
    answer = await media.http.get(await _content_path(media), headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, SPEECH)


@pytest.mark.proves("media.attachments.content-if-range")
async def test_a_copy_is_compared_by_its_etag(media: MediaClient) -> None:
    path = await _content_path(media)
    etag = (await media.http.get(path)).headers["ETag"]
    unchanged = await media.http.get(path, headers={"If-None-Match": f'"other", {etag}'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["ETag"] == etag
    part = await media.http.get(path, headers={"Range": "bytes=0-9", "If-Range": etag})
    assert (part.status_code, part.content) == (206, SPEECH[:10])
    whole = await media.http.get(path, headers={"Range": "bytes=0-9", "If-Range": '"other"'})
    assert (whole.status_code, whole.content) == (200, SPEECH)
    past = await media.http.get(
        path, headers={"Range": f"bytes={len(SPEECH)}-", "If-Range": '"other"'}
    )
    assert past.status_code == 200


@pytest.mark.proves("media.attachments.content-safe")
@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ('课 "one".flac', SPEECH, "inline"),
        ("a.png", TINY_PNG, "inline"),
        ("a.docx", _office("word/document.xml"), "attachment"),
    ],
)
async def test_content_is_sent_for_what_it_is(
    media: MediaClient, name: str, content: bytes, shown: str
) -> None:
    answer = await media.http.get(await _content_path(media, name, content))
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    kind, _, file_name = answer.headers["Content-Disposition"].partition("; filename*=UTF-8''")
    assert kind.partition(";")[0] == shown
    assert file_name.isascii()
    assert unquote(file_name).replace("%22", '"') == name


@pytest.mark.proves("media.attachments.delete")
async def test_a_deleted_attachment_is_gone(media: MediaClient) -> None:
    attachment_id = (await media.upload("a.flac", SPEECH))["attachment_id"]
    assert any(name.startswith(attachment_id) for name in media.kept_files())
    answer = await media.http.delete(f"{ATTACHMENTS}/{attachment_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in (attachment_id, f"{attachment_id}/content"):
        assert (await media.http.get(f"{ATTACHMENTS}/{path}")).status_code == 404
    assert not any(name.startswith(attachment_id) for name in media.kept_files())


@pytest.mark.proves("media.attachments.not-found")
@pytest.mark.parametrize(
    "attachment_id",
    [
        "attachment_0",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "🎙️",
        "x" * 300,
        "a%2Fb",
        "..%2F..%2Fapp.db",
    ],
)
async def test_an_unknown_attachment_is_not_found(media: MediaClient, attachment_id: str) -> None:
    path = f"{ATTACHMENTS}/{attachment_id}"
    for answer in (
        await media.http.get(path),
        await media.http.get(f"{path}/content"),
        await media.http.delete(path),
    ):
        assert (answer.status_code, code_of(answer)) == (404, "ATTACHMENT_NOT_FOUND")
