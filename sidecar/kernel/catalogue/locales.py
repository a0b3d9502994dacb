"""Which language a text is read in: parsing of tags and headers, and the language of the current context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

Locale = Literal["en", "zh-CN"]

DEFAULT_LOCALE: Final[Locale] = "en"

# A context that never chose one follows the process's default, also when that is set later.
_chosen: ContextVar[Locale | None] = ContextVar("locale", default=None)
_default: Locale = DEFAULT_LOCALE


def parse_locale(value: str | None) -> Locale | None:
    """The language a tag such as ``en-US``, ``zh_CN`` or ``zh-Hans`` names, or None for any other."""
    if value is None:
        return None
    language = value.strip().replace("_", "-").partition("-")[0].lower()
    if language == "en":
        return "en"
    if language == "zh":
        return "zh-CN"
    return None


def locale_from_accept_language(header: str | None) -> Locale | None:
    """The language of an Accept-Language header that its sender likes best; None if neither is named.

    Equal weights keep the header's order; a weight of 0 rules a language out; a malformed part is skipped.
    """
    best: Locale | None = None
    best_weight = 0.0
    for part in (header or "").split(","):
        tag, *parameters = part.split(";")
        locale = parse_locale(tag)
        weight = _weight(parameters)
        if locale is not None and weight is not None and weight > best_weight:
            best, best_weight = locale, weight
    return best


def _weight(parameters: list[str]) -> float | None:
    """The q-value among a part's parameters: 1 if absent, None if it is not a number from 0 to 1."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() != "q":
            continue
        try:
            weight = float(value.strip())
        except ValueError:
            return None
        return weight if 0.0 <= weight <= 1.0 else None
    return 1.0


def current_locale() -> Locale:
    """The language of the running request, else the process's default."""
    return _chosen.get() or _default


def set_default_locale(locale: Locale) -> None:
    """Sets the language of everything that no request chose one for."""
    global _default  # noqa: PLW0603 - one default for the process
    _default = locale


@contextmanager
def use_locale(locale: Locale | None) -> Iterator[None]:
    """Makes ``locale`` current inside the block; None leaves the choice to the process's default."""
    token = _chosen.set(locale)
    try:
        yield
    finally:
        _chosen.reset(token)
