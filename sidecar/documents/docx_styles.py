"""What the styles and the numbering of a DOCX file say of its paragraphs."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sidecar.documents.xml_elements import Element, attribute, child, children, number

MOST_LEVEL: Final = 8
_MARKDOWN_LEVELS: Final = 6
_MOST_STYLES_UP: Final = 20
_BODY_LEVEL: Final = 9


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A paragraph's list and its level in it, from 0."""

    list_id: str
    level: int


class Styles:
    """The styles of paragraphs, each with those that it is based on."""

    def __init__(self, root: Element | None) -> None:
        """*root* is the part ``styles.xml``, None if there is none."""
        self._styles = {attribute(style, "styleId"): style for style in children(root, "style")}

    def heading_level(self, properties: Element | None) -> int | None:
        """Return the level from 1 to 6 of a paragraph with these properties, None if it is no heading."""
        level = child(properties, "outlineLvl")
        if level is not None:
            return _markdown_level(level)
        for style in self._of(properties):
            name = attribute(child(style, "name"), "val").lower()
            if name == "title":
                return 1
            if name.startswith("heading "):
                return number(name.removeprefix("heading "), 1, most=_MARKDOWN_LEVELS) or 1
            level = child(style, "pPr", "outlineLvl")
            if level is not None:
                return _markdown_level(level)
        return None

    def list_place(self, properties: Element | None) -> ListPlace | None:
        """Return where in which list a paragraph with these properties stands."""
        list_id, level = "", None
        for holder in (properties, *(child(style, "pPr") for style in self._of(properties))):
            numbered = child(holder, "numPr")
            list_id = list_id or attribute(child(numbered, "numId"), "val")
            if level is None:
                level = child(numbered, "ilvl")
        if list_id in ("", "0"):
            return None
        return ListPlace(list_id, number(attribute(level, "val"), 0, most=MOST_LEVEL))

    def _of(self, properties: Element | None) -> Iterator[Element]:
        style_id = attribute(child(properties, "pStyle"), "val")
        for _ in range(_MOST_STYLES_UP):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = attribute(child(style, "basedOn"), "val")


def _markdown_level(outline: Element) -> int | None:
    level = number(attribute(outline, "val"), _BODY_LEVEL, most=_BODY_LEVEL)
    return None if level == _BODY_LEVEL else min(level + 1, _MARKDOWN_LEVELS)


@dataclass(slots=True)
class _List:
    levels: dict[int, Element]
    counts: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)

    def start(self, level: int) -> int:
        """Return the first number of a level."""
        if level in self.starts:
            return self.starts[level]
        return _number_of(child(self.levels.get(level), "start"))


class Numbering:
    """Counts the paragraphs of lists. Has to be asked in the order of the text."""

    def __init__(self, root: Element | None) -> None:
        """*root* is the part ``numbering.xml``, None if there is none."""
        abstract = {
            attribute(element, "abstractNumId"): {
                _level_of(level): level for level in children(element, "lvl")
            }
            for element in children(root, "abstractNum")
        }
        # Lists of one definition go on with each other's numbers, but for levels that are overridden.
        shared: dict[str, dict[int, int]] = defaultdict(dict)
        self._lists: dict[str, _List] = {}
        for element in children(root, "num"):
            definition = attribute(child(element, "abstractNumId"), "val")
            levels = dict(abstract.get(definition, {}))
            starts: dict[int, int] = {}
            for override in children(element, "lvlOverride"):
                level = child(override, "lvl")
                if level is not None:
                    levels[_level_of(override)] = level
                start = child(override, "startOverride")
                if start is not None:
                    starts[_level_of(override)] = _number_of(start)
            counts = {} if starts else shared[definition]
            self._lists[attribute(element, "numId")] = _List(levels, counts, starts)

    def label(self, place: ListPlace) -> str:
        """Count one more paragraph at *place* and return what stands before it; "-" for a bullet."""
        found = self._lists.get(place.list_id)
        level = found.levels.get(place.level) if found else None
        if found is None or level is None:
            return "-"
        before = found.counts.get(place.level, found.start(place.level) - 1)
        found.counts[place.level] = before + 1
        for deeper in [level for level in found.counts if level > place.level]:
            del found.counts[deeper]
        if attribute(child(level, "numFmt"), "val", "decimal") in ("bullet", "none"):
            return "-"
        return self._numbered(found, attribute(child(level, "lvlText"), "val", "%1."))

    @staticmethod
    def _numbered(found: _List, template: str) -> str:
        for index in range(MOST_LEVEL + 1):
            mark = f"%{index + 1}"
            if mark in template:
                level = found.levels.get(index)
                count = found.counts.get(index, found.start(index))
                written = _WRITTEN.get(attribute(child(level, "numFmt"), "val"), str)
                template = template.replace(mark, written(count))
        return template.strip() or "-"


def _level_of(element: Element) -> int:
    return number(attribute(element, "ilvl"), 0, most=MOST_LEVEL)


def _number_of(start: Element | None) -> int:
    return number(attribute(start, "val"), 1, most=32_767)


def _letters(count: int) -> str:
    # a … z, aa … zz, aaa …
    return chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1) if count > 0 else "0"


_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def _roman(count: int) -> str:
    letters = ""
    for value, letter in _ROMAN:
        letters += letter * (count // value)
        count %= value
    return letters


_DIGITS: Final = "〇一二三四五六七八九"
_CHINESE_LIMIT: Final = 10_000


def _chinese(count: int) -> str:
    """Return a number as it is counted in Chinese: 十二, 一百〇三."""
    if not 0 < count < _CHINESE_LIMIT:
        return str(count)
    written, skipped = "", False
    for value, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = count // value % 10
        if digit == 0:
            skipped = bool(written)
            continue
        written += ("〇" if skipped else "") + _DIGITS[digit] + unit
        skipped = False
    return written.removeprefix("一") if written.startswith("一十") else written


def _chinese_digits(count: int) -> str:
    return "".join(_DIGITS[int(digit)] for digit in str(count))


_WRITTEN: Final[dict[str, Callable[[int], str]]] = {
    "decimalZero": lambda count: f"{count:02}",
    "lowerLetter": _letters,
    "upperLetter": lambda count: _letters(count).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda count: _roman(count).upper(),
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
    "taiwaneseCounting": _chinese,
    "taiwaneseCountingThousand": _chinese,
    "ideographDigital": _chinese_digits,
    "japaneseDigitalTenThousand": _chinese_digits,
    "taiwaneseDigital": _chinese_digits,
}
"""How numbers are written in the formats other than plain ones."""
