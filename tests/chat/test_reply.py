"""How a reply is put together, piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.reply import Reply, ReplyText

PARTED = None
"""Stands for a tool call between two pieces of text."""


def shown(*pieces: str | None) -> str:
    text, told = ReplyText(), []
    for piece in pieces:
        if piece is None:
            text.part()
        else:
            told.append(text.add(piece))
    assert "".join(told) == str(text), "what is streamed is what is stored"
    return str(text)


@pytest.mark.proves("chat.stream.paragraph-boundary")
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["one", PARTED, "two"], "one\n\ntwo"),
        (["one\n", PARTED, "two"], "one\n\ntwo"),
        (["one\n\n\n", PARTED, "\n\n", "\ntwo\n\n"], "one\n\ntwo"),
        (["\n", " \n", "one"], "one"),
        (["one", "\n", "\n", "two", "\n"], "one\n\ntwo"),
        (["one\n", "  two"], "one\n  two"),
        (["\n    code"], "    code"),
        ([PARTED, "one", PARTED, PARTED, "two"], "one\n\ntwo"),
        (["one", PARTED, "\n \n", PARTED, "two"], "one\n\ntwo"),
        (["\n", PARTED, "\n"], ""),
        (["one\r\n", PARTED, "\r\ntwo"], "one\n\ntwo"),
        (["one ", PARTED, "two"], "one \n\ntwo"),
        (["one \n", PARTED, "two"], "one \n\ntwo"),
        (["one\n\n", "\n\n\ntwo"], "one\n\n\n\n\ntwo"),
        (["one", "", "two"], "onetwo"),
    ],
)
def test_paragraphs(pieces: list[str | None], expected: str) -> None:
    assert shown(*pieces) == expected


PIECES = st.lists(st.one_of(st.none(), st.text(" \n\tab", max_size=6)), max_size=12)


@pytest.mark.proves("chat.stream.paragraph-boundary")
@given(pieces=PIECES, data=st.data())
def test_however_text_is_cut_it_reads_the_same(
    pieces: list[str | None], data: st.DataObject
) -> None:
    whole = shown(*pieces)
    # One blank line where text is parted, none at the ends, and not a character of a paragraph lost.
    assert whole == whole.strip("\n")
    segments, current = [], ""
    for piece in [*pieces, None]:
        if piece is not None:
            current += piece
            continue
        segments.append(current)
        current = ""
    assert "".join(whole.split()) == "".join("".join(segments).split())
    recut: list[str | None] = []
    for piece in pieces:
        if piece is None:
            recut.append(None)
            continue
        at = data.draw(st.integers(0, len(piece)))
        recut += [piece[:at], piece[at:]]
    assert shown(*recut) == whole


@pytest.mark.proves("chat.activity.shape", "chat.activity.details-in-tool-calls")
def test_activity() -> None:
    reply = Reply()
    for piece in ("I ", "think"):
        reply.think(piece)
    reply.text.add("text between doesn't part thinking")
    reply.think(" on")
    reply.call("a", "rag.search").completed = True
    reply.call("b", "rag.search")
    reply.think("again")
    assert reply.activity() == [
        {"type": "thinking", "text": "I think on"},
        {"type": "tool_call", "tool_call_id": "a"},
        {"type": "tool_call", "tool_call_id": "b"},
        {"type": "thinking", "text": "again"},
    ]
    assert reply.thinking == "I think onagain"
    assert [(tool["tool_call_id"], tool["status"]) for tool in reply.tool_records()] == [
        ("a", "completed"),
        ("b", "error"),
    ]
    assert (Reply().thinking, Reply().activity()) == (None, [])
