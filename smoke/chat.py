"""A chat that looks something up, with a Word document attached; a small server here plays the model."""

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from host_bridge.launcher import Sidecar
from smoke.recording_to_document import upload, wait_for_job
from smoke.report import require

_MARK = "zanzibar"
_ATTACHED = "quokka"


class _Model(BaseHTTPRequestHandler):
    """Searches in its first answer and cites in its second."""

    protocol_version = "HTTP/1.1"
    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        """Answer with a stream."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        if len(self.asked) == 1:
            name = body["tools"][0]["function"]["name"]
            function = {"name": name, "arguments": json.dumps({"query": _MARK})}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            chunks = [
                _chunk({"content": "查一下。"}),
                _chunk({"tool_calls": [call]}),
                _chunk({}, "tool_calls"),
            ]
        else:
            chunks = [_chunk({"content": "找到了 [1]。"}), _chunk({}, "stop")]
        frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        content = "".join([*frames, "data: [DONE]\n\n"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@contextmanager
def _model_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []
    handler = type("Model", (_Model,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()


def chat(sidecar: Sidecar) -> str:
    """Ask, and return what was told."""
    note = {"title": "Chat", "content": f"# 笔记\n\nThe word is {_MARK}.\n"}
    sidecar.post("/api/notes", json=note).check(201)
    attachment_id = _attach_document(sidecar)
    with _model_server() as (url, asked):
        provider = {
            "name": "Model",
            "provider_type": "openai_compatible",
            "base_url": url,
            "capabilities": ["chat", "streaming", "tool_calling"],
        }
        provider_id = sidecar.post("/api/providers", json=provider).check(201).json()["provider_id"]
        talk = sidecar.post("/api/chat/conversations", json={}).check(201).json()
        request = {
            "provider_id": provider_id,
            "model": "m",
            "conversation_id": talk["conversation_id"],
            "messages": [{"role": "user", "content": "词是什么？"}],
            "attachments": [attachment_id],
            "use_rag": True,
        }
        events = list(sidecar.answer("/api/chat", json=request))
    names = [event.event for event in events]
    require(names[-1] == "Done", f"events {names}")
    require(events[-1].json()["data"]["status"] == "completed", f"ended {events[-1].data}")
    require(len(asked) == 2, f"{len(asked)} calls of the model")
    sent = json.dumps(asked[-1], ensure_ascii=False)
    require(_ATTACHED in sent, "the attached document's text was not sent")
    require(f"The word is {_MARK}." in sent, "what the search found was not sent")
    path = f"/api/chat/conversations/{talk['conversation_id']}/messages"
    reply = sidecar.get(path).check(200).json()["items"][-1]
    require(reply["content"] == "查一下。\n\n找到了 [1]。", f"stored {reply['content']!r}")
    require(reply["used_citations"] == [1], f"cited {reply['used_citations']}")
    return f"{len(events)} events, cites {reply['citations'][0]['file_path']}"


def _attach_document(sidecar: Sidecar) -> str:
    source = {"type": "markdown", "markdown": f"# 附件\n\nThe animal is a {_ATTACHED}.\n"}
    answer = sidecar.post("/api/exports", json={"source": source, "format": "docx"})
    path = f"/api/exports/{answer.check(202).json()['job_id']}"
    job = wait_for_job(sidecar, path)
    require(job["status"] == "completed", f"docx: {job['status']}: {job['error_code']}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "attached.docx")
        sidecar.download(f"{path}/file", file)
        return upload(sidecar, file)
