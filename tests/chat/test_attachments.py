"""Documents, recordings and pictures that come with a question."""

import asyncio
import base64
import io
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from docx import Document
from PIL import Image
from pptx import Presentation

from sidecar.chat import attachments as attachments_module
from sidecar.chat.attachments import AttachmentReader
from sidecar.chat.turn_tools import ToolSource
from sidecar.documents.service import ExtractedText
from sidecar.kernel.errors import ProjectError
from tests.app_client import MODELS_DIR
from tests.chat.conftest import Chat, eventually, running_chat
from tests.fakes import anthropic, ollama, openai_chat, openai_responses
from tests.fakes.upstream import Turn, fake_upstream
from tests.media.samples import CALL, JFK, RATE, encoded, samples_of


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_chat(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    """One application with a speech model."""
    folder = tmp_path_factory.mktemp("chat")
    with fake_upstream() as server:
        async with running_chat(folder, server, models_dirs=(MODELS_DIR,)) as running:
            yield running


def word(folder: Path, *paragraphs: str) -> Path:
    document = Document()
    for text in paragraphs:
        document.add_paragraph(text)
    path = folder / "report.docx"
    document.save(str(path))
    return path


def slides(folder: Path, *titles: str) -> Path:
    made = Presentation()
    for title in titles:
        made.slides.add_slide(made.slide_layouts[0]).shapes.title.text = title
    path = folder / "talk.pptx"
    made.save(str(path))
    return path


def picture(folder: Path, size: tuple[int, int] = (40, 30), suffix: str = "png") -> Path:
    path = folder / f"picture.{suffix}"
    Image.new("RGB", size, "teal").save(path)
    return path


def broken(folder: Path) -> Path:
    """A file that looks like a document from outside."""
    path = word(folder, "text")
    content = path.read_bytes()
    middle = content.index(b"word/document.xml") + 40
    path.write_bytes(content[:middle] + b"\0" * 60 + content[middle + 60 :])
    return path


def parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the last message that aren't text."""
    content = body["messages"][-1]["content"]
    return [] if isinstance(content, str) else [part for part in content if part["type"] != "text"]


def text_of(body: dict[str, Any]) -> str:
    """The text of the last message."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


@pytest.mark.proves("chat.attachments.suffixes")
async def test_documents_and_pictures_can_be_uploaded(chat: Chat, tmp_path: Path) -> None:
    files = [word(tmp_path, "x"), slides(tmp_path, "x")]
    files += [picture(tmp_path, suffix=suffix) for suffix in ("png", "jpg", "jpeg", "webp")]
    for path in (*files, JFK):
        assert await chat.attach(path)
    old = tmp_path / "old.ppt"
    name = "PowerPoint Document".encode("utf-16-le")
    old.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600 + name + b"\0" * 600)
    assert await chat.attach(old)


@pytest.mark.proves("chat.attachments.limit", "chat.attachments.unknown")
async def test_eight_attachments_that_exist(chat: Chat, tmp_path: Path) -> None:
    talk = await chat.conversation()
    attachment_id = await chat.attach(word(tmp_path, "the text"))
    for ids, status, code in (
        ([attachment_id] * 9, 422, "VALIDATION_ERROR"),
        ([attachment_id, "attachment_0"], 404, "ATTACHMENT_NOT_FOUND"),
    ):
        answer = await chat.post(conversation_id=talk, attachments=ids)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert await chat.messages(talk) == [] and chat.received == []
    chat.says(Turn(text=["yes"]))
    told = await chat.ask(conversation_id=talk, attachments=[attachment_id] * 8)
    assert told.done["status"] == "completed"
    # Sent eight times, it is read once.
    assert text_of(chat.sent[0]).count("the text") == 1


@pytest.mark.proves(
    "chat.attachments.document-text",
    "chat.attachments.binary-mark-cleared",
    "chat.attachments.context-status",
    "chat.attachments.context-status-shape",
)
async def test_documents_become_text(chat: Chat, tmp_path: Path) -> None:
    ids = [
        await chat.attach(word(tmp_path, "Quanta of 20 ms.", "第二段")),
        await chat.attach(slides(tmp_path, "Round robin")),
    ]
    chat.says(Turn(text=["yes"]))
    told = await chat.ask("what is in it?", attachments=ids)
    sent = text_of(chat.sent[0])
    assert "Quanta of 20 ms." in sent and "第二段" in sent and "Round robin" in sent
    assert "report.docx" in sent and sent.endswith("what is in it?")
    assert parts(chat.sent[0]) == []
    for mark in ("base64", "PK\\u0003", ids[0], ids[1]):
        assert mark not in json.dumps(chat.sent[0])
    statuses = [event.data for event in told.named("ContextStatus")]
    for data in statuses:
        assert set(data) == {"kind", "message", "attachment_id", "current", "total", "truncated"}
        assert data["message"] and data["truncated"] is False
    assert [(one["kind"], one["attachment_id"], one["current"]) for one in statuses] == [
        ("attachment_reading", ids[0], 1),
        ("attachment_ready", ids[0], 1),
        ("attachment_reading", ids[1], 2),
        ("attachment_ready", ids[1], 2),
    ]
    assert {one["total"] for one in statuses} == {2}
    assert told.names[:4] == ["ContextStatus"] * 4 and told.names[-1] == "Done"


@pytest.mark.proves("chat.attachments.document-text", "chat.attachments.context-status")
async def test_recordings_become_text_once(chat: Chat, tmp_path: Path) -> None:
    talk = await chat.conversation()
    clip = tmp_path / "talk.flac"
    clip.write_bytes(encoded(samples_of(JFK)[: 4 * RATE], "flac"))
    attachment_id = await chat.attach(clip)
    fields = {"conversation_id": talk, "attachments": [attachment_id]}
    chat.says(Turn(text=["one"]), Turn(text=["two"]))
    told = await chat.ask("what is said?", **fields)
    assert "fellow Americans" in text_of(chat.sent[0])
    assert parts(chat.sent[0]) == []
    assert "attachment_transcribing" in told.kinds()
    heard = [one.data for one in told.named("ContextStatus") if "transcr" in one.data["kind"]]
    assert heard[-1]["current"] == heard[-1]["total"] == pytest.approx(4.0, abs=0.2)
    again = await chat.ask(None, retry_message_id=told.done["message_id"], **fields)
    assert "attachment_transcribing" not in again.kinds()
    assert text_of(chat.sent[1]) == text_of(chat.sent[0])


@pytest.mark.proves("chat.attachments.stored")
async def test_attachments_are_kept_with_the_messages(tmp_path: Path) -> None:
    with fake_upstream() as upstream:
        async with running_chat(tmp_path, upstream) as chat:
            talk = await chat.conversation()
            ids = [await chat.attach(word(tmp_path, "the text")) for _ in range(2)]
            chat.says(Turn(text=["yes"]))
            await chat.ask(conversation_id=talk, attachments=ids)
        async with running_chat(tmp_path, upstream) as chat:
            question, reply = await chat.messages(talk)
            assert question["attachments"] == reply["attachments"] == ids
            assert question["context_captured"] is False and reply["context_captured"] is True
            # What was read then is there for the next question.
            chat.says(Turn(text=["yes"]))
            await chat.ask("and now?", conversation_id=talk)
            assert "the text" in chat.sent[-1]["messages"][1]["content"]
            assert (await chat.messages(talk))[2]["attachments"] == []


@pytest.mark.proves("chat.attachments.failed", "chat.attachments.failed-form")
async def test_what_cannot_be_read_is_told(chat: Chat, tmp_path: Path) -> None:
    talk = await chat.conversation()
    good = await chat.attach(word(tmp_path, "the text"))
    bad = await chat.attach(broken(tmp_path), "broken.docx")
    told = await chat.ask(conversation_id=talk, attachments=[good, bad])
    assert told.names[-2:] == ["Error", "Done"] and told.done["status"] == "failed"
    assert told.error["code"] == "CHAT_ATTACHMENT_FAILED"
    assert "broken.docx" in told.error["message"]
    assert told.error["details"]["attachment_id"] == bad
    ready = [
        one.data["attachment_id"]
        for one in told.named("ContextStatus")
        if "ready" in one.data["kind"]
    ]
    assert ready == [good]
    assert chat.received == []
    question, reply = await chat.messages(talk)
    assert (reply["status"], reply["error_code"]) == ("failed", "CHAT_ATTACHMENT_FAILED")
    assert ProjectError("CHAT_ATTACHMENT_FAILED").status == 422
    # The question can be asked again without it.
    chat.says(Turn(text=["yes"]))
    fields = {"conversation_id": talk, "retry_message_id": reply["message_id"]}
    assert (await chat.ask(None, attachments=[good], **fields)).done["status"] == "completed"
    assert question["attachments"] == [good, bad]


async def test_a_damaged_old_presentation_is_never_empty_text(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "old.ppt"
    name = "PowerPoint Document".encode("utf-16-le")
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600 + name + b"\0" * 600)
    told = await chat.ask(attachments=[await chat.attach(path)])
    assert told.error["code"] == "CHAT_ATTACHMENT_FAILED" and chat.received == []
    assert ".pptx" in told.error["message"]


async def test_a_recording_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    with fake_upstream() as upstream:
        async with running_chat(tmp_path, upstream) as chat:
            told = await chat.ask(attachments=[await chat.attach(JFK)])
            assert told.error["code"] == "CHAT_ATTACHMENT_FAILED" and chat.received == []
            assert told.error["details"]["reason"] == "LOCAL_MODEL_NOT_INSTALLED"
            reason = ProjectError("LOCAL_MODEL_NOT_INSTALLED").message().rstrip(".")
            assert reason in told.error["message"]


@pytest.mark.proves("chat.attachments.truncation")
async def test_a_long_text_is_cut_and_that_is_told(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments_module, "TEXT_CHARACTERS", 50)
    long = await chat.attach(word(tmp_path, "x" * 40, "y" * 40))
    short = await chat.attach(word(tmp_path, "short"))
    for _ in range(2):
        # The second time from what was kept.
        chat.says(Turn(text=["yes"]))
        told = await chat.ask(attachments=[long, short])
        cut = [one.data for one in told.named("ContextStatus") if one.data["truncated"]]
        assert [(one["kind"], one["attachment_id"]) for one in cut] == [
            ("attachment_truncated", long)
        ]
        assert "x" * 40 in text_of(chat.sent[-1]) and "y" * 40 not in text_of(chat.sent[-1])


@pytest.mark.proves("chat.attachments.cancel")
async def test_leaving_ends_a_transcription(chat: Chat) -> None:
    attachment_id = await chat.attach(CALL)
    async with chat.reading(attachments=[attachment_id]) as stream:
        while stream.told.kinds()[-1:] != ["attachment_transcribing"]:
            await stream.next()
    await eventually(lambda: not chat.app.services.chat._running)

    async def newest() -> bool:
        attempts = (await chat.app.http.get("/api/local-models/diagnostics")).json()["items"]
        return bool(attempts[0]["status"] == "cancelled")

    await eventually(newest)
    assert chat.received == []


@pytest.mark.proves("chat.attachments.cancel")
async def test_leaving_ends_the_reading_of_a_document(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def extract(*_: Any, **__: Any) -> ExtractedText:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    reader: Any = chat.app.services.chat._reader
    monkeypatch.setattr(reader._documents, "extract_text", extract)
    attachment_id = await chat.attach(word(tmp_path, "another text"))
    async with chat.reading(attachments=[attachment_id]) as stream:
        await stream.until("ContextStatus")
        await asyncio.wait_for(begun.wait(), 10)
    await asyncio.wait_for(ended.wait(), 10)
    assert chat.received == []


# -- pictures ------------------------------------------------------------------------------------


@pytest.mark.proves("chat.images.data-uri", "chat.images.size-limit")
async def test_a_model_that_sees_gets_the_picture(chat: Chat, tmp_path: Path) -> None:
    provider_id = await chat.provider("chat", "streaming", "vision")
    large = tmp_path / "large.png"
    noise = random.Random(1).randbytes(1350 * 1350 * 3)
    Image.frombytes("RGB", (1350, 1350), noise).save(large, compress_level=0)
    assert large.stat().st_size > 5 * 1024 * 1024
    ids = [await chat.attach(picture(tmp_path)), await chat.attach(large)]
    chat.says(Turn(text=["teal"]), Turn(text=["yes"]))
    talk = await chat.conversation()
    fields = {"provider_id": provider_id, "conversation_id": talk}
    told = await chat.ask("which colour?", attachments=ids, **fields)
    assert told.done["status"] == "completed"
    shown = parts(chat.sent[0])
    assert [part["type"] for part in shown] == ["image_url"] * 2
    for part in shown:
        head, _, data = part["image_url"]["url"].partition(",")
        assert head in ("data:image/png;base64", "data:image/jpeg;base64")
        content = base64.b64decode(data, validate=True)
        assert len(content) <= 5 * 1024 * 1024
        Image.open(io.BytesIO(content)).load()
    assert text_of(chat.sent[0]) == "which colour?"
    # The picture is still before the model's eyes when the talk goes on.
    await chat.ask("are you sure?", **fields)
    first = chat.sent[1]["messages"][0]["content"]
    assert [part["type"] for part in first].count("image_url") == 2


def own_form(protocol: str, body: dict[str, Any]) -> tuple[str, str]:
    """Media type and data of the one picture in a request, as the protocol writes it."""
    message = body["input" if protocol == "openai_responses" else "messages"][-1]
    if protocol == "ollama":
        assert message["content"] == "which colour?"
        (data,) = message["images"]
        return "", data
    (part,) = [part for part in message["content"] if part["type"] not in ("text", "input_text")]
    if protocol == "anthropic":
        assert part["type"] == "image" and part["source"]["type"] == "base64"
        return part["source"]["media_type"], part["source"]["data"]
    assert part["type"] == ("input_image" if protocol == "openai_responses" else "image_url")
    url = part["image_url"] if protocol == "openai_responses" else part["image_url"]["url"]
    head, _, data = url.partition(";base64,")
    return head.removeprefix("data:"), data


@pytest.mark.proves("chat.images.native-formats")
@pytest.mark.parametrize("fake", [openai_chat, openai_responses, anthropic, ollama])
async def test_each_protocol_has_its_own_form_of_a_picture(
    chat: Chat, tmp_path: Path, fake: Any
) -> None:
    attachment_id = await chat.attach(picture(tmp_path))
    provider_id = await chat.provider(
        "chat", "streaming", "vision", provider_type=fake.PROVIDER_TYPE
    )
    chat.says(fake.stream(Turn(text=["teal"])))
    told = await chat.ask(
        "which colour?", model="a-model", provider_id=provider_id, attachments=[attachment_id]
    )
    assert (told.text, told.done["status"]) == ("teal", "completed")
    body = chat.upstream.received[-1].json
    media_type, data = own_form(fake.PROVIDER_TYPE, body)
    assert media_type in ("", "image/png")
    assert Image.open(io.BytesIO(base64.b64decode(data, validate=True))).size == (40, 30)


@pytest.mark.proves("chat.images.fallback-limit", "chat.images.fallback-registered")
async def test_only_registered_tools_are_taken(chat: Chat, tmp_path: Path) -> None:
    attachment_id = await chat.attach(picture(tmp_path))
    for names in (
        ["a", "b", "c"],
        ["mcp.ocr"],
        ["rag.search"],
        ["rm -rf /"],
        ["https://example.org/ocr"],
        [""],
    ):
        answer = await chat.post(attachments=[attachment_id], image_fallback_tools=names)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "VALIDATION_ERROR")
    assert chat.received == []


async def test_a_model_that_does_not_see_gets_no_picture(chat: Chat, tmp_path: Path) -> None:
    attachment_id = await chat.attach(picture(tmp_path))
    told = await chat.ask(attachments=[attachment_id])
    assert told.error["code"] == "CHAT_ATTACHMENT_FAILED" and chat.received == []
    assert told.error["details"]["reason"] == "MODEL_CAPABILITY_MISMATCH"


class Registered:
    """Tools that put pictures into words."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def source(self, name: str) -> ToolSource | None:
        """By the name's beginning."""
        return (
            "mcp" if name.startswith("mcp.") else "plugin" if name.startswith("plugin.") else None
        )

    async def describe(self, name: str, image: str) -> str:
        """Those that fail say so in their name."""
        self.tried.append(name)
        assert image.startswith("data:image/")
        if "fails" in name:
            raise ProjectError("TOOL_FAILED")
        return f"{name} sees teal"


@pytest.mark.parametrize(
    ("names", "tried", "seen"),
    [
        (["plugin.a", "mcp.b"], ["mcp.b"], "mcp.b sees teal"),
        (["plugin.a", "mcp.fails"], ["mcp.fails", "plugin.a"], "plugin.a sees teal"),
        (["plugin.fails", "mcp.fails"], ["mcp.fails", "plugin.fails"], None),
    ],
)
async def test_tools_stand_in_for_eyes(
    chat: Chat,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    tried: list[str],
    seen: str | None,
) -> None:
    tools = Registered()
    reader: AttachmentReader = chat.app.services.chat._reader
    monkeypatch.setattr(reader, "_image_tools", tools)
    attachment_id = await chat.attach(picture(tmp_path))
    chat.says(Turn(text=["yes"]))
    told = await chat.ask(attachments=[attachment_id], image_fallback_tools=names)
    assert tools.tried == tried
    if seen is None:
        assert told.error["code"] == "CHAT_ATTACHMENT_FAILED" and chat.received == []
    else:
        assert seen in text_of(chat.sent[0]) and parts(chat.sent[0]) == []


@pytest.mark.proves(
    "media.attachments.delete-referenced", "media.attachments.cleanup-keeps-references"
)
async def test_an_attachment_of_a_chat_is_in_use(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = await chat.conversation()
    attachment_id = await chat.attach(word(tmp_path, "the text"))
    chat.says(Turn(text=["yes"]))
    await chat.ask(conversation_id=talk, attachments=[attachment_id])
    path = f"/api/media/attachments/{attachment_id}"
    answer = await chat.app.http.delete(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "ATTACHMENT_IN_USE")
    references = answer.json()["error"]["details"]["references"]
    assert references == [
        {"type": "chat_message", "id": message["message_id"]}
        for message in await chat.messages(talk)
    ]
    # Old enough to go, were it not for the messages.
    monkeypatch.setattr(chat.app.services.media.attachments, "_retention_seconds", -86_400)
    other = await chat.attach(word(tmp_path, "the other text"))
    assert await chat.app.services.media.attachments.clean_up() >= 1
    assert (await chat.app.http.get(f"/api/media/attachments/{other}")).status_code == 404
    assert (await chat.app.http.get(path)).status_code == 200
    await chat.app.http.delete(f"/api/chat/conversations/{talk}")
    assert (await chat.app.http.delete(path)).status_code == 204


async def test_what_was_read_goes_with_the_attachment(chat: Chat, tmp_path: Path) -> None:
    talk = await chat.conversation()
    attachment_id = await chat.attach(word(tmp_path, "the text"))
    chat.says(Turn(text=["yes"]), Turn(text=["no"]))
    await chat.ask(conversation_id=talk, attachments=[attachment_id])
    path = f"/api/media/attachments/{attachment_id}"
    assert (await chat.app.http.delete(path, params={"force": "true"})).status_code == 204
    await chat.ask("and now?", conversation_id=talk)
    assert "the text" not in json.dumps(chat.sent[1])
    assert (await chat.messages(talk))[0]["attachments"] == [attachment_id]
