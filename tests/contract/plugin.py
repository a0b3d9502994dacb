"""Pytest plugin that ties tests to the rows of the contract.

    @pytest.mark.proves("media.attachments.upload-empty", "protocol.errors.shape")

says that a test shows these rows true. A mark with an id that is no row fails the collection of its file. `--contract`
runs nothing and prints how many rows of each domain have a test. `coverage_of(config)` gives the same to a test.

In a file with `complete: true` every row needs a test, but one with `waits_for: [chat]` needs it only from the moment that
`sidecar/chat/` is a package.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.contract.rows import Domain, Row, RowsError, read_domains

_COVERAGE = pytest.StashKey["Coverage"]()
_WHOLE_RUN = "contract_whole_run"


@dataclass(slots=True)
class Coverage:
    """Which rows have tests among those that this run collected.

    `whole_run` is false where paths, an expression or the like chose some of the tests: then a row without a test says
    nothing.
    """

    domains: tuple[Domain, ...]
    whole_run: bool
    packages: Path
    tests: dict[str, list[str]] = field(default_factory=dict)

    def covered(self, domain: Domain) -> int:
        """Count the rows of `domain` that have a test."""
        return sum(row.id in self.tests for row in domain.rows)

    def missing(self) -> list[str]:
        """Return the ids, in the order of the files, that have no test though their domain is complete."""
        complete = [domain for domain in self.domains if domain.complete]
        return [
            row.id
            for domain in complete
            for row in domain.rows
            if row.id not in self.tests and not self.absent(row)
        ]

    def absent(self, row: Row) -> list[str]:
        """Return the domains that `row` waits for and that are not there yet."""
        return [
            name for name in row.waits_for if not (self.packages / name / "__init__.py").exists()
        ]

    def waiting(self) -> list[tuple[str, list[str]]]:
        """Return the rows without a test that may lack one, with the domains that they wait for."""
        return [
            (row.id, self.absent(row))
            for domain in self.domains
            if domain.complete
            for row in domain.rows
            if row.id not in self.tests and self.absent(row)
        ]


def coverage_of(config: pytest.Config) -> Coverage:
    """Return what this run covers; to be called once the tests are collected."""
    return config.stash[_COVERAGE]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--contract`, and the folder of the row files as a setting."""
    parser.addini("contract_rows", "folder with the contract's row files", default="tests/contract")
    parser.addoption(
        "--contract",
        action="store_true",
        help="run nothing; print covered / all rows of the contract per domain",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers", "proves(*ids): the rows of the contract that this test shows true"
    )
    if config.option.contract and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--contract runs no test: leave out -n")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of a parallel run whether the whole run is whole: it sees paths in any case."""
    node.workerinput[_WHOLE_RUN] = _is_whole_run(node.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a mark with a wrong id into a collection error of the file or class that holds the test."""
    report = yield
    if report.passed:
        problems = [
            problem
            for node in report.result
            if isinstance(node, pytest.Item)
            for problem in _problems(node)
        ]
        if problems:
            report.outcome = "failed"
            report.longrepr = "\n".join(dict.fromkeys(problems))
            report.result = []
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which rows the collected tests prove."""
    config = session.config
    coverage = Coverage(_domains(config), _is_whole_run(config), config.rootpath / "sidecar")
    for item in session.items:
        for row_id in _row_ids(item):
            coverage.tests.setdefault(row_id, []).append(item.nodeid)
    config.stash[_COVERAGE] = coverage


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run nothing under `--contract`; after a collection error pytest's own loop reports it."""
    return True if session.config.option.contract and not session.testsfailed else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make `--contract` end with 1 where a complete domain has a row without a test, else with 0."""
    config = session.config
    if config.option.contract and _COVERAGE in config.stash and not session.testsfailed:
        coverage = coverage_of(config)
        failed = coverage.whole_run and coverage.missing()
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if failed else pytest.ExitCode.OK


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the table of `--contract`."""
    if not config.option.contract or _COVERAGE not in config.stash:
        return
    coverage = coverage_of(config)
    terminalreporter.section("contract rows with a test")
    lines = [
        (domain.name, coverage.covered(domain), len(domain.rows), domain.complete)
        for domain in coverage.domains
    ]
    lines.append(("all", sum(line[1] for line in lines), sum(line[2] for line in lines), False))
    for name, covered, count, complete in lines:
        share = 100 * covered // count if count else 100
        terminalreporter.line(
            f"{name:14} {covered:5} / {count:<5} {share:3} %{'  complete' if complete else ''}"
        )
    if not coverage.whole_run:
        terminalreporter.line("Only some of the tests were looked at.")
        return
    for row_id, names in coverage.waiting():
        terminalreporter.line(f"waits for {', '.join(names)}: {row_id}")
    for row_id in coverage.missing():
        terminalreporter.line(f"no test: {row_id}", red=True)


def _domains(config: pytest.Config) -> tuple[Domain, ...]:
    try:
        return read_domains(config.rootpath / Path(config.getini("contract_rows")))
    except RowsError as error:
        raise pytest.UsageError(str(error)) from error


def _row_ids(item: pytest.Item) -> Generator[str]:
    for mark in item.iter_markers("proves"):
        yield from mark.args


def _problems(item: pytest.Item) -> Generator[str]:
    marks = list(item.iter_markers("proves"))
    if not marks:
        return
    known = {row.id for domain in _domains(item.config) for row in domain.rows}
    for mark in marks:
        if not mark.args or mark.kwargs:
            yield f"{item.nodeid}: `proves` takes one id or more, and nothing else"
        for row_id in mark.args:
            if row_id not in known:
                yield f"{item.nodeid}: the contract has no row {row_id!r}"


def _is_whole_run(config: pytest.Config) -> bool:
    worker: dict[str, bool] | None = getattr(config, "workerinput", None)
    if worker is not None:
        return worker[_WHOLE_RUN]
    option = config.option
    # The cache plugin, and its options with it, can be switched off.
    cached = (getattr(option, "lf", False), getattr(option, "stepwise", False))
    selected = (option.keyword, option.markexpr, option.deselect, option.ignore, option.ignore_glob)
    whole = {config.rootpath, *(config.rootpath / path for path in config.getini("testpaths"))}
    paths = {config.invocation_params.dir / argument for argument in config.args}
    return not any((*selected, *cached)) and paths <= whole
