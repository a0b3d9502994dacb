"""What a document's reader is told of parts that could not be shown as they are."""

from typing import Final

from sidecar.export.document import Node
from sidecar.kernel.catalogue import Localised

MAX_WARNINGS: Final = 200


class Notices:
    """Collects the warnings of one export: each once, and no more than a reader can use."""

    def __init__(self, found: list[Localised]) -> None:
        """Begin with what was *found* while the text was read."""
        self.warnings: list[Localised] = []
        for warning in found:
            self.add(warning)

    def add(self, warning: Localised) -> None:
        """Add a warning about the whole."""
        if len(self.warnings) == MAX_WARNINGS:
            self.warnings.append(Localised("warning.export_more"))
        elif len(self.warnings) < MAX_WARNINGS and warning not in self.warnings:
            self.warnings.append(warning)

    def warn(self, node: Node, key: str, **params: object) -> None:
        """Add a warning about a part, with the line in which it begins."""
        self.add(Localised(key, {"line": node.line} | params))
