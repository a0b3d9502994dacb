"""Names of tools as providers allow them, and back, for one request."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

LONGEST: Final = 64
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MARK: Final = 9
"""Length of the mark that tells two names apart: an underscore and eight digits."""


class ToolNames:
    """Maps *names* to legal ones of at most 64 characters, one to one."""

    def __init__(self, names: Iterable[str]) -> None:
        wanted = sorted(set(names))
        self._sent: dict[str, str] = {name: name for name in wanted if _LEGAL.fullmatch(name)}
        rewritten = {name: _rewritten(name) for name in wanted if name not in self._sent}
        taken = [*self._sent, *rewritten.values()]
        for name, candidate in rewritten.items():
            unique = len(candidate) <= LONGEST and taken.count(candidate) == 1
            self._sent[name] = candidate if unique else _marked(name, candidate)
        self._ours = {sent: name for name, sent in self._sent.items()}

    def sent(self, name: str) -> str:
        """Return the name that the provider is given."""
        return self._sent.get(name) or _marked(name, _rewritten(name))

    def ours(self, sent: str) -> str:
        """Return our name; one that the model made up stays as it is."""
        return self._ours.get(sent, sent)


def _rewritten(name: str) -> str:
    legal = _ILLEGAL.sub("_", name)
    return legal if legal[:1].isalpha() or legal[:1] == "_" else f"_{legal}"


def _marked(name: str, candidate: str) -> str:
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[: _MARK - 1]
    return f"{candidate[: LONGEST - _MARK]}_{mark}"
