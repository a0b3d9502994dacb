"""The catalogue is complete, in both languages, and agrees with the contract and with the code that uses it."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kernel import catalogue
from sidecar.kernel.catalogue import ERRORS, FATAL, MESSAGES, Localised, LocalisedError
from sidecar.kernel.catalogue.errors import ERROR_GROUPS
from sidecar.kernel.errors import ProjectError

REPOSITORY = Path(__file__).resolve().parents[2]
SIDECAR = REPOSITORY / "sidecar"
CODE_LIST = Path(__file__).with_name("source_error_codes.txt")

# The contract's table of statuses, then those that it gives to single situations: a wrong method, a file that is no
# longer kept, another media type, a range past the end, and failures of our own.
TABLED_STATUSES = {400, 401, 403, 404, 409, 413, 422, 429, 501, 502, 503, 504}
SINGLE_STATUSES = {405, 410, 415, 416, 500}

# The calls whose first argument (for the second, every argument) is an error code.
RAISING_CALLS = {"ProjectError", "error_text", "LocalisedError"}
LISTING_CALLS = {"error_responses"}

CODE_SHAPE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")

ENTRIES = {
    **{f"error {code}": (spec.en, spec.zh) for code, spec in ERRORS.items()},
    **{f"fatal {code}": (spec.en, spec.zh) for code, spec in FATAL.items()},
    **{f"message {key}": (entry.en, entry.zh) for key, entry in MESSAGES.items()},
}


def contract_codes() -> dict[str, int | None]:
    codes: dict[str, int | None] = {}
    for line in CODE_LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            code, status = line.split()
            codes[code] = None if status == "-" else int(status)
    return codes


def called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def literals(value: ast.expr) -> Iterator[str]:
    """The strings that an expression may be, as far as its text tells."""
    match value:
        case ast.Constant(value=str(literal)):
            yield literal
        case ast.IfExp(body=body, orelse=orelse):
            yield from literals(body)
            yield from literals(orelse)
        case (
            ast.Tuple(elts=parts)
            | ast.List(elts=parts)
            | ast.Set(elts=parts)
            | ast.BoolOp(values=parts)
        ):
            for part in parts:
                yield from literals(part)
        case ast.Starred(value=inner):
            yield from literals(inner)


def used_codes(source: str) -> Iterator[str]:
    """The error codes that a module's source names: raised, listed for OpenAPI, or configured by a keyword."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        if called_name(call) in RAISING_CALLS:
            for argument in call.args[:1]:
                yield from literals(argument)
        if called_name(call) in LISTING_CALLS:
            for argument in call.args:
                yield from literals(argument)
        for keyword in call.keywords:
            if (keyword.arg or "").endswith("_code"):
                yield from (
                    literal for literal in literals(keyword.value) if CODE_SHAPE.fullmatch(literal)
                )


@pytest.mark.proves("host.locale.complete")
@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_exists_in_both_languages(name: str) -> None:
    english, chinese = ENTRIES[name]

    assert english.strip() == english and len(english) > 1
    assert chinese.strip() == chinese and re.search(r"[\u4e00-\u9fff]", chinese)
    assert not re.search(r"[\u3000-\u9fff\uff00-\uffef]", english), "Chinese in the English text"
    assert not re.search(r"[a-z]{4,} [a-z]{4,}", chinese), "English in the Chinese text"


@pytest.mark.parametrize("name", ENTRIES)
def test_both_languages_take_the_same_parameters(name: str) -> None:
    english, chinese = ENTRIES[name]

    assert catalogue.placeholders(english) == catalogue.placeholders(chinese)
    for template in (english, chinese):
        filled = catalogue.fill(template, dict.fromkeys(catalogue.placeholders(template), "value"))
        assert not re.search(r"[{}\[\]…]", filled), "brackets left in the text"


@pytest.mark.parametrize("code", ERRORS)
def test_error_texts_are_sentences_without_leading_or_missing_parts(code: str) -> None:
    english, chinese = catalogue.error_text(code, "en"), catalogue.error_text(code, "zh-CN")

    assert english[0].isupper() and english.endswith(".") and "  " not in english
    assert chinese.endswith("。")
    assert "…" not in english + chinese, "an error must read well without its parameters"


@pytest.mark.proves("protocol.errors.code-table")
def test_a_code_stands_in_one_group_with_one_status() -> None:
    for (first, ours), (second, theirs) in itertools.combinations(ERROR_GROUPS.items(), 2):
        assert not ours.keys() & theirs.keys(), f"{first} and {second} share codes"
    assert sum(map(len, ERROR_GROUPS.values())) == len(ERRORS)


@pytest.mark.proves("protocol.errors.code-table")
@pytest.mark.parametrize("code", ERRORS)
def test_the_status_is_one_that_the_contract_knows(code: str) -> None:
    assert ERRORS[code].status in TABLED_STATUSES | SINGLE_STATUSES


@pytest.mark.proves("protocol.errors.code-format")
def test_codes_are_upper_snake_case_but_for_those_of_the_gateway() -> None:
    gateway = {"hermes_client_upstream_error", "hermes_gateway_not_configured", "permission_denied"}
    for code in ERRORS.keys() | FATAL.keys():
        assert code in gateway or CODE_SHAPE.fullmatch(code)
    assert gateway <= ERRORS.keys()


@pytest.mark.proves("protocol.errors.source-codes")
@pytest.mark.parametrize(("code", "status"), contract_codes().items())
def test_every_code_of_the_contract_is_in_the_table(code: str, status: int | None) -> None:
    assert code in ERRORS
    if status is None:
        assert ERRORS[code].status in TABLED_STATUSES
    else:
        assert ERRORS[code].status == status


@pytest.mark.proves("media.diarization.not-implemented-gone")
def test_the_retired_diarization_code_is_gone() -> None:
    assert "DIARIZATION_NOT_IMPLEMENTED" not in ERRORS
    assert "warning.DIARIZATION_UNAVAILABLE" in MESSAGES


@pytest.mark.proves("protocol.errors.code-table")
def test_every_code_that_the_code_names_is_in_the_table() -> None:
    unknown = {
        f"{path.relative_to(REPOSITORY).as_posix()}: {code}"
        for path in sorted(SIDECAR.rglob("*.py"))
        for code in used_codes(path.read_text(encoding="utf-8"))
        if code not in ERRORS and code not in FATAL
    }
    assert not unknown


def test_the_scan_sees_each_way_of_naming_a_code() -> None:
    source = """
raise ProjectError("A_B" if late else "C_D", details={"x_code": "no"}, name="e")
raise errors.ProjectError("E_F", status="9_9")
raise ProjectError(CODES["late"])
router = APIRouter(responses=error_responses("G_H", *("I_J",)))
kind = JobKind(failure_code="K_L", name="export")
other("M_N")
"""
    assert set(used_codes(source)) == {"A_B", "C_D", "E_F", "G_H", "I_J", "K_L"}


def test_each_failed_start_has_an_exit_status_of_its_own() -> None:
    statuses = [spec.exit_code for spec in FATAL.values()]

    assert len(set(statuses)) == len(statuses)
    # 1 and 2 are the interpreter's and the command line's; from 126 on the shell gives them a meaning.
    assert all(10 <= status < 126 for status in statuses)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("EN_gb", "en"),
        ("zh", "zh-CN"),
        ("zh-CN", "zh-CN"),
        ("zh-Hans", "zh-CN"),
        ("zh_CN", "zh-CN"),
        (" zh-Hans-CN ", "zh-CN"),
        ("fr", None),
        ("english", None),
        ("zhuang", None),
        ("*", None),
        ("", None),
        (None, None),
    ],
)
def test_locale_tags(value: str | None, expected: str | None) -> None:
    assert catalogue.parse_locale(value) == expected


@pytest.mark.proves("host.locale.accept-language")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("en-US,en;q=0.9,zh-CN;q=0.8", "en"),
        ("en;q=0.2, zh;q=0.7", "zh-CN"),
        ("fr-FR, zh;q=0.5, en;q=0.4", "zh-CN"),
        ("de, fr;q=0.5", None),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=0", None),
        ("en, zh", "en"),
        ("zh , en", "zh-CN"),
        ("en ; q = 0.3 , zh ; Q=0.4", "zh-CN"),
        ("en;q=nonsense, zh;q=0.1", "zh-CN"),
        ("en;q=nan", None),
        ("en;q=7, zh;q=0.1", "zh-CN"),
        ("*", None),
        (";;,,", None),
        ("", None),
        (None, None),
    ],
)
def test_accept_language(header: str | None, expected: str | None) -> None:
    assert catalogue.locale_from_accept_language(header) == expected


@given(st.text())
def test_any_header_is_read_without_a_failure(header: str) -> None:
    assert catalogue.locale_from_accept_language(header) in {"en", "zh-CN", None}


@given(
    first=st.sampled_from(["en", "en-GB", "zh", "zh-Hans", "zh-CN"]),
    others=st.lists(st.sampled_from(["fr", "de-AT", "ja", "*"])),
    low=st.integers(1, 499),
    high=st.integers(500, 999),
)
def test_the_heavier_of_the_two_languages_wins(
    first: str, others: list[str], low: int, high: int
) -> None:
    chosen = catalogue.parse_locale(first)
    rival = "zh" if chosen == "en" else "en"
    header = ", ".join([f"{rival};q=0.{low:03}", *others, f"{first};q=0.{high:03}"])

    assert catalogue.locale_from_accept_language(header) == chosen


def test_the_current_locale_follows_the_default_and_is_overridden_in_a_block() -> None:
    assert catalogue.current_locale() == "en"
    catalogue.set_default_locale("zh-CN")
    try:
        assert catalogue.current_locale() == "zh-CN"
        with catalogue.use_locale("en"):
            assert catalogue.current_locale() == "en"
            with catalogue.use_locale(None):
                assert catalogue.current_locale() == "zh-CN"
            assert catalogue.text("phase.queued") == MESSAGES["phase.queued"].en
        assert catalogue.text("phase.queued") == MESSAGES["phase.queued"].zh
    finally:
        catalogue.set_default_locale("en")


def test_parameters_are_inserted_as_they_are() -> None:
    shown = catalogue.error_text("CHAT_ATTACHMENT_FAILED", "en", name="[{name}] {0.__class__}.pdf")

    assert shown.startswith("The attachment “[{name}] {0.__class__}.pdf” could not be read.")


def test_a_missing_parameter_drops_its_optional_part_or_shows_an_ellipsis() -> None:
    assert catalogue.error_text("CHAT_ATTACHMENT_FAILED", "en").startswith(
        "The attachment could not be read."
    )
    assert catalogue.error_text("CHAT_ATTACHMENT_FAILED", "en", name=None).startswith(
        "The attachment could not"
    )
    assert catalogue.fill("Step {n} of {total}", {"n": 0}) == "Step 0 of …"


def test_an_unknown_error_code_still_gives_a_text_for_a_reader() -> None:
    assert catalogue.error_text("NO_SUCH_CODE", "zh-CN") == ERRORS["INTERNAL_ERROR"].zh


def test_an_unknown_message_key_is_a_programming_mistake() -> None:
    with pytest.raises(KeyError):
        catalogue.text("no.such.key")


def test_stored_messages_are_put_into_the_readers_language() -> None:
    stored: dict[str, Any] = {
        "progress": {"phase": "indexing", "message": Localised("phase.indexing").to_json()},
        "warnings": [
            Localised("warning.export_theme_unknown", {"theme": "mist"}).to_json(),
            "plain",
        ],
        "error": LocalisedError("CHAT_ATTACHMENT_FAILED", {"name": "a.pdf"}).to_json(),
    }

    shown = catalogue.localise(stored, "zh-CN")

    assert shown["progress"] == {"phase": "indexing", "message": MESSAGES["phase.indexing"].zh}
    assert shown["warnings"] == ["没有找到主题“mist”，已使用浅色配色。", "plain"]
    assert shown["error"] == "附件“a.pdf”无法读取，请移除它或换一种格式。"
    assert stored["progress"]["message"] == {"$message": "phase.indexing", "params": {}}


def test_the_reason_in_an_error_is_in_the_language_of_the_error() -> None:
    error = ProjectError(
        "CHAT_ATTACHMENT_FAILED", name="a.docx", reason=Localised("attachment.damaged")
    )

    assert error.message("zh-CN") == "附件“a.docx”无法读取（文件已损坏），请移除它或换一种格式。"
    assert error.message("en").startswith("The attachment “a.docx” could not be read: the file is")
    assert catalogue.localise(error.localised().to_json(), "zh-CN") == error.message("zh-CN")


def test_a_message_may_be_a_parameter_of_another() -> None:
    reason = LocalisedError("PROVIDER_TIMEOUT")
    nested = Localised("warning.FUNCTION_PLOT_PARSE_FAILED", {"reason": reason})

    assert ERRORS["PROVIDER_TIMEOUT"].en in catalogue.localise(nested, "en")
    assert ERRORS["PROVIDER_TIMEOUT"].zh in catalogue.localise(
        json.loads(json.dumps(nested.to_json())), "zh-CN"
    )


@pytest.mark.parametrize(
    "value",
    [
        {"$message": "phase.indexing"},
        {"$message": "phase.indexing", "params": {}, "more": 1},
        {"$message": "no.such.key", "params": {}},
        {"$message": 3, "params": {}},
        {"$message": "phase.indexing", "params": []},
        {"$error": "NO_SUCH_CODE", "params": {}},
    ],
)
def test_what_only_resembles_a_stored_message_stays_as_it_is(value: dict[str, Any]) -> None:
    assert catalogue.localise(value, "en") == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_other_json_passes_unchanged(value: Any) -> None:
    assert catalogue.localise(value, "zh-CN") == value
