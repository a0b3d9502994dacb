"""The rows of the contract against the tests that this run collected, and against their own format."""

from pathlib import Path

import pytest

from tests.contract.plugin import coverage_of
from tests.contract.rows import RowsError, read_domains


def test_every_row_of_a_complete_domain_has_a_test(request: pytest.FixtureRequest) -> None:
    coverage = coverage_of(request.config)
    if not coverage.whole_run:
        pytest.skip("only a run of all tests can tell")
    assert coverage.missing() == []


def test_the_contract_is_there(request: pytest.FixtureRequest) -> None:
    domains = {domain.name: len(domain.rows) for domain in coverage_of(request.config).domains}
    assert {"host", "protocol", "media", "vault", "retrieval", "export"} <= set(domains)
    assert all(count > 0 for count in domains.values())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("domain: other\nrequirements: []\n", "needs `domain: a`"),
        ("domain: a\n", "needs `domain: a`"),
        ("domain: a\ncomplete: sure\nrequirements: []\n", "`complete` is true or false"),
        ("domain: a\nfinished: true\nrequirements: []\n", "unknown keys finished"),
        ("domain: a\nrequirements: [{id: a.one}]\n", "needs the texts"),
        ("domain: a\nrequirements: [{id: b.one, source: s, text: t}]\n", "must begin with `a.`"),
        (
            "domain: a\nrequirements: [{id: a.one, source: s, text: t, why: w}]\n",
            "unknown keys why",
        ),
        (
            "domain: a\nrequirements: [{id: a.one, source: s, text: t, waits_for: chat}]\n",
            "a list of domain folders",
        ),
        (
            "domain: a\nrequirements:\n" + "  - {id: a.one, source: s, text: t}\n" * 2,
            "a.one is there twice",
        ),
    ],
)
def test_a_broken_row_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RowsError, match=complaint):
        read_domains(tmp_path)
