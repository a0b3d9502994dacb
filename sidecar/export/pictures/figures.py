"""What stands in the place of diagrams, formulas, plots and images, within the budgets of a format.

Every exporter asks here, so that all of them show the same parts and tell of the same losses.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from sidecar.export.document import Document, Node
from sidecar.export.exporter import Workplace
from sidecar.export.notices import Notices
from sidecar.export.pictures.formulas import Formula, FormulaUnsupported
from sidecar.export.pictures.images import Picture, PictureRefused
from sidecar.kernel.catalogue import Localised
from sidecar.plots.service import (
    ChartColours,
    Diagnostic,
    PlotLimits,
    StaticRenderRequest,
    StaticRenderResult,
    source_hash,
)

_SHOWN: Final = 120
# Parameters of diagnostics that quote nothing of the source.
_OWN_PARAMS: Final = frozenset({"limit", "wanted", "supported", "known"})


@dataclass(frozen=True, slots=True)
class NoPicture:
    """An image that isn't shown; *words* stand in its place."""

    words: str


class Figures:
    """Finds or draws the figures of one document. Tells *notices* what could not be shown."""

    def __init__(
        self, place: Workplace, notices: Notices, colours: ChartColours, *, vectors: bool
    ) -> None:
        """*vectors*: plots are SVG, otherwise PNG."""
        self._place = place
        self._notices = notices
        self._colours = colours
        self._vectors = vectors
        self._resources = self._plots = self._plot_nodes = self._images = 0

    def shows_content(self, document: Document) -> bool:
        """Whether, once all is written, at least one part of *document* is to be seen."""
        if self._images:
            return True
        return any(
            (node.text or "").strip() or node.attributes.get("rule")
            for node in document.root.walk()
            if node.type != "image"
        )

    def given(self, node: Node) -> bytes | None:
        """Return the PNG that the client drew for a diagram or formula, None if there is none."""
        return self._place.assets.find(node.type, node.text or "")

    # -- images --------------------------------------------------------------------------------

    def image(self, node: Node) -> Picture | NoPicture:
        """Return what an image shows."""
        found = self._image(node)
        if isinstance(found, Picture) or found.words.strip():
            self._images += 1
        return found

    def _image(self, node: Node) -> Picture | NoPicture:
        address, alternative = str(node.attributes["src"]), str(node.attributes["alt"])
        # A client may have hashed the address as it was written, or as a browser would send it.
        given = self._place.assets.find("image", address, unquote(address))
        if given is not None:
            return Picture("image/png", given)
        shown = address[:_SHOWN] if self._names(address) else ""
        if not self._take_resource():
            return NoPicture(alternative or shown)
        try:
            return self._place.pictures.read(address)
        except PictureRefused as refused:
            self._resources -= 1
            self.refuse(node, refused.reason)
            return NoPicture(alternative or shown)

    def refuse(self, node: Node, reason: str) -> None:
        """Tell that an image isn't shown, and why."""
        address = str(node.attributes["src"])
        name = {"name": address[:_SHOWN]} if self._place.quote and self._names(address) else {}
        self._notices.warn(node, f"warning.export_image_{reason}", **name)

    def _names(self, address: str) -> bool:
        return not address.lower().startswith("data:")

    def _take_resource(self) -> bool:
        limit = self._place.limits.resources
        if limit is not None and self._resources >= limit:
            self._notices.add(Localised("warning.export_resource_limit", {"limit": limit}))
            return False
        self._resources += 1
        return True

    # -- formulas ------------------------------------------------------------------------------

    def formula(self, node: Node) -> Formula | None:
        """Return a typeset formula, None if its source is to be shown."""
        source, limits = node.text or "", self._place.limits
        too_long = limits.formula_characters is not None and len(source) > limits.formula_characters
        if too_long or (limits.formula_depth is not None and _depth(source) > limits.formula_depth):
            self._notices.warn(node, "warning.export_formula_too_complex", **self._quoted(source))
            return None
        if not self._take_resource():
            return None
        try:
            return self._place.formulas.typeset(source, display=node.type == "math_block")
        except FormulaUnsupported:
            self._resources -= 1
            self._notices.warn(node, "warning.export_formula_unsupported", **self._quoted(source))
            return None

    def _quoted(self, source: str) -> dict[str, str]:
        return {"source": " ".join(source.split())[:_SHOWN]} if self._place.quote else {}

    # -- plots and diagrams --------------------------------------------------------------------

    def plot(self, node: Node) -> StaticRenderResult | None:
        """Return the picture of a function plot, None if its source is to be shown."""
        limits, source = self._place.limits, node.text or ""
        if limits.plots is not None and self._plots >= limits.plots:
            self._notices.add(Localised("warning.export_plot_limit", {"limit": limits.plots}))
            return None
        left = None if limits.plot_nodes is None else max(0, limits.plot_nodes - self._plot_nodes)
        request = StaticRenderRequest(
            "function_plot",
            source,
            source_hash(source),
            mime_type="image/svg+xml" if self._vectors else "image/png",
            colours=self._colours,
            limits=PlotLimits(limits.plot_expressions, left),
        )
        rendering = self._place.renderer.render(request)
        if rendering.result is None:
            self._tell(node, rendering.diagnostics[-1])
            return None
        for diagnostic in rendering.diagnostics:
            self._tell(node, diagnostic)
        self._plots += 1
        self._plot_nodes += rendering.node_count
        return rendering.result

    def diagram(self, node: Node) -> None:
        """Tell that a Mermaid diagram keeps its source: nothing here can draw one."""
        source = node.text or ""
        request = StaticRenderRequest("mermaid", source, source_hash(source))
        for diagnostic in self._place.renderer.render(request).diagnostics:
            self._notices.warn(node, f"warning.{diagnostic.code}")

    def _tell(self, node: Node, diagnostic: Diagnostic) -> None:
        params = diagnostic.message.params
        if not self._place.quote:
            params = {name: value for name, value in params.items() if name in _OWN_PARAMS}
        key = (
            f"warning.{diagnostic.code}"
            if diagnostic.severity == "error"
            else "warning.export_plot_note"
        )
        # The source begins below the line of its fence.
        place: dict[str, Any] = {"line": node.line + diagnostic.position.line}
        if diagnostic.position.column is not None:
            place["column"] = diagnostic.position.column
        self._notices.add(
            Localised(key, place | {"reason": Localised(diagnostic.message.key, params)})
        )


def _depth(source: str) -> int:
    """Return how deep the braces of a formula are nested."""
    depth = deepest = 0
    escaped = False
    for character in source:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest
