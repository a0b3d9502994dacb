"""A question to the notes of a folder: what the search finds, and what a model makes of it."""

import os
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from host_bridge.launcher import Sidecar
from sidecar.demo.progress import StepBar, timed_step
from sidecar.demo.walk import DemoFailed, Folders, launch_own
from sidecar.kernel.catalogue import text

HITS: Final = 6
SCAN_SECONDS: Final = 120.0
BASE_URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
_KEY_HOSTS: Final = ("api.openai.com",)
_CREDENTIAL: Final = "provider.demo"


@dataclass(slots=True)
class AskReport:
    """What was found and answered."""

    question: str
    vault: str
    hits: list[dict[str, Any]] = field(default_factory=list)
    base_url: str | None = None
    model: str | None = None
    searches: list[str] = field(default_factory=list)
    answer: str | None = None
    sources: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int] | None = None
    error: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """An OpenAI-compatible server that is to answer."""

    base_url: str
    model: str | None
    key: str | None
    calls_tools: bool = True

    @classmethod
    def named(
        cls, base_url: str | None, model: str | None, *, calls_tools: bool = True
    ) -> "ModelServer | None":
        """Return the server of the command line or the environment, None if neither names one.

        The environment's key goes to the environment's server and to the vendor that it is for, and
        to no other.
        """
        from_environment = os.environ.get(BASE_URL_VARIABLE)
        chosen = base_url or from_environment
        if not chosen:
            return None
        meant = chosen == from_environment or urlsplit(chosen).hostname in _KEY_HOSTS
        return cls(chosen, model, os.environ.get(KEY_VARIABLE) if meant else None, calls_tools)


class Audience:
    """Is told what happens while it happens; this one doesn't care."""

    def found(self, report: AskReport) -> None:
        """The search is over."""

    def begins(self, report: AskReport, *, with_tools: bool) -> None:
        """A model is asked."""

    def says(self, piece: str) -> None:
        """The model has said this."""


class Asking:
    """One question; fills its report as it goes."""

    def __init__(
        self,
        question: str,
        folders: Folders,
        vault: Path,
        models_dirs: tuple[Path, ...],
        server: ModelServer | None,
        audience: "Audience",
    ) -> None:
        self._folders = folders
        self._models_dirs = models_dirs
        self._vault = vault
        self._server = server
        self._audience = audience
        self.report = AskReport(question, str(vault))

    def _step(self, name: str, **params: object) -> AbstractContextManager[StepBar]:
        return timed_step(self.report.seconds, name, **params)

    def run(self, locale: str) -> AskReport:
        """Search and ask. Raises :class:`DemoFailed` or an error of the host's side."""
        with self._step("launch"):
            sidecar = launch_own(self._folders, self._models_dirs, locale)
        try:
            sidecar.host_post("/host/vault", json={"path": str(self._vault)}).check()
            self._wait_for_scan(sidecar)
            self._search(sidecar)
            self._audience.found(self.report)
            if self._server is not None:
                self._ask(sidecar, self._server)
        finally:
            sidecar.stop()
        return self.report

    def _wait_for_scan(self, sidecar: Sidecar) -> None:
        deadline = time.monotonic() + SCAN_SECONDS
        with self._step("read_notes"):
            while sidecar.get("/api/vault").check().json()["state"] == "scanning":
                if time.monotonic() > deadline:
                    raise DemoFailed(text("demo.scan_too_long"))
                time.sleep(0.05)

    def _search(self, sidecar: Sidecar) -> None:
        request = {"query": self.report.question[:1000], "limit": HITS}
        with self._step("search", phrase=self.report.question):
            answer = sidecar.post("/api/search", json={**request, "mode": "hybrid"})
            if answer.status != 200:
                # No model to search by meaning.
                answer = sidecar.post("/api/search", json={**request, "mode": "fts"}).check()
        self.report.hits = answer.json()["hits"]

    # -- the model -----------------------------------------------------------------------------

    def _ask(self, sidecar: Sidecar, server: ModelServer) -> None:
        self.report.base_url = server.base_url
        credential = _CREDENTIAL if server.key else None
        if server.key:
            sidecar.put(f"/api/credentials/{_CREDENTIAL}", json={"secret": server.key}).check()
        provider = {
            "name": urlsplit(server.base_url).hostname or "server",
            "provider_type": "openai_compatible",
            "base_url": server.base_url,
            "credential_id": credential,
            "capabilities": ["chat", "streaming", "tool_calling"],
        }
        provider_id = sidecar.post("/api/providers", json=provider).check().json()["provider_id"]
        path = f"/api/providers/{provider_id}"
        try:
            self.report.model = server.model or _first_model(sidecar, path)
            if server.calls_tools:
                self._chat(sidecar, provider_id, use_rag=True)
            refused = self.report.error and self.report.answer is None and self.report.hits
            if refused or not server.calls_tools:
                # Many small models take no tools: they get what the search found.
                self.report.error = None
                sidecar.patch(path, json={"capabilities": ["chat", "streaming"]}).check()
                self._chat(sidecar, provider_id, use_rag=False, workspace_context=self._found())
        finally:
            sidecar.delete(path)
            if credential:
                sidecar.delete(f"/api/credentials/{_CREDENTIAL}")

    def _found(self) -> dict[str, str]:
        passages = [f"{hit['file_path']}: {hit['snippet']}" for hit in self.report.hits]
        return {"file_path": text("demo.found"), "content": "\n\n".join(passages)}

    def _chat(self, sidecar: Sidecar, provider_id: str, **fields: Any) -> None:
        messages = [{"role": "user", "content": self.report.question}]
        request = {"provider_id": provider_id, "model": self.report.model, "messages": messages}
        self._audience.begins(self.report, with_tools=fields["use_rag"])
        started = time.perf_counter()
        citations: dict[int, dict[str, Any]] = {}
        for event in sidecar.answer("/api/chat", json={**request, **fields}):
            data = event.json()["data"]
            if event.event == "TextDelta":
                self.report.answer = (self.report.answer or "") + data["text"]
                self._audience.says(data["text"])
            elif event.event == "ToolCallEnd" and data["status"] == "completed":
                self.report.searches.append(data["arguments"]["query"])
            elif event.event == "Citation":
                citations[data["number"]] = data
            elif event.event == "Usage":
                self.report.usage = data
            elif event.event == "Error":
                self.report.error = data["message"]
        answer = self.report.answer or ""
        self.report.sources = [
            citation for number, citation in citations.items() if f"[{number}]" in answer
        ]
        self.report.seconds["ask"] = round(time.perf_counter() - started, 3)


def _first_model(sidecar: Sidecar, provider: str) -> str:
    """Return the first chat model that a server lists."""
    answer = sidecar.get(f"{provider}/models")
    if answer.status != 200:
        raise DemoFailed(answer.json()["error"]["message"])
    for item in answer.json()["items"]:
        if "chat" in item["capabilities"]:
            model: str = item["model"]
            return model
    raise DemoFailed(text("demo.no_chat_model"))
