"""Cuts a note into the blocks that are searched, cited and embedded.

A block is a paragraph, a list, a table, a code block, a formula or a diagram under its headings.
These stay whole unless they are very long. A line scanner does it, since a Markdown parser takes
some hundred times as long and the shape of a document is all that matters here.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

BlockKind = Literal[
    "paragraph", "list", "quote", "table", "code", "math", "diagram", "heading", "empty"
]

# Longer ones are cut: prose at sentences, everything else at lines.
LIMITS: Final[dict[BlockKind, int]] = {"paragraph": 1200, "quote": 2000, "list": 3000}
OTHER_LIMIT: Final = 6000

# What a line begins with that isn't plain text: fences, formulas, headings, rules and list items.
_MARKS: Final = frozenset("`~$#*-_=+|:")

_FENCE: Final = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_HEADING: Final = re.compile(
    r"^ {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<text>.*?))?[ \t]*(?:(?<=[ \t])#+[ \t]*)?$"
)
_SETEXT: Final = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_BREAK: Final = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM: Final = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_TABLE_RULE: Final = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_SENTENCE: Final = re.compile(r"(?<=[。！？；…])(?=[^”」』）])|(?<=[.!?;])\s+")


class Block(NamedTuple):
    """A part of a note: ``text`` is ``content[start:end]``."""

    block_id: str
    kind: BlockKind
    heading_path: tuple[str, ...]
    start: int
    end: int
    text: str


class _Piece(NamedTuple):
    kind: BlockKind
    heading_path: tuple[str, ...]
    start: int
    end: int


def cut_blocks(note_id: str, content: str, body_start: int = 0) -> list[Block]:
    """Return the blocks of *content* from *body_start* on, where its front matter ends.

    A block's id follows from the note and the block's text, so it stays when anything else of the
    note changes. A note without text has one empty block, which stands for its title.
    """
    blocks: list[Block] = []
    seen: dict[str, int] = {}
    for piece in _Cutter(content, body_start).pieces():
        for start, end in _parts(content, piece):
            text = content[start:end]
            occurrence = seen.get(text, 0)
            seen[text] = occurrence + 1
            block_id = _block_id(note_id, text, occurrence)
            blocks.append(Block(block_id, piece.kind, piece.heading_path, start, end, text))
    if not blocks:
        blocks.append(Block(_block_id(note_id, "", 0), "empty", (), body_start, body_start, ""))
    return blocks


def _block_id(note_id: str, text: str, occurrence: int) -> str:
    digest = hashlib.sha256(f"{note_id}\0{occurrence}\0{text}".encode()).hexdigest()
    return f"block_{digest[:26]}"


def _parts(content: str, piece: _Piece) -> Iterator[tuple[int, int]]:
    """Yield the ranges that a piece is cut into, without blanks at their ends."""
    limit = LIMITS.get(piece.kind, OTHER_LIMIT)
    start = piece.start
    while piece.end - start > limit:
        cut = _cut_point(content, start, start + limit, prose=piece.kind == "paragraph")
        yield from _trimmed(content, start, cut)
        start = cut
    yield from _trimmed(content, start, piece.end)


def _cut_point(content: str, start: int, latest: int, *, prose: bool) -> int:
    """Return where to cut: the last end of a line or sentence that leaves half a block or more."""
    earliest = start + (latest - start) // 2
    line_end = content.rfind("\n", earliest, latest)
    if line_end >= 0 and not prose:
        return line_end + 1
    ends = [match.end() for match in _SENTENCE.finditer(content, earliest, latest)]
    if ends:
        return ends[-1]
    if line_end >= 0:
        return line_end + 1
    blank = content.rfind(" ", earliest, latest)
    return blank + 1 if blank >= 0 else latest


def _trimmed(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    text = content[start:end].rstrip()
    if text:
        end = start + len(text)
        yield end - len(text.lstrip("\r\n")), end


class _Cutter:
    """Goes through the lines once."""

    def __init__(self, content: str, body_start: int) -> None:
        self._lines = content[body_start:].split("\n")
        self._offsets: list[int] = []
        offset = body_start
        for line in self._lines:
            self._offsets.append(offset)
            offset += len(line) + 1
        self._offsets.append(min(offset, len(content)))
        self._headings: list[tuple[int, str]] = []
        self._path: tuple[str, ...] = ()
        self._bare_heading: int | None = None
        """The line of a heading that nothing stands under yet."""
        self._pieces: list[_Piece] = []

    def pieces(self) -> list[_Piece]:
        number = 0
        while number < len(self._lines):
            number = self._next(number)
        self._end_bare_heading(0)
        return self._pieces

    def _next(self, number: int) -> int:
        """Handle what begins at line *number* and return the line after it."""
        line = self._lines[number].rstrip("\r")
        stripped = line.strip()
        if not stripped:
            return number + 1
        after = self._marked(number, line, stripped) if stripped[0] in _MARKS else None
        return self._text(number) if after is None else after

    def _marked(self, number: int, line: str, stripped: str) -> int | None:
        """Handle a code block, formula, heading or rule and return the line after it."""
        if stripped.startswith(("```", "~~~")):
            end = self._fence_end(number)
            if end is not None:
                info = stripped.lstrip("`~").strip().lower()
                kind: BlockKind = "diagram" if info.startswith("mermaid") else "code"
                return self._emit(kind, number, end)
        if stripped.startswith("$$"):
            end = self._math_end(number)
            if end is not None:
                return self._emit("math", number, end)
        if stripped.startswith("#"):
            heading = _HEADING.match(line)
            if heading:
                self._open_heading(len(heading["level"]), heading["text"] or "", number)
                return number + 1
        return number + 1 if _BREAK.match(line) else None

    def _text(self, first: int) -> int:
        """Handle a paragraph, list, quote or table."""
        kind: BlockKind = "quote" if self._lines[first].lstrip().startswith(">") else "paragraph"
        number = first
        while number < len(self._lines):
            line = self._lines[number].rstrip("\r")
            stripped = line.strip()
            if not stripped:
                if kind != "list" or not self._list_goes_on(number):
                    break
                number += 1
                continue
            begins = stripped[0]
            if not (begins in _MARKS or begins.isdecimal() or kind == "list" or "|" in line):
                # Plain text begins and ends nothing; most lines are that.
                number += 1
                continue
            if number > first and kind == "paragraph" and _SETEXT.match(line):
                return self._setext(first, number, line)
            if number > first and self._interrupts(line, number, kind):
                break
            if _ITEM.match(line) and not _BREAK.match(line):
                kind = "list"
            elif (
                number == first + 1
                and kind == "paragraph"
                and "|" in line
                and _TABLE_RULE.match(line)
            ):
                kind = "table"
            fence_end = self._fence_end(number) if kind == "list" else None
            number = fence_end if fence_end is not None else number + 1
        return self._emit(kind, first, number)

    def _setext(self, first: int, number: int, line: str) -> int:
        text = " ".join(part.strip() for part in self._lines[first:number])
        self._open_heading(1 if line.lstrip().startswith("=") else 2, text, first, number)
        return number + 1

    def _interrupts(self, line: str, number: int, kind: BlockKind) -> bool:
        """Whether *line* begins something new though no blank line stands before it."""
        indented = line.startswith(("  ", "\t"))
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")) and not (kind == "list" and indented):
            return self._fence_end(number) is not None
        if stripped.startswith("$$") and not (kind == "list" and indented):
            return self._math_end(number) is not None
        if stripped.startswith("#") and _HEADING.match(line):
            return True
        return kind != "table" and bool(_BREAK.match(line))

    def _list_goes_on(self, blank: int) -> bool:
        """Whether the list continues after the blank line: with an item, or indented text."""
        number = blank
        while number < len(self._lines) and not self._lines[number].strip():
            number += 1
        if number == len(self._lines):
            return False
        line = self._lines[number]
        return line.startswith(("  ", "\t")) or bool(_ITEM.match(line) and not _BREAK.match(line))

    def _fence_end(self, first: int) -> int | None:
        """Return the line after a code block that begins at *first*; None if none does."""
        opening = _FENCE.match(self._lines[first].rstrip("\r"))
        if opening is None or (opening["mark"][0] == "`" and "`" in opening["info"]):
            return None
        for number in range(first + 1, len(self._lines)):
            stripped = self._lines[number].strip()
            if stripped.startswith(opening["mark"]) and not stripped.strip(opening["mark"][0]):
                return number + 1
        return len(self._lines)

    def _math_end(self, first: int) -> int | None:
        stripped = self._lines[first].strip()
        if len(stripped) > 4 and stripped.endswith("$$"):
            return first + 1
        # Marks on lines of their own may hold blank lines between them.
        alone = stripped == "$$"
        for number in range(first + 1, min(len(self._lines), first + 400)):
            stripped = self._lines[number].strip()
            if stripped.endswith("$$"):
                return number + 1
            if not stripped and not alone:
                return None
        return None

    def _open_heading(self, level: int, text: str, first: int, last: int | None = None) -> None:
        self._end_bare_heading(level)
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, plain(text)))
        self._path = tuple(text for _, text in self._headings if text)
        self._bare_heading = first
        self._bare_end = (last if last is not None else first) + 1

    def _end_bare_heading(self, next_level: int) -> None:
        """A heading that nothing stands under is a block, so that it can be found."""
        if self._bare_heading is None:
            return
        level, text = self._headings[-1]
        if text and (next_level == 0 or next_level <= level):
            path = self._path[:-1]
            start, end = self._offsets[self._bare_heading], self._offsets[self._bare_end]
            self._pieces.append(_Piece("heading", path, start, end))
        self._bare_heading = None

    def _emit(self, kind: BlockKind, first: int, after: int) -> int:
        self._bare_heading = None
        start, end = self._offsets[first], self._offsets[after]
        self._pieces.append(_Piece(kind, self._path, start, end))
        return after


_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\\]|\\.|\([^()]*\))*\)")
_WIKI_LINK: Final = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_EMPHASIS: Final = (
    re.compile(r"(\*\*\*|\*\*|~~|==)(?=\S)(.+?)(?<=\S)\1", re.DOTALL),
    re.compile(r"(?<![A-Za-z0-9*])(\*)(?=[^\s*])(.+?)(?<=[^\s*])\1(?![A-Za-z0-9*])", re.DOTALL),
    re.compile(r"(?<!\w)(__|_)(?=\S)(.+?)(?<=\S)\1(?!\w)", re.DOTALL),
)
_CODE: Final = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINE_MARK: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|(?:>[ \t]?)+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,9}[.)][ \t]+)+",
    re.MULTILINE,
)
# Without any of these, and without a number at the beginning of a line, no mark can be there.
_MARKED: Final = re.compile(r"[\\\[*_~=`<>#]|^[ \t]*[-+\d]", re.MULTILINE)
_FENCE_LINE: Final = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$\n?", re.MULTILINE)
_RULE_LINE: Final = re.compile(r"^[ \t|:\-]*-[ \t|:\-]*$\n?", re.MULTILINE)
_HTML_TAG: Final = re.compile(r"</?[a-zA-Z][^<>\n]{0,500}>")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_ASIDE: Final = 0xF0000
_ESCAPED: Final = re.compile(f"[{chr(_ASIDE + 0x21)}-{chr(_ASIDE + 0x7E)}]")


def plain(text: str, kind: BlockKind = "paragraph") -> str:
    """Return *text* as a person reads it: without the marks of Markdown."""
    if kind in ("code", "diagram"):
        return _FENCE_LINE.sub("", text).strip()
    if kind == "math":
        return text.strip().strip("$").strip()
    if kind == "table":
        text = _RULE_LINE.sub("", text).replace("|", " ")
    elif not _MARKED.search(text):
        return text.strip()
    if "\\" in text:
        # What is escaped is no mark: it is put aside where no mark is looked for.
        text = _ESCAPE.sub(lambda match: chr(_ASIDE + ord(match[1])), text)
    if "[" in text:
        text = _LINK.sub(r"\1", _WIKI_LINK.sub(r"\1", text))
    if kind == "list" and "```" in text:
        text = _FENCE_LINE.sub("", text)
    text = _LINE_MARK.sub("", text)
    for mark in _EMPHASIS:
        text = mark.sub(r"\2", text)
    text = _CODE.sub(r"\2", text)
    if "<" in text:
        text = _HTML_TAG.sub("", text)
    return _ESCAPED.sub(lambda match: chr(ord(match[0]) - _ASIDE), text).strip()
