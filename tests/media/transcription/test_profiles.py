"""Profiles of the settings file, on the real model: terms of the notes, scripts, batches, devices."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from sidecar.media.transcription.profiles import SETTINGS_FILE
from tests.app_client import running_app
from tests.media.client import TRANSCRIPTIONS, MediaClient, code_of
from tests.media.error_rate import character_error_rate
from tests.media.samples import JFK, LECTURE, MEETING, RATE, encoded, samples_of, silence

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROFILES: dict[str, dict[str, Any]] = {
    "plain": {"vault_terms": False},
    "traditional": {"vault_terms": False, "script": "traditional", "beam_size": 1},
    "batched": {"batch_size": 4, "beam_size": 1},
    "gpu": {"device": "cuda", "beam_size": 1},
    "no-such-model": {"model": "whisper-enormous"},
    "named": {"model": "whisper-base", "beam_size": 1, "initial_prompt": "JFK speaks."},
}
# The lecture from its third of a minute on, where its terms are.
SAID = (
    "死锁的四个必要条件是：互斥，占有并且等待，不可抢占，循环等待。只要破坏其中任何一个条件，死锁就不会发生。"
    "银行家算法在分配资源之前先检查系统是否处于安全状态。下一节课我们讲内存管理和页面置换算法。"
)
NOTES = {
    "操作系统": "# 死锁的四个必要条件\n\n互斥。\n\n## 占有并等待\n\n## 不可抢占\n\n# 银行家算法\n\n# 页面置换算法\n",
    "红烧肉": "# 五花肉\n\n焯水。\n",
    "线性代数": "# 特征值\n\n# 特征向量\n",
    "巴黎旅行": "# 卢浮宫\n\n# 埃菲尔铁塔\n",
    "会计准则": "# 借贷平衡\n\n# 现金流量表\n",
}


def _lecture() -> bytes:
    return encoded(samples_of(LECTURE)[int(23.0 * RATE) : int(43.2 * RATE)], "flac")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MediaClient]:
    """A client of an application that has profiles, and a vault with notes."""
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "data").mkdir()
    (folder / "data" / SETTINGS_FILE).write_text(json.dumps({"profiles": PROFILES}), "utf-8")
    (folder / "vault").mkdir()
    for title, body in NOTES.items():
        (folder / "vault" / f"{title}.md").write_text(f"---\ntags: [课程]\n---\n{body}", "utf-8")
    async with running_app(folder) as app:
        await app.services.vault.scanned()
        yield MediaClient(app)


async def test_terms_of_the_notes_are_heard(media: MediaClient) -> None:
    attachment = await media.upload("lecture.flac", _lecture())
    texts = {}
    for profile in ("plain", "default"):
        started = await media.start(
            attachment["attachment_id"], language="zh", profile_id=profile, word_timestamps=True
        )
        job = await media.finished(started["job_id"])
        texts[profile] = job["text"]
        for segment in job["segments"]:
            words = "".join(word["text"] for word in segment["words"])
            assert words == segment["text"].replace(" ", "")
    rates = {name: character_error_rate(SAID, text) for name, text in texts.items()}
    assert rates["default"] < rates["plain"] * 0.6, (rates, texts)
    for term in ("死锁", "银行家算法", "页面置换算法"):
        assert term in texts["default"]
        assert term not in texts["plain"]


async def test_a_recording_about_something_else_is_heard_as_before(media: MediaClient) -> None:
    attachment = await media.upload("talk.flac", MEETING)
    texts = []
    for profile in ("plain", "default"):
        started = await media.start(attachment["attachment_id"], profile_id=profile)
        texts.append((await media.finished(started["job_id"]))["text"])
    assert texts[0] == texts[1]


async def test_mandarin_comes_in_traditional_characters_if_the_profile_asks(
    media: MediaClient,
) -> None:
    content = encoded(samples_of(LECTURE)[: 10 * RATE], "flac")
    job = await media.transcribed(content, language="zh", profile_id="traditional")
    assert job["profile_id"] == "traditional"
    assert set("們講進程調標") & set(job["text"])
    assert not set("们讲进标") & set(job["text"])


async def test_windows_side_by_side_give_the_same_words(media: MediaClient) -> None:
    import numpy as np

    speech = np.concatenate([samples_of(JFK), silence(3)] * 4)
    job = await media.transcribed(
        encoded(speech, "flac"), language="en", profile_id="batched", word_timestamps=True
    )
    assert job["text"].lower().count("ask not what your country can do for you") == 4
    starts = [segment["start_time"] for segment in job["segments"]]
    assert starts == sorted(starts)
    assert 42 <= job["segments"][-1]["end_time"] <= 54
    assert all(segment["words"] for segment in job["segments"])


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")  # noqa: PTH110
async def test_without_a_gpu_the_processor_does_it_and_diagnostics_say_so(
    media: MediaClient,
) -> None:
    content = encoded(samples_of(JFK)[: 3 * RATE], "flac")
    job = await media.transcribed(content, language="en", profile_id="gpu")
    assert (job["status"], job["source"]) == ("completed", "local")
    names = [event.name async for event in media.events(job["job_id"])]
    assert names.count("TranscriptionStarted") == 1
    records = (await media.http.get("/api/local-models/diagnostics")).json()["items"]
    call = next(record for record in records if record["kind"] == "call")
    assert (call["requested_device"], call["actual_device"]) == ("cuda", "cpu")
    fallbacks = [record for record in records if record["kind"] == "fallback"]
    assert {record["fallback_reason"] for record in fallbacks} == {"CUDA_UNAVAILABLE"}


async def test_a_profile_names_its_model(media: MediaClient) -> None:
    content = encoded(samples_of(JFK)[: 4 * RATE], "flac")
    job = await media.transcribed(content, language="en", profile_id="named")
    assert job["status"] == "completed"
    job = await media.transcribed(content, language="en", profile_id="no-such-model")
    assert (job["status"], job["error_code"]) == ("failed", "LOCAL_MODEL_NOT_INSTALLED")


async def test_the_file_is_read_again_when_it_was_changed(media: MediaClient) -> None:
    path = media.app.data_dir / SETTINGS_FILE
    before = await asyncio.to_thread(path.read_text, "utf-8")
    attachment = await media.upload("a.flac", encoded(samples_of(JFK)[:RATE], "flac"))
    request = {"attachment_id": attachment["attachment_id"], "profile_id": "late"}
    assert code_of(await media.http.post(TRANSCRIPTIONS, json=request)) == (
        "TRANSCRIPTION_PROFILE_NOT_FOUND"
    )
    late = json.dumps({"profiles": {**PROFILES, "late": {"beam_size": 1}}})
    await asyncio.to_thread(path.write_text, late, "utf-8")
    assert (await media.http.post(TRANSCRIPTIONS, json=request)).status_code == 202
    for broken in (
        '{"profiles": {"late": {"model_path": "/x"}}}',
        "{",
        '{"profiles": {"../x": {}}}',
    ):
        # A file that is wrong changes nothing.
        await asyncio.to_thread(path.write_text, broken, "utf-8")
        assert (await media.http.post(TRANSCRIPTIONS, json=request)).status_code == 202
    await asyncio.to_thread(path.write_text, before, "utf-8")
    assert (await media.http.post(TRANSCRIPTIONS, json=request)).status_code == 404
