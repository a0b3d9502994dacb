"""Turns Markdown into the document tree."""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from markdown_it.token import Token

from sidecar.export.cancellation import StopSignal
from sidecar.export.document import Document, Node, NodeType
from sidecar.export.links import anchor_of
from sidecar.export.markdown_parser import TOO_DEEP, TOO_TANGLED, make_parser
from sidecar.kernel.catalogue import Localised

# Exporters walk the tree by recursion.
MAX_DEPTH: Final = 150
FUNCTION_PLOT_FENCES: Final = ("function-plot", "plot")
_TASK: Final = re.compile(r"\[([ xX])\](?=\s|$)\s?")
_LINE_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_CALLOUT: Final = re.compile(r"\[!([A-Za-z][A-Za-z0-9_-]{0,40})\][+-]?[ \t]*")
_PICTURE_NAME: Final = re.compile(r"\.(png|jpe?g|webp|gif|svg|bmp|avif)$", re.IGNORECASE)
_COMMENT_ONLY: Final = re.compile(r"\s*(<!--.*?-->\s*)+", re.DOTALL)

_CONTAINERS: Final[dict[str, NodeType]] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "blockquote_open": "blockquote",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "list_item",
    "table_open": "table",
    "th_open": "paragraph",
    "td_open": "paragraph",
    "footnote_block_open": "list",
    "footnote_open": "list_item",
    "em_open": "emphasis",
    "strong_open": "strong",
    "s_open": "emphasis",
    "link_open": "link",
}

_ATTRIBUTES: Final[dict[str, Callable[[Token], dict[str, Any]]]] = {
    "heading_open": lambda token: {"level": int(token.tag[1])},
    "paragraph_open": lambda token: {"tight": token.hidden},
    "bullet_list_open": lambda _: {"ordered": False},
    "ordered_list_open": lambda token: {"ordered": True, "start": int(token.attrs.get("start", 1))},
    "list_item_open": lambda _: {"checked": None},
    "footnote_block_open": lambda _: {"ordered": True, "start": 1, "footnotes": True},
    "footnote_open": lambda token: {"checked": None, "footnote": token.meta["id"] + 1},
    "s_open": lambda _: {"style": "strikethrough"},
    "link_open": lambda token: {
        "href": str(token.attrs.get("href", "")),
        "title": token.attrs.get("title"),
    },
}


def parse_markdown(source: str, stop: StopSignal) -> Document:
    """Return the document of a Markdown text; its front matter is left out.

    The same text gives the same tree with the same node ids. Raises ``Stopped`` once *stop* is set.
    """
    environment: dict[str, Any] = {}
    tokens = make_parser(stop).parse(source, environment)
    builder = _TreeBuilder(stop)
    builder.add_all(tokens)
    for key in (TOO_DEEP, TOO_TANGLED):
        for line in environment.get(key, ()):
            builder.warn("warning.export_source_kept", line + 1)
    for reference in environment.get("footnotes", {}).get("refs", {}).values():
        if reference == -1:
            builder.warn("warning.export_footnote_unused", None)
    return Document(builder.root, warnings=builder.warnings)


class _TreeBuilder:
    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._count = 0
        self._line = 1
        self._row = self._column = -1
        self.warnings: list[Localised] = []
        self.root = self._node("document")
        self._open = [self.root]
        self._leaves: dict[str, Callable[[Token], None]] = {
            "text": lambda token: self._text(token.content),
            "text_special": lambda token: self._text(token.content),
            "softbreak": lambda _: self._text("\n"),
            "hardbreak": lambda _: self._text("\n", **{"break": True}),
            "code_inline": lambda token: self._text(token.content, code=True),
            "html_inline": self._html_inline,
            "html_block": self._html_block,
            "image": self._image,
            "math_inline": lambda token: self._leaf("math_inline", token.content),
            "math_inline_double": lambda token: self._leaf(
                "math_block", token.content, inline=True
            ),
            "math_block": lambda token: self._leaf("math_block", token.content),
            "math_block_label": lambda token: self._leaf("math_block", token.content),
            "fence": self._fence,
            "code_block": lambda token: self._leaf("code_block", token.content, language=None),
            "hr": lambda _: self._leaf("paragraph", None, rule=True),
            "wiki_link": self._wiki_link,
            "footnote_ref": self._footnote_reference,
            "footnote_anchor": self._footnote_anchor,
        }

    def warn(self, key: str, line: int | None, **params: object) -> None:
        warning = Localised(key, ({"line": line} if line else {}) | params)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def add_all(self, tokens: list[Token]) -> None:
        for index, token in enumerate(tokens):
            if index % 256 == 0:
                self._stop.check()
            if token.map and token.nesting >= 0:
                self._line = token.map[0] + 1
            if token.type == "inline":
                self.add_all(token.children or [])
            elif token.type in _CONTAINERS:
                self._open_container(token)
            elif token.nesting == -1:
                self._close_container(token)
            elif token.type in self._leaves:
                self._leaves[token.type](token)
            elif token.type == "tr_open":
                self._row, self._column = self._row + 1, -1

    # -- containers ----------------------------------------------------------------------------

    def _open_container(self, token: Token) -> None:
        if len(self._open) >= MAX_DEPTH:
            # Emphasis alone nests without a bound of the parser's; its words stay, one level up.
            self.warn("warning.export_source_kept", self._line)
            self._open.append(self._open[-1])
            return
        node = self._append(self._node(_CONTAINERS[token.type], **self._attributes(token)))
        self._open.append(node)

    def _attributes(self, token: Token) -> dict[str, Any]:
        if token.type in ("th_open", "td_open"):
            return self._cell_attributes(token)
        if token.type == "table_open":
            self._row = -1
        read = _ATTRIBUTES.get(token.type)
        return read(token) if read else {}

    def _cell_attributes(self, token: Token) -> dict[str, Any]:
        self._column += 1
        return {
            "row": self._row,
            "column": self._column,
            "header": token.type == "th_open",
            "align": str(token.attrs.get("style", "")).removeprefix("text-align:") or None,
        }

    def _close_container(self, token: Token) -> None:
        if f"{token.type.removesuffix('_close')}_open" not in _CONTAINERS:
            return
        node = self._open.pop()
        if node is self._open[-1]:
            return
        if node.type == "list_item" and "footnote" not in node.attributes:
            _read_task(node)
        elif node.type == "blockquote":
            self._read_callout(node)

    def _read_callout(self, block: Node) -> None:
        """Turn ``[!note] Title`` at the beginning of a quote into its attribute and a bold title."""
        paragraph = block.children[0] if block.children else None
        if paragraph is None or paragraph.type != "paragraph" or not paragraph.children:
            return
        first = paragraph.children[0]
        match = _CALLOUT.match(first.text or "") if first.type == "text" else None
        if match is None or first.attributes.keys() != {"line"}:
            return
        block.attributes["callout"] = match[1].lower()
        first.text = (first.text or "")[match.end() :]
        title, rest = _split_line(paragraph.children)
        if not any(node.plain_text().strip() for node in title):
            title = [self._node("text")]
            title[0].text = match[1].capitalize()
        heading, strong = self._node("paragraph", tight=False), self._node("strong")
        strong.children, heading.children = title, [strong]
        paragraph.children = rest
        block.children[:1] = [heading, paragraph] if rest else [heading]

    # -- leaves --------------------------------------------------------------------------------

    def _node(self, kind: NodeType, /, **attributes: Any) -> Node:
        self._count += 1
        return Node(f"node_{self._count:02d}", kind, {"line": self._line} | attributes)

    def _append(self, node: Node) -> Node:
        self._open[-1].children.append(node)
        return node

    def _leaf(self, kind: NodeType, text: str | None, /, **attributes: Any) -> None:
        node = self._append(self._node(kind, **attributes))
        node.text = text

    def _text(self, text: str, **attributes: Any) -> None:
        siblings = self._open[-1].children
        plain = not attributes and siblings and siblings[-1].type == "text"
        if plain and siblings[-1].attributes.keys() == {"line"}:
            siblings[-1].text = (siblings[-1].text or "") + text
        elif text:
            self._leaf("text", text, **attributes)

    def _fence(self, token: Token) -> None:
        words = token.info.split()
        language = words[0].strip("{}.").lower() if words else None
        if language == "mermaid":
            self._leaf("mermaid", token.content)
        elif language in FUNCTION_PLOT_FENCES:
            self._leaf("function_plot", token.content)
        else:
            self._leaf("code_block", token.content, language=language or None)

    def _image(self, token: Token) -> None:
        alternative = "".join(_words(token.children or []))
        source, title = str(token.attrs.get("src", "")), token.attrs.get("title")
        self._append(self._node("image", src=source, alt=alternative, title=title))

    def _wiki_link(self, token: Token) -> None:
        target, words = token.meta["target"], token.content
        if token.meta["embedded"] and _PICTURE_NAME.search(target):
            # `|300` is how wide it is to be shown, no description.
            alternative = "" if words.isdigit() else words
            self._append(self._node("image", src=quote(target), alt=alternative, title=None))
            return
        note, _, heading = target.partition("#")
        address = f"#{anchor_of(heading)}" if heading and not note else f"{quote(note)}.md"
        self._open.append(self._append(self._node("link", href=address, title=None)))
        self._text(words.lstrip("#"))
        self._open.pop()

    def _html_inline(self, token: Token) -> None:
        if _LINE_BREAK.fullmatch(token.content):
            self._text("\n", **{"break": True})
        elif token.content.startswith("<!--"):
            self.warn("warning.export_comment_left_out", self._line)
        else:
            self.warn("warning.export_html_kept", self._line)
            self._text(token.content, code=True, html=True)

    def _html_block(self, token: Token) -> None:
        if _COMMENT_ONLY.fullmatch(token.content):
            self.warn("warning.export_comment_left_out", self._line)
            return
        self.warn("warning.export_html_kept", self._line)
        self._leaf("code_block", token.content, language="html", html=True)

    def _footnote_reference(self, token: Token) -> None:
        number, repeat = token.meta["id"] + 1, token.meta["subId"]
        link = self._append(
            self._node(
                "link", href=f"#footnote-{number}", title=None, footnote=number, repeat=repeat
            )
        )
        self._open.append(link)
        self._text(str(number))
        self._open.pop()

    def _footnote_anchor(self, token: Token) -> None:
        number, repeat = token.meta["id"] + 1, token.meta["subId"]
        target = f"#footnote-{number}-from-{repeat + 1}"
        self._open.append(self._append(self._node("link", href=target, title=None, back=number)))
        self._text("↩")
        self._open.pop()


def _words(tokens: list[Token]) -> list[str]:
    found = []
    for token in tokens:
        if token.children:
            found += _words(token.children)
        elif token.type in ("softbreak", "hardbreak"):
            found.append(" ")
        else:
            found.append(token.content)
    return found


def _split_line(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return what of a paragraph's children stands before its first line break, and what after it."""
    for index, node in enumerate(nodes):
        if node.type == "text" and "\n" in (node.text or ""):
            before, _, after = (node.text or "").partition("\n")
            rest = nodes[index + 1 :]
            if after:
                rest = [Node(f"{node.node_id}_b", "text", dict(node.attributes), [], after), *rest]
            node.text = before
            node.attributes.pop("break", None)
            return [*nodes[:index], *([node] if before else [])], rest
    return nodes, []


def _read_task(item: Node) -> None:
    """Turn ``[x]`` at the beginning of a list item into its attribute ``checked``."""
    paragraph = item.children[0] if item.children else None
    if paragraph is None or paragraph.type != "paragraph" or not paragraph.children:
        return
    first = paragraph.children[0]
    match = _TASK.match(first.text or "") if first.type == "text" else None
    if match and first.attributes.keys() == {"line"}:
        item.attributes["checked"] = match[1] != " "
        first.text = (first.text or "")[match.end() :]
