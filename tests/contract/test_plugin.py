"""The plugin that ties tests to rows, run by a pytest of its own on small suites."""

from collections.abc import Callable

import pytest

Suite = Callable[..., pytest.Pytester]

ROWS = """\
domain: notes
{complete}
requirements:
  - {{id: notes.read, source: s, text: t}}
  - {{id: notes.write, source: s, text: t, chosen: true, note: why}}
"""
CHECK = """
from tests.contract.plugin import coverage_of

def test_rows(request):
    coverage = coverage_of(request.config)
    assert not coverage.whole_run or coverage.missing() == []
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Make a suite with the check, one file of rows, and tests that carry the given marks."""
    # The installed plugins have no part in this, and loading them takes most of the time.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def make(*marks: str, complete: bool = False) -> pytest.Pytester:
        pytester.makeini(
            "[pytest]\ntestpaths = t\ncontract_rows = rows\naddopts = -p tests.contract.plugin\n"
        )
        tests = "".join(
            f"@pytest.mark.proves({mark})\ndef test_{n}(): pass\n" for n, mark in enumerate(marks)
        )
        folder = pytester.mkdir("t")
        (folder / "test_marked.py").write_text(f"import pytest\n{tests}", encoding="utf-8")
        (folder / "test_check.py").write_text(CHECK, encoding="utf-8")
        rows = ROWS.format(complete="complete: true" if complete else "note: not yet")
        (pytester.mkdir("rows") / "notes.yaml").write_text(rows, encoding="utf-8")
        return pytester

    return make


def test_marks_with_known_ids_pass(suite: Suite) -> None:
    suite("'notes.read'", "'notes.read', 'notes.write'").runpytest_inprocess().assert_outcomes(
        passed=3
    )


@pytest.mark.parametrize("parallel", [[], ["-p", "xdist", "-n", "1"]])
def test_an_unknown_id_is_a_collection_error(suite: Suite, parallel: list[str]) -> None:
    result = suite("'notes.read'", "'notes.raed'").runpytest_subprocess(*parallel)
    # A parallel run goes on with the other files, and fails at its end.
    result.assert_outcomes(errors=1, passed=1 if parallel else 0)
    result.stdout.fnmatch_lines(["*test_1: the contract has no row 'notes.raed'*"])
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if parallel else pytest.ExitCode.INTERRUPTED)


@pytest.mark.parametrize("mark", ["", "'notes.read', why='x'"])
def test_a_mark_without_an_id_or_with_more_is_a_collection_error(suite: Suite, mark: str) -> None:
    result = suite(mark).runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*`proves` takes one id or more*"])


def test_marks_of_classes_and_parameters_count(suite: Suite) -> None:
    pytester = suite(complete=True)
    (pytester.path / "t" / "test_marked.py").write_text(
        "import pytest\n"
        "@pytest.mark.proves('notes.read')\n"
        "class TestIt:\n"
        "    @pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.proves('notes.write'))])\n"
        "    def test_it(self, n): pass\n",
        encoding="utf-8",
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


@pytest.mark.parametrize("parallel", [[], ["-p", "xdist", "-n", "2"]])
def test_a_whole_run_fails_on_a_row_without_a_test(suite: Suite, parallel: list[str]) -> None:
    result = suite("'notes.read'", complete=True).runpytest_subprocess(*parallel)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*notes.write*"])


@pytest.mark.parametrize(
    "selection",
    [
        ["t/test_check.py"],
        ["-k", "rows"],
        ["--deselect", "t/test_marked.py"],
        ["--ignore", "t/test_marked.py"],
    ],
)
def test_a_selection_of_tests_does_not_fail_on_it(suite: Suite, selection: list[str]) -> None:
    suite("'notes.read'", complete=True).runpytest_inprocess(*selection).assert_outcomes(
        passed=1, deselected=1 if selection[0] in ("-k", "--deselect") else 0
    )


def test_the_folder_of_all_tests_is_no_selection(suite: Suite) -> None:
    suite("'notes.read'", complete=True).runpytest_inprocess("t").assert_outcomes(
        passed=1, failed=1
    )


def test_a_domain_that_is_not_complete_may_lack_tests(suite: Suite) -> None:
    suite("'notes.read'").runpytest_inprocess().assert_outcomes(passed=2)


def test_the_table_counts_rows_and_runs_nothing(suite: Suite) -> None:
    pytester = suite("'notes.read'", "'notes.read'")
    (pytester.path / "t" / "test_more.py").write_text(
        "def test_never_run(): raise SystemExit\n", encoding="utf-8"
    )
    result = pytester.runpytest_inprocess("--contract")
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["notes * 1 / 2 * 50 %", "all * 1 / 2 * 50 %"])
    assert result.ret == pytest.ExitCode.OK


def test_the_table_names_what_a_complete_domain_lacks(suite: Suite) -> None:
    result = suite("'notes.read'", complete=True).runpytest_inprocess("--contract")
    result.stdout.fnmatch_lines(["notes * 1 / 2 * 50 %  complete", "no test: notes.write"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_the_table_is_no_excuse_for_an_unknown_id(suite: Suite) -> None:
    result = suite("'notes.raed'").runpytest_inprocess("--contract")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize("arrived", [False, True])
def test_a_row_that_waits_for_a_domain_needs_a_test_once_it_is_there(
    suite: Suite, arrived: bool
) -> None:
    pytester = suite("'notes.read'", complete=True)
    rows = pytester.path / "rows" / "notes.yaml"
    text = rows.read_text(encoding="utf-8")
    rows.write_text(text.replace("note: why", "waits_for: [chat, mcp]"), encoding="utf-8")
    for name in ("mcp", "chat") if arrived else ("mcp",):
        (pytester.path / "sidecar" / name).mkdir(parents=True)
        (pytester.path / "sidecar" / name / "__init__.py").touch()
    # A folder that is no package is what an old build left behind.
    (pytester.path / "sidecar" / "chat").mkdir(exist_ok=True)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1 if arrived else 2, failed=1 if arrived else 0)
    told = pytester.runpytest_inprocess("--contract")
    line = "no test: notes.write" if arrived else "waits for chat: notes.write"
    told.stdout.fnmatch_lines([line])
