"""What a vendor wants back unread with the next turn: signatures of thinking and of tool calls.

Conversations keep the text of thinking and the calls, not what signed them, so that is held here, in
memory and for a while. After a restart a model goes on without.
"""

import hashlib
import threading
from collections import OrderedDict
from typing import Any, Final

_KEPT: Final = 512


class OpaqueState:
    """The newest values, by who gave them and a text that comes back with them."""

    def __init__(self) -> None:
        self._values: OrderedDict[bytes, Any] = OrderedDict()
        self._gate = threading.Lock()

    def keep(self, origin: str, text: str, value: Any) -> None:
        """Hold *value* for the turn that brings *text* back to *origin*."""
        key = _key(origin, text)
        with self._gate:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > _KEPT:
                self._values.popitem(last=False)

    def of(self, origin: str, text: str) -> Any:
        """Return what *origin* gave with *text*, None if nothing is held."""
        return self._values.get(_key(origin, text))


def _key(origin: str, text: str) -> bytes:
    return hashlib.sha256(f"{origin}\0{text}".encode("utf-8", "surrogatepass")).digest()
