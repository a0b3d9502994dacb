"""Runs one set of cases against any adapter and reports what became of each.

    .venv/bin/python -m tests.providers.conformance --provider-type openai_compatible \
        --base-url https://… --model … --key-variable VENDOR_KEY

runs the cases against a real provider, whose key is read from an environment variable; the tests never do that.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from sidecar.providers.protocols.adapters import ADAPTERS
from sidecar.providers.schemas.model_call import (
    ChatTarget,
    Message,
    ModelEvent,
    ModelRequest,
    ToolDefinition,
)
from sidecar.providers.schemas.wire import ProviderCreateRequest
from sidecar.providers.service import ProviderService
from tests.fakes.upstream import Call, Turn
from tests.providers.bench import bench_in, calls, joined, names

CASES: Final = Path(__file__).parent / "cases" / "cases.yaml"
FIXTURES: Final = CASES.with_name("fixtures.yaml")

_KEYS: Final = {"id", "capabilities", "request_fixture", "assertions"}
_REQUIRED: Final = {"terminal_event", "tool_calls", "usage_required"}
_OPTIONAL: Final = {"text", "thinking", "arguments", "status", "error_code", "finish_reason"}
_KNOWN: Final = {"chat", "streaming", "tool_calling", "reasoning", "vision"}


class CaseError(ValueError):
    """A case or a fixture breaks the format; the message names it."""


@dataclass(frozen=True)
class Case:
    """One case, with its request and the turn that a fake plays for it."""

    id: str
    capabilities: tuple[str, ...]
    assertions: dict[str, Any]
    request: ModelRequest
    turn: Turn


@dataclass
class Outcome:
    """What became of a case."""

    case: str
    provider_type: str
    protocol: str
    model: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``."""
    duration_ms: int = 0
    reason: str | None = None


@dataclass
class Report:
    """What became of all cases."""

    outcomes: list[Outcome] = field(default_factory=list)

    def as_json(self) -> list[dict[str, Any]]:
        """The report."""
        return [asdict(outcome) for outcome in self.outcomes]


def read_cases(path: Path = CASES, fixtures: Path = FIXTURES) -> tuple[Case, ...]:
    """Read the cases; raises `CaseError` for the first that breaks the format."""
    requests = yaml.safe_load(fixtures.read_text(encoding="utf-8"))
    found = [_case(item, requests) for item in yaml.safe_load(path.read_text(encoding="utf-8"))]
    ids = [case.id for case in found]
    if len(set(ids)) != len(ids):
        raise CaseError("two cases have the same id")
    return tuple(found)


def _case(item: Any, requests: dict[str, Any]) -> Case:
    if not isinstance(item, dict) or set(item) != _KEYS:
        raise CaseError(f"a case has exactly the keys {sorted(_KEYS)}: {item!r}")
    wanted = item["assertions"]
    if not isinstance(wanted, dict) or not _REQUIRED <= set(wanted) <= _REQUIRED | _OPTIONAL:
        raise CaseError(f"{item['id']}: assertions need {sorted(_REQUIRED)}")
    if not isinstance(wanted["tool_calls"], int) or not isinstance(wanted["usage_required"], bool):
        raise CaseError(f"{item['id']}: tool_calls is a number, usage_required true or false")
    if not isinstance(item["capabilities"], list) or not set(item["capabilities"]) <= _KNOWN:
        raise CaseError(f"{item['id']}: capabilities are some of {sorted(_KNOWN)}")
    if item["request_fixture"] not in requests:
        raise CaseError(f"{item['id']}: no fixture {item['request_fixture']!r}")
    request, turn = _fixture(requests[item["request_fixture"]])
    return Case(item["id"], tuple(item["capabilities"]), wanted, request, turn)


def _fixture(fixture: dict[str, Any]) -> tuple[ModelRequest, Turn]:
    messages = tuple(
        Message(said["role"], said["content"], images=tuple(said.get("images", ())))
        for said in fixture["messages"]
    )
    schema = {"type": "object", "additionalProperties": True}
    tools = tuple(
        ToolDefinition(name, f"The tool {name}.", schema) for name in fixture.get("tools", ())
    )
    told = fixture["turn"]
    turn = Turn(
        text=told.get("text", []) * fixture.get("repeat", 1),
        thinking=told.get("thinking", []),
        calls=[
            Call(call["id"], call["tool"].replace(".", "_"), call["arguments"])
            for call in told.get("calls", [])
        ],
        usage=tuple(told["usage"]) if "usage" in told else None,
        finish=told.get("finish"),
    )
    return ModelRequest(messages, tools), turn


async def run_case(
    case: Case, service: ProviderService, target: ChatTarget, provider_type: str
) -> Outcome:
    """Run a case, unless the provider lacks what it needs."""
    adapter = ADAPTERS[provider_type]  # type: ignore[index]
    outcome = Outcome(case.id, provider_type, adapter.protocol, target.model, "skipped")
    lacking = sorted(set(case.capabilities) - target.capabilities)
    if lacking:
        outcome.reason = f"the provider has no {', '.join(lacking)}"
        return outcome
    began = time.monotonic()
    events = [event async for event in service.stream(target, case.request)]
    outcome.duration_ms = round((time.monotonic() - began) * 1000)
    problems = list(_problems(case, events))
    outcome.outcome, outcome.reason = (
        ("failed", "; ".join(problems)) if problems else ("passed", None)
    )
    return outcome


def _problems(case: Case, events: Sequence[ModelEvent]) -> list[str]:
    wanted, found = case.assertions, list(events)
    said = names(found)
    ended = [event for event in found if event.event == "ToolCallEnd"]
    error = next((event.data["code"] for event in found if event.event == "Error"), None)
    checks = {
        "one terminal event, the last": said.count("Done") == 1
        and said[-1] == wanted["terminal_event"],
        "status": found[-1].data["status"] == wanted.get("status", "completed"),
        "error": error == wanted.get("error_code"),
        "tool calls": len(ended) == wanted["tool_calls"],
        "usage": "Usage" in said or not wanted["usage_required"],
        "usage only as told": case.turn.usage is not None or "Usage" not in said,
        "thinking only as told": bool(case.turn.thinking) or "ThinkingDelta" not in said,
        "text": wanted.get("text") in (None, joined(found)),
        "thinking": wanted.get("thinking") in (None, joined(found, "ThinkingDelta")),
        "finish reason": wanted.get("finish_reason") in (None, found[-1].data["finish_reason"]),
        "names": {call[0] for call in calls(found)} <= {tool.name for tool in case.request.tools},
        "arguments": wanted.get("arguments") in (None, [call[1] for call in calls(found)]),
    }
    return [name for name, holds in checks.items() if not holds]


async def _live(arguments: argparse.Namespace) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        async with bench_in(Path(folder)) as bench:
            await bench.credentials.set("live", os.environ[arguments.key_variable])
            provider = await bench.service.create(
                ProviderCreateRequest(
                    name="live",
                    provider_type=arguments.provider_type,
                    base_url=arguments.base_url,
                    credential_id="live",
                    default_model=arguments.model,
                    capabilities=arguments.capabilities.split(","),
                )
            )
            target = await bench.service.target(provider.provider_id, None)
            for case in read_cases():
                # What a real model says can't be foretold, only how its stream is formed.
                free = {key: case.assertions[key] for key in _REQUIRED}
                loose = Case(case.id, case.capabilities, free, case.request, case.turn)
                report.outcomes.append(
                    await run_case(loose, bench.service, target, arguments.provider_type)
                )
    return report


def main() -> None:
    """Run the cases against a real provider."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--provider-type", "--base-url", "--model", "--key-variable"):
        parser.add_argument(name, required=True)
    parser.add_argument("--capabilities", default="chat,streaming")
    report = asyncio.run(_live(parser.parse_args()))
    print(json.dumps(report.as_json(), ensure_ascii=False, indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
