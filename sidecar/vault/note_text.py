"""A note's text: what its bytes say, and its front matter, title and tags.

Nothing here touches a file. Edits of the front matter replace only the lines of one key, so that
everything that this program doesn't understand stays as it was typed.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

BOM: Final = b"\xef\xbb\xbf"
# A longer front matter is taken for text: nobody writes one, and parsing it would cost seconds.
FRONT_MATTER_CHARS: Final = 64 * 1024

_FRONT_MATTER: Final = re.compile(
    r"\A---[ \t]*(\r\n|\n|\r)(?P<inner>(?:.*?(?:\r\n|\n|\r))??)(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)",
    re.DOTALL,
)
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>.*?)[ \t]*(?:(?<=[ \t])#+[ \t]*)?$")
_SETEXT: Final = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$")
_FENCE: Final = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_INLINE_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(?:.*?[^`])??(?<!`)\1(?!`)", re.DOTALL)
# A tag begins a word; "#1" is a number, "a#b" and ".../#part" are addresses.
_TAG: Final = re.compile(
    r"(?:(?<=[\s（(\[【「《“‘,，。；;：:、!！?？])|^)#(?P<tag>[\w/\-\U0001F300-\U0001FAFF]+)",
    re.MULTILINE,
)
_PLAIN_TAG: Final = re.compile(r"[^\W\d][\w/\-]*")
_YAML_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


class NotTextError(Exception):
    """The bytes are no UTF-8 text."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The YAML block at the beginning of a note, as far as it is understood."""

    inner: str
    """What stands between the two lines of dashes."""
    start: int
    """Where ``inner`` begins in the text."""
    end: int
    """Where the text after the block begins."""
    title: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What the vault knows about a text."""

    content_hash: str
    front_matter_hash: str | None
    front_matter_title: str | None
    front_matter_tags: tuple[str, ...]
    heading: str | None
    tags: tuple[str, ...]
    body_start: int
    """Where the text after the front matter begins."""


def hash_of(content: str) -> str:
    """Return the content hash: lower-case hex SHA-256 of the UTF-8 bytes."""
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def decode(data: bytes) -> tuple[str, bool]:
    """Return the text of a file and whether it begins with a byte order mark.

    Raises :class:`NotTextError` for anything that isn't UTF-8 text.
    """
    has_bom = data.startswith(BOM)
    try:
        text = (data[len(BOM) :] if has_bom else data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotTextError from error
    if "\0" in text:
        raise NotTextError
    return text, has_bom


def encode(content: str, *, bom: bool) -> bytes:
    """Return the bytes of a file; a text that itself begins with U+FEFF is read back the same."""
    mark = BOM if bom or content.startswith("\ufeff") else b""
    return mark + content.encode("utf-8")


def with_line_endings_of(content: str, former: str) -> str:
    """Return *content* with CRLF where *former* has nothing else and *content* has only LF.

    Editors that know one kind of line ending alone send LF; a text that has CRLF itself is meant
    as it is.
    """
    if "\r\n" not in former or "\r" in content:
        return content
    if former.count("\n") != former.count("\r\n"):
        return content
    return content.replace("\n", "\r\n")


def compare_key(text: str) -> str:
    """Return *text* in the form in which names are compared."""
    return unicodedata.normalize("NFC", text)


def tag_key(tag: str) -> str:
    """Return *tag* in the form in which tags are compared: without regard to case."""
    return unicodedata.normalize("NFC", tag).casefold()


def facts_of(content: str) -> TextFacts:
    """Read everything that the vault keeps about a text."""
    matter = front_matter(content)
    body = content[matter.end :] if matter else content
    lines = list(_text_lines(body))
    written = [*(matter.tags if matter else ()), *_inline_tags(lines)]
    inner = matter.inner.strip() if matter else ""
    return TextFacts(
        content_hash=hash_of(content),
        front_matter_hash=hash_of(inner) if inner else None,
        front_matter_title=matter.title if matter else None,
        front_matter_tags=matter.tags if matter else (),
        heading=_first_heading(lines),
        tags=unique_tags(written),
        body_start=matter.end if matter else 0,
    )


def unique_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return *tags* without those that differ in case alone; the first spelling stays."""
    seen: dict[str, str] = {}
    for tag in tags:
        seen.setdefault(tag_key(tag), tag)
    return tuple(seen.values())


# -- front matter --------------------------------------------------------------------------------


def front_matter(content: str) -> FrontMatter | None:
    """Return the front matter of *content*; None if there is none or it isn't a YAML mapping."""
    if not content.startswith("---"):
        return None
    match = _FRONT_MATTER.match(content[: FRONT_MATTER_CHARS + 8])
    if match is None:
        return None
    inner = match["inner"]
    root = _compose(inner)
    if root is None:
        return None
    title: str | None = None
    tags: tuple[str, ...] = ()
    for key, value in root.value:
        if key.value == "title" and value.id == "scalar":
            title = value.value.strip() or None
            if value.value in ("~", "null") and value.style is None:
                title = None
        elif key.value == "tags":
            tags = tuple(_tags_of_node(value))
    return FrontMatter(inner, match.start("inner"), match.end(), title, tags)


def _compose(inner: str) -> Any:
    """Return the node of the mapping that *inner* is, None if it is none.

    Nodes are read and never built into objects: no alias is expanded, and every value keeps the
    characters that it was written with.
    """
    import yaml  # noqa: PLC0415 - not needed to start

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    root: Any
    try:
        root = yaml.compose(inner, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if root is None:
        return yaml.MappingNode("tag:yaml.org,2002:map", [])
    if root.id != "mapping" or any(key.id != "scalar" for key, _ in root.value):
        return None
    return root


def _tags_of_node(node: Any) -> Iterator[str]:
    if node.id == "sequence":
        written = [item.value for item in node.value if item.id == "scalar"]
    elif node.id == "scalar" and not (node.value in ("~", "null") and node.style is None):
        written = node.value.split(",") if "," in node.value else node.value.split()
    else:
        written = []
    for tag in written:
        cleaned = tag.strip().removeprefix("#").strip()
        if cleaned:
            yield cleaned


def with_tags(content: str, tags: Sequence[str]) -> str:
    """Return *content* with *tags* as the tags of its front matter, which is made if needed.

    A front matter that held nothing but tags goes when there are none any more.
    """
    matter = front_matter(content)
    if matter is None:
        if not tags:
            return content
        newline = "\r\n" if "\r\n" in content else "\n"
        return f"---{newline}tags: {_flow(tags)}{newline}---{newline}{content}"
    if matter.tags == tuple(tags):
        return content
    root = _compose(matter.inner)
    newline = "\r\n" if "\r\n" in content[: matter.end] else "\n"
    found = [(key, value) for key, value in root.value if key.value == "tags"]
    if root.flow_style and root.value:
        inner = _edit_flow_mapping(matter.inner, root, found, tags)
    elif found:
        inner = _edit_tags(matter.inner, *found[-1], tags, newline)
    elif tags:
        inner = f"{_ended(matter.inner, newline)}tags: {_flow(tags)}{newline}"
    else:
        return content
    if not inner.strip():
        return content[matter.end :]
    return content[: matter.start] + inner + content[matter.start + len(matter.inner) :]


def _ended(inner: str, newline: str) -> str:
    return inner if not inner or inner.endswith(("\n", "\r")) else inner + newline


def _edit_tags(inner: str, key: Any, value: Any, tags: Sequence[str], newline: str) -> str:
    start = key.start_mark.index
    end = _end_of(value, key.end_mark.index)
    rest = inner[end:]
    if not tags:
        # The line's end goes too, with a remark that only spoke of the tags.
        line_end = re.match(r"[^\r\n]*(?:\r\n|\n|\r)?", rest)
        return inner[:start] + rest[line_end.end() if line_end else 0 :]
    if value.id == "sequence" and value.flow_style is False and value.value:
        indent = " " * value.value[0].start_mark.column
        dash = " " * max(0, len(indent) - 2)
        items = newline.join(f"{dash}- {_scalar(tag)}" for tag in tags)
        return f"{inner[:start]}{inner[start : key.end_mark.index]}:{newline}{items}{rest}"
    return f"{inner[:start]}{inner[start : key.end_mark.index]}: {_flow(tags)}{rest}"


def _end_of(value: Any, after_key: int) -> int:
    """Return where the written value ends; a block sequence's own mark lies after blank lines."""
    if value.id == "sequence" and value.flow_style is False and value.value:
        return max(_end_of(item, after_key) for item in value.value)
    if value.id == "scalar" and not value.value and value.style is None:
        return max(after_key + 1, int(value.start_mark.index))
    return int(value.end_mark.index)


def _edit_flow_mapping(inner: str, root: Any, found: list[Any], tags: Sequence[str]) -> str:
    if found:
        key, value = found[-1]
        end = _end_of(value, key.end_mark.index)
        return f"{inner[: key.end_mark.index]}: {_flow(tags)}{inner[end:]}"
    after_brace = root.start_mark.index + 1
    return f"{inner[:after_brace]}tags: {_flow(tags)}, {inner[after_brace:]}"


def _flow(tags: Sequence[str]) -> str:
    return "[" + ", ".join(_scalar(tag) for tag in tags) + "]"


def _scalar(tag: str) -> str:
    if _PLAIN_TAG.fullmatch(tag) and tag.lower() not in _YAML_WORDS:
        return tag
    return json.dumps(tag, ensure_ascii=False)


# -- headings and tags of the text ---------------------------------------------------------------


def _text_lines(body: str) -> Iterator[str]:
    """Yield the lines of *body* that are no code block; a blank line stands for each of those."""
    fence: str | None = None
    after_blank = True
    for line in body.splitlines():
        mark = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence is not None:
            closes = mark and mark["mark"].startswith(fence) and not mark["info"].strip()
            if closes:
                fence = None
            yield ""
        elif mark and not (mark["mark"][0] == "`" and "`" in mark["info"]):
            fence = mark["mark"]
            yield ""
        elif after_blank and line.startswith(("    ", "\t")):
            yield ""
            continue
        else:
            yield line
        after_blank = not line.strip()


def _first_heading(lines: Sequence[str]) -> str | None:
    for number, line in enumerate(lines):
        match = _HEADING.match(line)
        if match and match["text"].strip():
            return plain_inline(match["text"])
        if number and _SETEXT.match(line) and _is_paragraph(lines[number - 1]):
            return plain_inline(lines[number - 1].strip())
    return None


def _is_paragraph(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith((">", "- ", "* ", "+ ", "|", "#"))


def plain_inline(text: str) -> str:
    """Return *text* without the marks of emphasis, code and links."""
    text = re.sub(r"!?\[\[(?:[^\]|]*\|)?([^\]]*)\]\]", r"\1", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(\*\*|__|~~|==)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])([*_])(?=\S)(.+?)(?<=\S)\1(?![\w*])", r"\2", text)
    text = re.sub(r"(`+) ?(.+?) ?\1", r"\2", text)
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text).strip()


def _inline_tags(lines: Sequence[str]) -> Iterator[str]:
    text = "\n".join(lines)
    if "#" not in text:
        return
    # Inline code ends with its paragraph at the latest.
    for paragraph in text.split("\n\n"):
        if "#" not in paragraph:
            continue
        shown = _INLINE_CODE.sub(" ", paragraph) if "`" in paragraph else paragraph
        for match in _TAG.finditer(shown):
            tag = match["tag"].strip("/")
            if tag and not tag.isdigit():
                yield tag
