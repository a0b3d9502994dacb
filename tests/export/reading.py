"""Reads exported HTML the strict way: every element closed in order, nothing that the standard forbids."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "hr", "br", "img", "input", "link", "base", "source", "embed", "area", "col", "wbr"}


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    def all(self, *tags: str) -> list["Element"]:
        """Return the elements of these tags below this one, in order; all of them without tags."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if not tags or child.tag in tags:
                    found.append(child)
                found += child.all(*tags)
        return found

    def one(self, tag: str) -> "Element":
        (element,) = self.all(tag)
        return element

    @property
    def text(self) -> str:
        return "".join(c.text if isinstance(c, Element) else c for c in self.children)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> repeats an attribute"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read_html(content: bytes | str) -> Element:
    """Return the document. Fails on elements that are left open or closed out of order."""
    markup = content if isinstance(content, str) else content.decode("utf-8")
    assert markup.startswith("<!DOCTYPE html>\n")
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    assert reader.open == [reader.root], "an element is left open"
    ids = [e.attributes["id"] for e in reader.root.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids)), "an id is there twice"
    for paragraph in reader.root.all("p"):
        inside = {e.tag for e in paragraph.all()}
        assert not inside & {"p", "div", "pre", "ul", "ol", "table", "blockquote", "h1", "h2"}
    return reader.root


def assert_inert(document: Element) -> None:
    """Assert that a browser which opens the document runs nothing and fetches nothing."""
    forbidden = {
        "script",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "use",
        "image",
        "animate",
        "foreignobject",
        "video",
        "audio",
    }
    assert not document.all(*forbidden)
    for svg in document.all("svg"):
        assert {e.tag for e in svg.all()} <= {"path", "rect", "g", "text", "title"}
    for element in document.all():
        for name, value in element.attributes.items():
            assert not name.startswith("on"), f"{element.tag} has {name}"
            assert name not in (
                "srcset",
                "srcdoc",
                "action",
                "formaction",
                "ping",
                "background",
            )
            if name == "style":
                assert element.tag == "svg"
                assert re.fullmatch(r"[a-z0-9:;.#-]+", value, re.IGNORECASE)
                assert "url" not in value
            if name == "src":
                assert value.startswith("data:image/")
            if name == "href":
                assert element.tag == "a"
                assert value.lower().startswith(("http://", "https://", "mailto:", "#"))
    (style,) = document.all("style")
    assert "url(" not in style.text
    assert "@import" not in style.text
    policy = [e for e in document.all("meta") if e.attributes.get("http-equiv")]
    assert "default-src 'none'" in policy[0].attributes["content"]
