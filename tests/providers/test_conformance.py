"""One set of cases for every adapter, against servers that play the protocols over real sockets."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.providers.bench import PROTOCOLS, Bench, fake
from tests.providers.conformance import (
    CASES,
    FIXTURES,
    Case,
    CaseError,
    Report,
    read_cases,
    run_case,
)

CONNECTED: list[Any] = []
_WATCH = {"on": False}


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCH["on"] and event in ("socket.connect", "socket.getaddrinfo"):
        CONNECTED.append(arguments[1] if event == "socket.connect" else arguments[:2])


sys.addaudithook(_note)


async def run_all(bench: Bench, protocol: str, cases: tuple[Case, ...]) -> Report:
    report = Report()
    target = await bench.target(protocol)
    for case in cases:
        bench.upstream.answers.append(fake(protocol).stream(case.turn))
        report.outcomes.append(
            await run_case(case, bench.service, target, fake(protocol).PROVIDER_TYPE)
        )
    return report


@pytest.mark.proves(
    "providers.conformance.same-cases",
    "providers.adapter.openai-responses",
    "providers.adapter.openai-chat",
    "providers.adapter.anthropic",
    "providers.adapter.ollama",
    "providers.stream.event-types",
    "providers.stream.done-success",
    "providers.stream.done-once",
    "providers.stream.usage-fields",
    "providers.stream.usage-not-guessed",
    "providers.stream.no-fake-thinking",
    "providers.stream.thinking-mapped",
    "providers.stream.tool-delta-aggregation",
    "providers.stream.tool-arguments-object",
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_adapter_passes_every_case(bench: Bench, protocol: str) -> None:
    cases = read_cases()
    report = await run_all(bench, protocol, cases)
    assert [(o.case, o.reason) for o in report.outcomes if o.outcome != "passed"] == []
    assert [outcome.case for outcome in report.outcomes] == [case.id for case in cases]
    paths = {request.path for request in bench.upstream.received}
    assert paths == {fake(protocol).PATH}
    assert all(request.json["stream"] is True for request in bench.upstream.received)


@pytest.mark.proves("providers.conformance.report", "providers.conformance.same-cases")
async def test_what_a_provider_lacks_is_skipped_with_its_reason(bench: Bench) -> None:
    target = await bench.target("anthropic", capabilities=["chat", "streaming"])
    cases = read_cases()
    report = Report()
    for case in cases:
        bench.upstream.reset()
        bench.upstream.answers.append(fake("anthropic").stream(case.turn))
        report.outcomes.append(await run_case(case, bench.service, target, "anthropic"))
        assert bool(bench.upstream.received) == (report.outcomes[-1].outcome != "skipped")
    rows = {row["case"]: row for row in json.loads(json.dumps(report.as_json()))}
    skipped = rows["provider-tool-call-after-thinking"]
    assert skipped["outcome"] == "skipped"
    assert skipped["reason"] == "the provider has no reasoning, tool_calling"
    passed = rows["provider-text-basic"]
    assert passed["outcome"] == "passed" and passed["reason"] is None
    assert passed["duration_ms"] >= 0
    for row in rows.values():
        assert row["provider_type"] == "anthropic"
        assert row["protocol"] == "anthropic_messages"
        assert row["model"] == "m"


async def test_a_wrong_answer_fails_its_case(bench: Bench) -> None:
    case = next(case for case in read_cases() if case.id == "provider-text-basic")
    target = await bench.target()
    bench.upstream.answers.append(fake("openai_chat").stream(read_cases()[2].turn))
    outcome = await run_case(case, bench.service, target, "openai_compatible")
    assert outcome.outcome == "failed" and outcome.reason == "usage; text"


@pytest.mark.proves("providers.conformance.case-format")
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"capabilities": None}, "capabilities"),
        ({"capabilities": ["chat", "telepathy"]}, "capabilities"),
        ({"request_fixture": "unheard_of"}, "no fixture"),
        ({"assertions": {"terminal_event": "Done", "tool_calls": 0}}, "assertions need"),
        (
            {"assertions": {"terminal_event": "Done", "tool_calls": "0", "usage_required": True}},
            "is a number",
        ),
        ({"surplus": 1}, "exactly the keys"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_malformed_case_fails_the_run(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    whole = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    broken = tmp_path / "cases.yaml"
    broken.write_text(yaml.safe_dump([{**whole[0], **change}], allow_unicode=True), "utf-8")
    with pytest.raises(CaseError, match=complaint):
        read_cases(broken, FIXTURES)


def test_two_cases_of_one_id_fail_the_run(tmp_path: Path) -> None:
    whole = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    broken = tmp_path / "cases.yaml"
    broken.write_text(yaml.safe_dump([whole[0], whole[0]], allow_unicode=True), "utf-8")
    with pytest.raises(CaseError, match="same id"):
        read_cases(broken, FIXTURES)


@pytest.mark.proves("providers.conformance.offline-default")
async def test_the_cases_call_nobody_outside(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    CONNECTED.clear()
    _WATCH["on"] = True
    try:
        for protocol in PROTOCOLS:
            report = await run_all(bench, protocol, read_cases()[:2])
            assert {outcome.outcome for outcome in report.outcomes} == {"passed"}
    finally:
        _WATCH["on"] = False
    assert CONNECTED
    assert {address[0] for address in CONNECTED} == {"127.0.0.1"}
