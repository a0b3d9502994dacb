"""Patterns that are compiled when they are used first."""

import re

import pytest

from sidecar.kernel.late_patterns import late_pattern


def test_it_does_what_a_compiled_pattern_does() -> None:
    late, compiled = (
        late_pattern("([a-z]+)-", re.IGNORECASE),
        re.compile("([a-z]+)-", re.IGNORECASE),
    )
    text = "One-two-3-four-"
    for _ in range(2):
        assert late.findall(text) == compiled.findall(text)
        assert late.sub("<>", text) == compiled.sub("<>", text)
        assert late.split(text) == compiled.split(text)
    assert (late.pattern, late.flags) == (compiled.pattern, compiled.flags)


def test_it_is_compiled_at_its_first_use_and_not_before() -> None:
    broken = late_pattern("(")
    with pytest.raises(re.error):
        broken.search("text")
