"""Writes a document as one HTML file that needs nothing else: no network, no script, no other file."""

import base64
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from sidecar.export.cancellation import StopSignal, in_thread
from sidecar.export.code_highlighting import highlighted
from sidecar.export.document import Document, Node
from sidecar.export.exporter import ExportResult, Workplace
from sidecar.export.html_style import code_styles, document_styles
from sidecar.export.html_text import allowed, anchor_of, escaped, language_of, metadata_list
from sidecar.export.images import PictureRefused
from sidecar.export.output import OutputFile, WrittenFile
from sidecar.export.schemas import ExportOptions
from sidecar.export.themes import DEFAULT_THEME, THEMES, Colours
from sidecar.kernel.catalogue import Locale, Localised, current_locale, text

# Belt and braces: even a mistake above could not make a browser run or fetch anything.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
MAX_WARNINGS: Final = 200
_STEP_SECONDS: Final = 0.25

_ALLOWED_LINK: Final = re.compile(r"(https?://|mailto:)", re.IGNORECASE)


class HtmlExporter:
    """The exporter for ``html``."""

    mime_type = "text/html"
    suffix = ".html"

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace

    async def export(self, document: Document, options: ExportOptions) -> ExportResult:
        """Write *document*. A cancellation ends the work and leaves no file."""
        place = self._workplace
        rendering = _Rendering(document, options, place)
        with OutputFile(place.output, place.limits.output_bytes) as output:
            pieces = rendering.pieces()
            total = len(document.root.children)
            while await in_thread(place.stop, _write_some, pieces, output, place.stop):
                await place.progress(rendering.blocks_done, total)
            written: WrittenFile = await in_thread(place.stop, output.finish)
        return ExportResult(written, rendering.warnings)


def _write_some(pieces: Iterator[str], output: OutputFile, stop: StopSignal) -> bool:
    """Write for a moment; False once everything is written."""
    until = time.monotonic() + _STEP_SECONDS
    for piece in pieces:
        output.write(piece.encode())
        stop.check()
        if time.monotonic() > until:
            return True
    return False


class _Rendering:
    """One run over one document."""

    def __init__(self, document: Document, options: ExportOptions, place: Workplace) -> None:
        self._document = document
        self._options = options
        self._place = place
        self._resources = 0
        self._anchors: Counter[str] = Counter()
        self.warnings: list[Localised] = []
        self.blocks_done = 0
        self._render: dict[str, Callable[[Node], Iterator[str]]] = {
            "heading": self._heading,
            "paragraph": self._paragraph,
            "text": self._text,
            "emphasis": self._emphasis,
            "strong": lambda node: self._within("strong", node),
            "link": self._link,
            "list": self._list,
            "list_item": self._list_item,
            "table": self._table,
            "image": self._image,
            "blockquote": lambda node: self._within("blockquote", node, "\n"),
            "code_block": self._code_block,
            "math_inline": self._formula,
            "math_block": self._formula,
            "mermaid": self._diagram,
            "function_plot": self._diagram,
        }

    def _warn(self, node: Node, key: str, **params: object) -> None:
        self._add_warning(Localised(key, {"line": node.line} | params))

    def _add_warning(self, warning: Localised) -> None:
        if len(self.warnings) == MAX_WARNINGS:
            self.warnings.append(Localised("warning.export_more"))
        elif len(self.warnings) < MAX_WARNINGS and warning not in self.warnings:
            self.warnings.append(warning)

    # -- the whole -----------------------------------------------------------------------------

    def pieces(self) -> Iterator[str]:
        """Yield the file, piece by piece."""
        for warning in self._document.warnings:
            self._add_warning(warning)
        options, document = self._options, self._document
        language = language_of(document)
        locale: Locale = "zh-CN" if language == "zh-CN" else current_locale()
        title = document.title or text("export.untitled", locale)
        yield "<!DOCTYPE html>\n"
        yield f'<html lang="{language}">\n' if language else "<html>\n"
        yield '<head>\n<meta charset="utf-8">\n'
        yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield f"<title>{escaped(' '.join(title.split()))}</title>\n<style>\n"
        yield document_styles(self._colours(), options.page_size)
        yield code_styles(options.code_theme)
        yield "\n</style>\n</head>\n<body>\n<main>\n"
        if options.include_title and document.title and not self._starts_with_title():
            yield f'<h1 class="title">{escaped(document.title)}</h1>\n'
        if options.include_metadata and document.metadata:
            yield from metadata_list(document.metadata, locale)
        for block in document.root.children:
            yield from self._node(block)
            self.blocks_done += 1
        yield "</main>\n</body>\n</html>\n"

    def _colours(self) -> Colours:
        options = self._options
        if options.palette is not None:
            return Colours(**options.palette.model_dump())
        if options.theme_id not in THEMES:
            self._add_warning(
                Localised("warning.export_theme_unknown", {"theme": options.theme_id})
            )
        return THEMES.get(options.theme_id, THEMES[DEFAULT_THEME])

    def _starts_with_title(self) -> bool:
        first = next(iter(self._document.root.children), None)
        return (
            first is not None
            and first.type == "heading"
            and first.attributes["level"] == 1
            and first.plain_text().strip() == (self._document.title or "").strip()
        )

    def _node(self, node: Node) -> Iterator[str]:
        self._place.stop.check()
        return self._render[node.type](node)

    def _children(self, node: Node) -> Iterator[str]:
        for child in node.children:
            yield from self._node(child)

    def _within(self, tag: str, node: Node, after: str = "", attributes: str = "") -> Iterator[str]:
        yield f"<{tag}{attributes}>"
        yield from self._children(node)
        yield f"</{tag}>{after}"

    # -- blocks --------------------------------------------------------------------------------

    def _heading(self, node: Node) -> Iterator[str]:
        name = self._new_anchor(anchor_of(node.plain_text()))
        attributes = f' id="{escaped(name)}"' if name else ""
        yield from self._within(f"h{node.attributes['level']}", node, "\n", attributes)

    def _new_anchor(self, words: str) -> str:
        """Return *words*, with a number if an earlier heading has them."""
        if not words:
            return ""
        name = words
        while name in self._anchors:
            name = f"{words}-{self._anchors[words]}"
            self._anchors[words] += 1
        self._anchors[name] = 1
        return name

    def _paragraph(self, node: Node) -> Iterator[str]:
        if node.attributes.get("rule"):
            yield "<hr>\n"
        elif node.attributes.get("tight"):
            yield from self._children(node)
        else:
            yield from self._within("p", node, "\n")

    def _list(self, node: Node) -> Iterator[str]:
        if node.attributes.get("footnotes"):
            yield '<section class="footnotes">\n'
            yield from self._within("ol", node, "\n</section>\n")
            return
        start = node.attributes.get("start", 1)
        attributes = f' start="{start}"' if start != 1 else ""
        tag = "ol" if node.attributes["ordered"] else "ul"
        yield from self._within(tag, node, "\n", attributes)

    def _list_item(self, node: Node) -> Iterator[str]:
        if "footnote" in node.attributes:
            attributes = f' id="footnote-{node.attributes["footnote"]}"'
            yield from self._within("li", node, "\n", attributes)
            return
        checked = node.attributes["checked"]
        if checked is None:
            yield from self._within("li", node, "\n")
            return
        label = escaped(text("export.task_done" if checked else "export.task_open"))
        state = " checked" if checked else ""
        yield f'<li class="task"><input type="checkbox" disabled{state} aria-label="{label}">'
        yield from self._children(node)
        yield "</li>\n"

    def _table(self, node: Node) -> Iterator[str]:
        yield '<div class="table">\n<table>\n'
        row, section = -1, ""
        for cell in node.children:
            wanted = "thead" if cell.attributes["header"] else "tbody"
            if cell.attributes["row"] != row:
                yield "</tr>\n" if row >= 0 else ""
                if wanted != section:
                    yield f"</{section}>\n" if section else ""
                    yield f"<{wanted}>\n"
                row, section = cell.attributes["row"], wanted
                yield "<tr>"
            align = cell.attributes["align"]
            attributes = f' class="{align}"' if align in ("center", "right") else ""
            yield from self._within("th" if wanted == "thead" else "td", cell, "", attributes)
        yield f"</tr>\n</{section}>\n" if section else ""
        yield "</table>\n</div>\n"

    def _code_block(self, node: Node) -> Iterator[str]:
        language = node.attributes.get("language")
        code = allowed(node.text or "")
        marked = highlighted(code, language)
        attributes = f' class="language-{escaped(language)}"' if language else ""
        yield '<pre class="highlight">' if marked is not None else "<pre>"
        yield f"<code{attributes}>{escaped(code) if marked is None else marked}</code></pre>\n"

    def _diagram(self, node: Node) -> Iterator[str]:
        if node.type == "mermaid" and (drawn := self._drawn(node)):
            yield f'<div class="drawn">{drawn}</div>\n'
            return
        is_mermaid = node.type == "mermaid"
        self._warn(
            node,
            "warning.MERMAID_RENDER_FAILED"
            if is_mermaid
            else "warning.FUNCTION_PLOT_RENDER_FAILED",
        )
        language = "mermaid" if is_mermaid else "function-plot"
        source = escaped(node.text or "")
        yield f'<div class="source"><pre><code class="language-{language}">{source}</code></pre></div>\n'

    def _drawn(self, node: Node) -> str | None:
        """Return the picture that the client drew for a node, None if there is none."""
        source = node.text or ""
        content = self._place.assets.find(node.type, source)
        return None if content is None else _picture("image/png", content, source.strip())

    def _formula(self, node: Node) -> Iterator[str]:
        is_block = node.type == "math_block" and not node.attributes.get("inline")
        if drawn := self._drawn(node):
            yield f'<div class="drawn">{drawn}</div>\n' if is_block else drawn
            return
        self._warn(node, "warning.export_formula_unsupported")
        source = escaped((node.text or "").strip("\n"))
        if node.type == "math_inline":
            yield f'<code class="math">${source}$</code>'
        elif node.attributes.get("inline"):
            yield f'<code class="math">$${source}$$</code>'
        else:
            yield f'<pre class="formula"><code class="math">$$\n{source}\n$$</code></pre>\n'

    # -- within a paragraph --------------------------------------------------------------------

    def _text(self, node: Node) -> Iterator[str]:
        if node.attributes.get("break"):
            yield "<br>\n"
        elif node.attributes.get("code"):
            yield f"<code>{escaped(node.text or '')}</code>"
        else:
            yield escaped(node.text or "")

    def _emphasis(self, node: Node) -> Iterator[str]:
        struck = node.attributes.get("style") == "strikethrough"
        return self._within("del" if struck else "em", node)

    def _link(self, node: Node) -> Iterator[str]:
        address = str(node.attributes["href"])
        if (number := node.attributes.get("footnote")) is not None:
            name = f"footnote-{number}-from-{node.attributes['repeat'] + 1}"
            yield f'<a class="footnote" id="{name}" href="{escaped(address)}">{number}</a>'
        elif "back" in node.attributes:
            label = escaped(text("export.footnote_back"))
            yield f' <a class="back" href="{escaped(address)}" aria-label="{label}">↩</a>'
        elif address.startswith("#"):
            # Ids are written as they read, so the address must be, too.
            yield from self._anchor_link(node, unquote(address))
        elif _ALLOWED_LINK.match(address):
            yield from self._anchor_link(node, address, ' rel="noopener noreferrer"')
        else:
            self._warn(node, "warning.export_link_removed")
            yield from self._children(node)

    def _anchor_link(self, node: Node, address: str, more: str = "") -> Iterator[str]:
        title = node.attributes.get("title")
        named = f' title="{escaped(str(title))}"' if title else ""
        return self._within("a", node, "", f' href="{escaped(address)}"{named}{more}')

    def _image(self, node: Node) -> Iterator[str]:
        address, alternative = str(node.attributes["src"]), str(node.attributes["alt"])
        # A client may have hashed the address as it was written, or as a browser would send it.
        given = self._place.assets.find("image", address, unquote(address))
        if given is not None:
            yield _picture("image/png", given, alternative, node.attributes.get("title"))
            return
        try:
            picture = self._read_picture(address)
        except PictureRefused as refused:
            name = {"name": address[:120]} if self._names(address) else {}
            self._warn(node, f"warning.export_image_{refused.reason}", **name)
            shown = alternative or (address[:120] if self._names(address) else "")
            yield f'<span class="no-picture">{escaped(shown)}</span>'
            return
        if picture is None:
            limit = self._place.limits.resources
            self._add_warning(Localised("warning.export_resource_limit", {"limit": limit}))
            yield f'<span class="no-picture">{escaped(alternative)}</span>'
            return
        mime_type, content = picture
        yield _picture(mime_type, content, alternative, node.attributes.get("title"))

    def _names(self, address: str) -> bool:
        return self._place.name_pictures and not address.lower().startswith("data:")

    def _read_picture(self, address: str) -> tuple[str, bytes] | None:
        """Return a picture's type and bytes, None if no more pictures are taken."""
        limit = self._place.limits.resources
        if limit is not None and self._resources >= limit:
            return None
        picture = self._place.pictures.read(address)
        self._resources += 1
        return picture.mime_type, picture.content


def _picture(mime_type: str, content: bytes, alternative: str, title: object = None) -> str:
    named = f' title="{escaped(str(title))}"' if title else ""
    data = base64.b64encode(content).decode("ascii")
    return f'<img src="data:{mime_type};base64,{data}" alt="{escaped(alternative)}"{named}>'
