"""Texts of notes: edits of the front matter change nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.vault.note_text import (
    decode,
    encode,
    facts_of,
    front_matter,
    unique_tags,
    with_line_endings_of,
    with_tags,
)

KEYS = st.sampled_from(["title", "aliases", "created", "中文", "x-y", '"quoted"'])
VALUES = st.sampled_from(
    ["plain", "'single'", '"double: #"', "[a, b]", "2024-05-01", "", "|\n  block\n  text", "\n  - one\n  - two",
     "\n- top\n- level", "{a: 1}", "text # remark", "\n  nested:\n    deep: 1"]
)  # fmt: skip
TAGS = st.lists(
    st.text(
        st.characters(categories=["L", "N", "P", "S"], exclude_characters=","),
        min_size=1,
        max_size=8,
    )
    .map(lambda tag: tag.strip("#").strip())
    .filter(bool),
    max_size=4,
).map(lambda tags: list(unique_tags(tags)))
OLD_TAGS = st.sampled_from(
    [None, "[old]", "old, older", "\n  - old\n  - older", "\n- old", "[]", "", "old # why"]
)


@st.composite
def notes(draw: st.DrawFn) -> str:
    """A note with a front matter of several keys, with LF or CRLF."""
    pairs = [(key, draw(VALUES)) for key in draw(st.lists(KEYS, unique=True, max_size=4))]
    tags = draw(OLD_TAGS)
    if tags is not None:
        pairs.insert(draw(st.integers(0, len(pairs))), ("tags", tags))
    lines = "".join(f"{key}: {value}\n" for key, value in pairs)
    text = f"---\n{lines}---\n" + draw(st.sampled_from(["", "body\n", "\n# Heading\n", "---\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(notes(), TAGS)
def test_only_the_tags_change(content: str, tags: list[str]) -> None:
    before = front_matter(content)
    assert before is not None
    changed = with_tags(content, tags)
    after = front_matter(changed)
    body = content[before.end :]
    if after is None or (not tags and not changed.startswith("---")):
        assert not tags
        assert changed == body
        return
    if tags or after.inner.strip():
        assert list(after.tags) == tags
        assert changed[after.end :] == body
        assert after.title == before.title
        assert _without_tags(after.inner) == _without_tags(before.inner)
    assert with_tags(changed, tags) == changed


def _without_tags(inner: str) -> list[str]:
    """Return the lines that don't belong to the tags."""
    kept, inside = [], False
    for line in inner.splitlines():
        if line.startswith("tags:"):
            inside = True
        elif not (inside and line.startswith(("  - ", "- "))):
            inside = False
            kept.append(line)
    return kept


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.booleans())
def test_bytes_and_text(text: str, bom: bool) -> None:
    assert decode(encode(text, bom=bom)) == (text, bom or text.startswith("\ufeff"))


@given(st.text("a\r\n"), st.text("b\r\n"))
def test_line_endings(content: str, former: str) -> None:
    result = with_line_endings_of(content, former)
    assert result.replace("\r\n", "\n") == content.replace("\r\n", "\n")
    if "\r" in content or "\r\n" not in former:
        assert result == content


@given(st.text(st.sampled_from("-#`~ \n\rab:[]{}'\"|>*&!%@字")))
def test_no_text_is_too_odd(content: str) -> None:
    facts = facts_of(content)
    assert 0 <= facts.body_start <= len(content)
    for tags in (["new"], []):
        changed = with_tags(content, tags)
        if tags:
            matter = front_matter(changed)
            assert matter is not None
            assert list(matter.tags) == tags


def test_code_ends_with_its_paragraph() -> None:
    assert facts_of("a ` lone\n\n#tag\n\nanother ` lone").tags == ("tag",)
