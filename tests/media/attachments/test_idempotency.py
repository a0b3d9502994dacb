import asyncio

import pytest

from tests.media.client import ATTACHMENTS, MediaClient, code_of
from tests.media.samples import JFK, TINY_PNG

pytestmark = pytest.mark.asyncio(loop_scope="package")
SPEECH = JFK.read_bytes()


@pytest.mark.proves("media.idempotency.key-format")
@pytest.mark.parametrize("key", ["abcdefghijklmnop", "A_b-9" * 20])
async def test_a_key_of_letters_digits_and_dashes_is_taken(media: MediaClient, key: str) -> None:
    assert (await media.send("a.png", TINY_PNG, key=key)).status_code == 201


@pytest.mark.proves("media.idempotency.key-format")
@pytest.mark.parametrize(
    "key", ["a" * 15, "a" * 101, "has a space in it", "has.a.dot.in.this.one", "密钥" * 10, ""]
)
async def test_any_other_key_is_refused(media: MediaClient, key: str) -> None:
    count = await media.count()
    answer = await media.http.post(
        ATTACHMENTS,
        files={"file": ("a.png", TINY_PNG)},
        headers=[(b"Idempotency-Key", key.encode())],
    )
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_ERROR")
    assert await media.count() == count


@pytest.mark.proves("media.idempotency.same-request", "media.idempotency.same-status")
async def test_the_same_upload_again_gives_the_same_attachment(media: MediaClient) -> None:
    first = await media.send("a.flac", SPEECH, key="the-same-upload-1")
    count, files = await media.count(), media.kept_files()
    second = await media.send("a.flac", SPEECH, key="the-same-upload-1")
    assert second.status_code == first.status_code == 201
    assert second.json() == first.json()
    assert await media.count() == count
    assert media.kept_files() == files


@pytest.mark.proves("media.idempotency.conflict-name")
@pytest.mark.parametrize("name", ["b.flac", "a.wav", "a.exe", "A.flac"])
async def test_another_name_is_a_conflict(media: MediaClient, name: str) -> None:
    key = f"conflict-of-names-{name.replace('.', '-')}"
    assert (await media.send("a.flac", SPEECH, key=key)).status_code == 201
    count = await media.count()
    answer = await media.send(name, SPEECH, key=key)
    assert (answer.status_code, code_of(answer)) == (409, "IDEMPOTENCY_CONFLICT")
    assert await media.count() == count


@pytest.mark.proves("media.idempotency.conflict-content")
async def test_other_content_is_a_conflict(media: MediaClient) -> None:
    key = "conflict-of-content"
    first = (await media.send("a.flac", SPEECH, key=key)).json()
    answer = await media.send("a.flac", SPEECH + b"\0", key=key)
    assert (answer.status_code, code_of(answer)) == (409, "IDEMPOTENCY_CONFLICT")
    content = await media.http.get(f"{ATTACHMENTS}/{first['attachment_id']}/content")
    assert content.content == SPEECH


@pytest.mark.proves("media.idempotency.expired", "media.idempotency.new-key-after-expiry")
async def test_a_deleted_attachment_doesnt_come_back(media: MediaClient) -> None:
    key = "deleted-attachment"
    path = f"{ATTACHMENTS}/{(await media.send('a.flac', SPEECH, key=key)).json()['attachment_id']}"
    assert (await media.http.delete(path)).status_code == 204
    answer = await media.send("a.flac", SPEECH, key=key)
    assert (answer.status_code, code_of(answer)) == (409, "IDEMPOTENCY_EXPIRED")
    assert (await media.http.get(path)).status_code == 404
    assert (await media.send("a.flac", SPEECH, key="a-new-key-after-it")).status_code == 201


@pytest.mark.proves("media.idempotency.concurrent")
async def test_equal_uploads_at_once_make_one_attachment(media: MediaClient) -> None:
    count, files = await media.count(), len(media.kept_files())
    answers = await asyncio.gather(
        *(media.send("a.flac", SPEECH, key="all-at-the-same-time") for _ in range(8))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["attachment_id"] for answer in answers}) == 1
    assert await media.count() == count + 1
    assert len(media.kept_files()) == files + 1


@pytest.mark.proves("media.idempotency.failed-upload-frees-key")
async def test_a_refused_upload_frees_its_key(media: MediaClient) -> None:
    key = "refused-upload-0001"
    assert (await media.send("a.wav", b"text", key=key)).status_code == 400
    assert (await media.send("a.flac", b"", key=key)).status_code == 400
    assert (await media.send("a.flac", SPEECH, key=key)).status_code == 201
