"""Every text that a person reads, in English and Simplified Chinese.

A text may hold placeholders, ``{name}``, and optional parts in square brackets that are dropped as a whole when
one of their placeholders has no value: ``The attachment[ “{name}”] could not be read.``
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sidecar.kernel.catalogue.entries import ErrorSpec, FatalSpec, Text
from sidecar.kernel.catalogue.errors import ERRORS
from sidecar.kernel.catalogue.fatal import FATAL
from sidecar.kernel.catalogue.locales import (
    DEFAULT_LOCALE,
    Locale,
    current_locale,
    locale_from_accept_language,
    parse_locale,
    set_default_locale,
    use_locale,
)
from sidecar.kernel.catalogue.messages import MESSAGES

__all__ = [
    "DEFAULT_LOCALE",
    "ERRORS",
    "FATAL",
    "MESSAGES",
    "ErrorSpec",
    "FatalSpec",
    "Locale",
    "Localised",
    "LocalisedError",
    "Text",
    "current_locale",
    "error_text",
    "fatal_text",
    "fill",
    "has_text",
    "locale_from_accept_language",
    "localise",
    "parse_locale",
    "placeholders",
    "set_default_locale",
    "text",
    "use_locale",
]

_OPTIONAL_PART: Final = re.compile(r"\[([^\[\]]*\{[^\[\]]*)\]")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_MISSING: Final = "…"


def text(key: str, locale: Locale | None = None, **params: object) -> str:
    """The message ``key`` in ``locale`` (default: the current one).

    A parameter may be such a message itself. A placeholder without a value shows as an ellipsis. An unknown key is a
    KeyError: it is a programming mistake.
    """
    return fill(_in_language(MESSAGES[key], locale), _shown(params, locale))


def error_text(code: str, locale: Locale | None = None, **params: object) -> str:
    """The message of an error code, as ``text`` gives it; an unknown code gets the one for internal errors."""
    entry = ERRORS.get(code) or ERRORS["INTERNAL_ERROR"]
    return fill(_in_language(entry, locale), _shown(params, locale))


def fatal_text(code: str, locale: Locale | None = None, **params: object) -> str:
    """The message of a failed start."""
    return fill(_in_language(FATAL[code], locale), params)


def has_text(key: str) -> bool:
    """Whether the catalogue holds a message of this key."""
    return key in MESSAGES


def placeholders(template: str) -> frozenset[str]:
    """The names of a template's placeholders."""
    return frozenset(_PLACEHOLDER.findall(template))


def fill(template: str, params: Mapping[str, object]) -> str:
    """``template`` with its placeholders replaced. Values are inserted as they are and never read as templates."""
    given = {name: value for name, value in params.items() if value is not None}

    def part(match: re.Match[str]) -> str:
        return match[1] if placeholders(match[1]) <= given.keys() else ""

    kept = _OPTIONAL_PART.sub(part, template)
    return _PLACEHOLDER.sub(lambda match: str(given.get(match[1], _MISSING)), kept)


def _in_language(entry: Text | ErrorSpec | FatalSpec, locale: Locale | None) -> str:
    return entry.zh if (locale or current_locale()) == "zh-CN" else entry.en


@dataclass(frozen=True, slots=True)
class Localised:
    """A message that is stored now and put into its reader's language when it is sent."""

    key: str
    params: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The stored form, which ``localise`` recognises. The values of ``params`` are JSON values or such messages."""
        return {"$message": self.key, "params": _stored(self.params)}


@dataclass(frozen=True, slots=True)
class LocalisedError:
    """The message of an error code, stored like a ``Localised``."""

    code: str
    params: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The stored form, which ``localise`` recognises. The values of ``params`` are JSON values or such messages."""
        return {"$error": self.code, "params": _stored(self.params)}


def _stored(params: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value.to_json() if isinstance(value, Localised | LocalisedError) else value
        for name, value in params.items()
    }


def _shown(params: Mapping[str, object], locale: Locale | None) -> dict[str, object]:
    return {
        name: localise(value, locale) if isinstance(value, Localised | LocalisedError) else value
        for name, value in params.items()
    }


def localise(value: Any, locale: Locale | None = None) -> Any:
    """A copy of a JSON value in which each stored message is replaced by its text.

    Only an object of exactly the stored form counts as one; anything else, also one that names an unknown message,
    stays as it is.
    """
    if isinstance(value, Localised | LocalisedError):
        value = value.to_json()
    if isinstance(value, Mapping):
        stored = _stored_text(value, locale)
        return (
            stored
            if stored is not None
            else {key: localise(item, locale) for key, item in value.items()}
        )
    if isinstance(value, list | tuple):
        return [localise(item, locale) for item in value]
    return value


def _stored_text(value: Mapping[Any, Any], locale: Locale | None) -> str | None:
    """The text that an object stands for, or None if it is not a stored message."""
    if len(value) != 2 or not isinstance(params := value.get("params"), Mapping):
        return None
    nested = {str(name): localise(item, locale) for name, item in params.items()}
    key, code = value.get("$message"), value.get("$error")
    if isinstance(key, str) and key in MESSAGES:
        return fill(_in_language(MESSAGES[key], locale), nested)
    if isinstance(code, str) and code in ERRORS:
        return fill(_in_language(ERRORS[code], locale), nested)
    return None
