"""Writes a document as HTML: for a browser, and for what lays out pages.

Everything that comes from the document is escaped; what a browser could run or fetch isn't written.
"""

from collections.abc import Callable, Iterator
from urllib.parse import unquote

from sidecar.export.characters import allowed
from sidecar.export.colours.code_highlighting import highlighted
from sidecar.export.colours.options import chart_colours, colours_of
from sidecar.export.document import Document, Node, table_text
from sidecar.export.exporter import Workplace
from sidecar.export.html.medium import Medium, formula_svg, image_tag, width_class
from sidecar.export.html.text import escaped, language_of, metadata_list
from sidecar.export.links import Anchors, leads_out
from sidecar.export.notices import Notices
from sidecar.export.pictures.figures import Figures, NoPicture
from sidecar.export.pictures.images import PictureRefused
from sidecar.export.schemas import ExportOptions
from sidecar.kernel.catalogue import Locale, current_locale, text
from sidecar.plots.service import sanitised_svg


class HtmlRendering:
    """One run over one document. *notices* fill while the pieces are taken."""

    def __init__(
        self,
        document: Document,
        options: ExportOptions,
        place: Workplace,
        medium: Medium | None = None,
    ) -> None:
        self._document = document
        self._options = options
        self._place = place
        self._medium = medium or Medium()
        self._anchors = Anchors()
        self.notices = Notices(document.warnings)
        self.colours = colours_of(options, self.notices)
        self._figures = Figures(place, self.notices, chart_colours(options), vectors=True)
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
            "blockquote": self._blockquote,
            "code_block": self._code_block,
            "math_inline": self._formula,
            "math_block": self._formula,
            "mermaid": self._diagram,
            "function_plot": self._plot,
        }

    @property
    def shows_content(self) -> bool:
        """Whether, once all pieces are taken, at least one part of the document is to be seen."""
        return self._figures.shows_content(self._document)

    # -- the whole -----------------------------------------------------------------------------

    def page(self, styles: str, policy: str | None = None) -> Iterator[str]:
        """Yield the whole document, piece by piece."""
        options, document = self._options, self._document
        language = language_of(document)
        locale: Locale = "zh-CN" if language == "zh-CN" else current_locale()
        title = document.title or text("export.untitled", locale)
        yield "<!DOCTYPE html>\n"
        yield f'<html lang="{language}">\n' if language else "<html>\n"
        yield '<head>\n<meta charset="utf-8">\n'
        if policy is not None:
            yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield f"<title>{escaped(' '.join(title.split()))}</title>\n<style>\n"
        yield styles
        yield "\n</style>\n</head>\n<body>\n<main>\n"
        if options.include_title and document.title and not document.starts_with_title():
            yield f'<h1 class="title">{escaped(document.title)}</h1>\n'
        if options.include_metadata and document.metadata:
            yield from metadata_list(document.metadata, locale)
        for block in document.root.children:
            yield from self._node(block)
            self.blocks_done += 1
        yield "</main>\n</body>\n</html>\n"

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
        name = self._anchors.new(node.plain_text())
        attributes = f' id="{escaped(name)}"' if name else ""
        yield from self._within(f"h{node.attributes['level']}", node, "\n", attributes)

    def _paragraph(self, node: Node) -> Iterator[str]:
        if node.attributes.get("rule"):
            yield "<hr>\n"
        elif node.attributes.get("tight"):
            yield from self._children(node)
        else:
            yield from self._within("p", node, "\n")

    def _blockquote(self, node: Node) -> Iterator[str]:
        kind = node.attributes.get("callout")
        attributes = f' class="callout {escaped(str(kind))}"' if kind else ""
        return self._within("blockquote", node, "\n", attributes)

    def _list(self, node: Node) -> Iterator[str]:
        if node.attributes.get("footnotes"):
            yield '<section class="footnotes">\n'
            yield from self._within("ol", node, "\n</section>\n")
            return
        start = node.attributes.get("start", 1)
        attributes = self._medium.list_start(start) if start != 1 else ""
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
        yield f'<li class="task">{self._medium.checkbox(label, checked)}'
        yield from self._children(node)
        yield "</li>\n"

    def _table(self, node: Node) -> Iterator[str]:
        columns = 1 + max((cell.attributes["column"] for cell in node.children), default=0)
        most = self._medium.most_columns
        if most is not None and columns > most:
            self.notices.warn(node, "warning.export_table_too_wide", limit=most)
            yield f'<div class="source"><pre><code>{escaped(table_text(node))}</code></pre></div>\n'
            return
        yield f'<div class="table {width_class(columns)}">\n<table>\n'
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
        if given := self._figures.given(node):
            yield f'<div class="drawn">{self._png(given, (node.text or "").strip())}</div>\n'
            return
        self._figures.diagram(node)
        yield self._source("mermaid", node)

    def _plot(self, node: Node) -> Iterator[str]:
        drawn = self._figures.plot(node)
        if drawn is None:
            yield self._source("function-plot", node)
        else:
            yield f'<div class="drawn">{sanitised_svg(str(drawn.content))}</div>\n'

    def _source(self, language: str, node: Node) -> str:
        code = f'<code class="language-{language}">{escaped(node.text or "")}</code>'
        return f'<div class="source"><pre>{code}</pre></div>\n'

    def _formula(self, node: Node) -> Iterator[str]:
        is_block = node.type == "math_block" and not node.attributes.get("inline")
        source = (node.text or "").strip("\n")
        drawn: str | None = None
        if given := self._figures.given(node):
            drawn = self._png(given, source.strip())
        elif formula := self._figures.formula(node):
            drawn = formula_svg(formula, source.strip(), self._medium.formula_colour)
        if drawn:
            yield f'<div class="drawn formula">{drawn}</div>\n' if is_block else drawn
        elif node.type == "math_inline":
            yield f'<code class="math">${escaped(source)}$</code>'
        elif node.attributes.get("inline"):
            yield f'<code class="math">$${escaped(source)}$$</code>'
        else:
            yield f'<pre class="formula"><code class="math">$$\n{escaped(source)}\n$$</code></pre>\n'

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
        elif leads_out(address):
            yield from self._anchor_link(node, address, ' rel="noopener noreferrer"')
        else:
            self.notices.warn(node, "warning.export_link_removed")
            yield from self._children(node)

    def _anchor_link(self, node: Node, address: str, more: str = "") -> Iterator[str]:
        title = node.attributes.get("title")
        named = f' title="{escaped(str(title))}"' if title else ""
        return self._within("a", node, "", f' href="{escaped(address)}"{named}{more}')

    def _image(self, node: Node) -> Iterator[str]:
        found = self._figures.image(node)
        if isinstance(found, NoPicture):
            yield f'<span class="no-picture">{escaped(found.words)}</span>'
            return
        alternative, title = str(node.attributes["alt"]), node.attributes.get("title")
        try:
            address = self._medium.picture_address(found.mime_type, found.content)
        except PictureRefused as refused:
            self._figures.refuse(node, refused.reason)
            yield f'<span class="no-picture">{escaped(alternative)}</span>'
        else:
            yield image_tag(address, alternative, title)

    def _png(self, content: bytes, alternative: str) -> str:
        return image_tag(self._medium.picture_address("image/png", content), alternative)
