"""Static pictures: what asks for one, and what comes of it. Those who ask know no more than this."""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sidecar.kernel.catalogue import Localised
from sidecar.plots.diagnostics import Diagnostic
from sidecar.plots.limits import LIMITS, PlotLimits
from sidecar.plots.themes import ChartColours

if TYPE_CHECKING:
    from sidecar.plots.png import FontFor

# A picture of the same source and colours looks different once this changes.
RENDERER_VERSION: Final = 1
_CACHED: Final = 64

Kind = Literal["mermaid", "function_plot"]
Theme = Literal["light", "dark"]
MimeType = Literal["image/svg+xml", "image/png"]


def source_hash(source: str) -> str:
    """Return the SHA-256, in lower-case hex, that stands for a source."""
    return hashlib.sha256(source.strip().encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class StaticRenderRequest:
    """A picture that is wanted. *colours* are those of the light or dark *theme* unless they are given."""

    kind: Kind
    source: str
    source_hash: str
    theme: Theme = "light"
    width: int | None = None
    height: int | None = None
    mime_type: MimeType = "image/svg+xml"
    colours: ChartColours | None = None
    limits: PlotLimits = LIMITS

    def cache_key(self) -> tuple[object, ...]:
        """Return what two requests for the same picture have in common."""
        return (
            self.kind,
            self.source_hash,
            self.theme,
            RENDERER_VERSION,
            self.width,
            self.height,
            self.mime_type,
            self.colours,
            self.limits,
        )


@dataclass(frozen=True, slots=True)
class StaticRenderResult:
    """A picture: text for SVG, bytes for PNG."""

    mime_type: MimeType
    content: str | bytes
    width: int
    height: int
    warnings: tuple[Localised, ...] = ()


@dataclass(frozen=True, slots=True)
class StaticRendering:
    """What came of a request. There is no result exactly when a diagnostic is an error."""

    result: StaticRenderResult | None
    diagnostics: tuple[Diagnostic, ...] = ()
    node_count: int = 0


class StaticRenderer:
    """Draws function plots, and remembers the latest. Can be used from any thread."""

    def __init__(self, font_for: "FontFor" = lambda _: None) -> None:
        self._font_for = font_for
        self._renderings: OrderedDict[tuple[object, ...], StaticRendering] = OrderedDict()
        self._gate = threading.Lock()

    def render(self, request: StaticRenderRequest) -> StaticRendering:
        """Return the picture of a request, or what is wrong with its source. Doesn't raise for a source."""
        from sidecar.plots.drawing import draw  # noqa: PLC0415 - not needed before ready

        key = request.cache_key()
        with self._gate:
            if (known := self._renderings.get(key)) is not None:
                self._renderings.move_to_end(key)
                return known
        rendering = draw(request, self._font_for)
        with self._gate:
            self._renderings[key] = rendering
            while len(self._renderings) > _CACHED:
                self._renderings.popitem(last=False)
        return rendering
