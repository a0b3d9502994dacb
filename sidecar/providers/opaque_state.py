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
    """The newest values, by a text that comes back with them."""

    def __init__(self) -> None:
        self._values: OrderedDict[bytes, Any] = OrderedDict()
        self._gate = threading.Lock()

    def keep(self, text: str, value: Any) -> None:
        """Hold *value* for the turn that brings *text* back."""
        with self._gate:
            self._values[_key(text)] = value
            self._values.move_to_end(_key(text))
            while len(self._values) > _KEPT:
                self._values.popitem(last=False)

    def of(self, text: str) -> Any:
        """Return what was held for *text*, None if nothing is."""
        return self._values.get(_key(text))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
