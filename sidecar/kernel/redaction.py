"""The one filter that keeps secrets out of logs, traces, diagnostics and error details."""

import re
import threading
from collections.abc import Mapping
from typing import Any, Final

REDACTED: Final = "[redacted]"
# A shorter secret would blank out ordinary words.
MINIMUM_SECRET_LENGTH: Final = 6

_SENSITIVE_KEY = re.compile(
    r"(?i)(authorization|api[-_]?key|secret|password|passwd|token$|^token|cookie|credential(?!_id)|ticket)"
)
_PATTERNS: Final = (
    # Authorization headers, in whatever text they turn up.
    (re.compile(r"(?i)\b(bearer|basic|token)\s+[A-Za-z0-9+/=_.~-]{6,}"), rf"\1 {REDACTED}"),
    # Query parameters and assignments that hold a secret.
    (
        re.compile(
            r"(?i)\b(token|ticket|api[-_]?key|key|secret|password|passwd|access_token|signature|sig)"
            r"(=|%3d|\"?\s*:\s*\"?)([^\s&\"',}\]]{3,})"
        ),
        rf"\1\2{REDACTED}",
    ),
    # user:password@ in an address.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@:]+:[^\s/@]+@"), rf"\1{REDACTED}@"),
    # Keys of well-known shapes.
    (re.compile(r"\b(sk|pk|hf|gh[pousr]|xox[abpr])[-_][A-Za-z0-9_-]{12,}"), REDACTED),
    # Embedded files: attachment bodies travel as data URIs.
    (re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]{32,}"), f"data:{REDACTED}"),
)


class Redactor:
    """Knows the secrets of this process, and the shapes that secrets usually have."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self._gate = threading.Lock()

    def register(self, secret: str | None) -> None:
        """Never let *secret* out again, wherever it turns up."""
        if not secret or len(secret) < MINIMUM_SECRET_LENGTH:
            return
        with self._gate:
            self._secrets.add(secret)
            # Longest first: one secret may begin with another.
            ordered = sorted(self._secrets, key=len, reverse=True)
            self._known = re.compile("|".join(re.escape(known) for known in ordered))

    def text(self, value: str) -> str:
        """Return *value* without secrets."""
        known = self._known
        if known is not None:
            value = known.sub(REDACTED, value)
        for pattern, replacement in _PATTERNS:
            value = pattern.sub(replacement, value)
        return value

    def value(self, value: Any) -> Any:
        """Return a copy of a JSON value without secrets; fields with a telling name are blanked."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                key: REDACTED
                if isinstance(key, str) and _SENSITIVE_KEY.search(key) and isinstance(item, str)
                else self.value(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


redactor: Final = Redactor()
"""The redactor of this process. Logs and errors pass through it; whoever holds a secret registers it."""
