"""The Markdown dialect, in a parser that hostile text can't keep busy and that can be stopped.

Two things differ from the parser's own behaviour. Blocks nested deeper than ``MAX_NESTING`` are kept
as source instead of being dropped. And a paragraph whose brackets would take quadratic time is kept
as plain text once its steps are used up.
"""

import re
from typing import Any, Final

from linkify_it import LinkifyIt
from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from sidecar.export.cancellation import StopSignal

MAX_NESTING: Final = 50
STEPS_PER_CHARACTER: Final = 12
STEPS_AT_LEAST: Final = 20_000

# Keys of the parser's environment: the lines of blocks that were kept as source.
TOO_DEEP: Final = "too_deep"
TOO_TANGLED: Final = "too_tangled"


_WIKI_LINK: Final = re.compile(
    r"(?P<embedded>!?)\[\[(?P<target>[^\[\]|\n]{1,500})(?:\|(?P<words>[^\[\]\n]{1,500}))?\]\]"
)


_ADDRESS: Final = re.compile("://|@")
_MARKS: Final = (
    "\u2018-\u201f\u2026\u2014\u3001-\u3003\u3008-\u3011\u3014-\u301b"
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff5e"
)
_CHINESE_MARKS: Final = re.compile(f"([{_MARKS}]+)")
_TO_THE_END: Final = re.compile(rf"[^\s{_MARKS}]*")


class _TooTangled(Exception):
    """The steps of a paragraph are used up."""


class _BoundedBlock(ParserBlock):
    def __init__(self, stop: StopSignal) -> None:
        super().__init__()
        self._stop = stop

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803
        self._stop.check()
        if state.level < MAX_NESTING:
            super().tokenize(state, startLine, endLine)
            return
        line = startLine
        while line < endLine and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
            line += 1
        state.line = max(line, startLine + 1)
        token = state.push("fence", "code", 0)
        token.map = [startLine, state.line]
        token.content = state.getLines(startLine, state.line, state.blkIndent, True)
        state.env.setdefault(TOO_DEEP, []).append(startLine)


class _BoundedInline(ParserInline):
    def __init__(self, stop: StopSignal) -> None:
        super().__init__()
        self._stop = stop
        self._steps_left = 0

    def begin(self, characters: int) -> None:
        """Grant the steps of one paragraph."""
        self._steps_left = max(STEPS_AT_LEAST, STEPS_PER_CHARACTER * characters)

    def skipToken(self, state: StateInline) -> None:  # noqa: N802
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooTangled
        if self._steps_left % 1024 == 0:
            self._stop.check()
        super().skipToken(state)


def _inline_rule(inline: _BoundedInline, stop: StopSignal) -> Any:
    def parse_paragraphs(state: StateCore) -> None:
        for token in state.tokens:
            if token.type != "inline":
                continue
            stop.check()
            token.children = []
            inline.begin(len(token.content))
            try:
                state.md.inline.parse(token.content, state.md, state.env, token.children)
            except (_TooTangled, RecursionError):
                token.children = [Token("text", "", 0, content=token.content)]
                state.env.setdefault(TOO_TANGLED, []).append((token.map or [0])[0])

    return parse_paragraphs


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """Read ``[[target|words]]`` and ``![[target]]``."""
    match = _WIKI_LINK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        token = state.push("wiki_link", "", 0)
        token.content = (match["words"] or match["target"]).strip()
        token.meta = {"target": match["target"].strip(), "embedded": bool(match["embedded"])}
    state.pos = match.end()
    return True


class _Addresses(LinkifyIt):  # type: ignore[misc]
    """Finds addresses; one ends where a Chinese sentence goes on."""

    def match_at_start(self, text: str) -> Any:
        """Return the address with which *text* begins."""
        end = _TO_THE_END.match(text)
        return super().match_at_start(end[0] if end else text)


def _end_addresses_at_chinese_marks(state: StateCore) -> None:
    """Part texts where a Chinese sentence goes on after an address, which has no blank behind it."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        children = []
        for child in token.children or []:
            if child.type != "text" or not _ADDRESS.search(child.content):
                children.append(child)
                continue
            children += [
                Token("text", "", 0, content=part, level=child.level)
                for part in _CHINESE_MARKS.split(child.content)
                if part
            ]
        token.children = children


def _any_address(url: str) -> bool:  # noqa: ARG001 - called with a name
    return True


def make_parser(stop: StopSignal) -> MarkdownIt:
    """Return a parser of the dialect.

    CommonMark, tables, strikethrough, footnotes, formulas, front matter, links between notes, and
    addresses that are links by themselves.

    Any address is let through as a link or picture; exporters decide what they keep of it.
    """
    parser = MarkdownIt("commonmark")
    inline = _BoundedInline(stop)
    parser.inline, parser.block = inline, _BoundedBlock(stop)
    parser.configure("commonmark", {"maxNesting": MAX_NESTING * 2, "linkify": True})
    parser.enable(["table", "strikethrough", "linkify"])
    # `example.com` may as well be a file; `https://example.com` and `me@example.com` are meant.
    parser.linkify = _Addresses(options={"fuzzy_link": False, "fuzzy_ip": False})
    inline.ruler.before("link", "wiki_link", _wiki_link)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(footnote_plugin)
    parser.use(front_matter_plugin)
    parser.core.ruler.at("inline", _inline_rule(inline, stop))
    parser.core.ruler.before("linkify", "chinese_marks", _end_addresses_at_chinese_marks)
    parser.validateLink = _any_address  # type: ignore[method-assign]
    return parser
