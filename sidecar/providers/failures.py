"""What a provider's refusal means, whatever words it chose.

Nothing that a provider wrote is passed on: its text may repeat a key or a prompt. It is read here, and
becomes a code of ours with the facts that are safe to show.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from sidecar.kernel.errors import ProjectError
from sidecar.kernel.late_patterns import late_pattern

_CONTEXT_LENGTH: Final = late_pattern(
    r"context[_ ]length|context[_ ]window|context[_ ]size|context limit|maximum (?:context|input|prompt)"
    r"|max_prompt_tokens|prompt is too long|(?:input|request|prompt|message)s? (?:is|are) too (?:long|large)"
    r"|input[_ ]too[_ ]long|too many (?:input )?tokens|token limit|tokens? exceed|exceeds? the (?:model|limit|max)"
    r"|range of input length|string_above_max_length|超长|超出(?:了)?(?:模型)?(?:最大)?(?:上下文|长度|输入)",
    re.IGNORECASE,
)
_NO_MODEL: Final = late_pattern(
    r"model[_ ]?not[_ ]?(?:found|exist|open|supported)|no such model|unknown model|invalid model"
    r"|model\b.{0,120}?\b(?:not found|does not exist|doesn't exist|not exist|is not available)"
    r"|not found the model|\bmodel: |InvalidEndpointOrModel|模型不存在|无此模型",
    re.IGNORECASE | re.DOTALL,
)
_NO_ABILITY: Final = late_pattern(
    r"(?:does not|doesn't|do not|not) support (?:tool|function|image|vision|chat|multimodal)"
    r"|(?:image|tool|function|vision)\S*(?: \w+){0,2} (?:is|are) not supported|support tool use"
    r"|not a (?:chat|multimodal|vision) model|不支持(?:工具|函数|图片|图像|视觉)",
    re.IGNORECASE,
)
_KEY: Final = late_pattern(
    r"invalid[_ ]?(?:api[_ ]?)?key|incorrect api key|invalid_authentication|authentication_error"
    r"|unauthori[sz]ed|permission_(?:denied|error)|api key not valid",
    re.IGNORECASE,
)
_RATE: Final = late_pattern(
    r"rate[_ ]?limit|too many requests|insufficient_quota|insufficient[_ ]balance|quota exceeded"
    r"|resource_exhausted|余额不足|欠费",
    re.IGNORECASE,
)
_USED_UP: Final = late_pattern(r"insufficient|billing|balance|余额|欠费", re.IGNORECASE)
_BUSY: Final = late_pattern(r"overloaded|unavailable|server_error|internal|busy", re.IGNORECASE)

_CODE_OF_STATUS: Final = {
    401: "PROVIDER_AUTH_FAILED",
    402: "PROVIDER_RATE_LIMITED",
    403: "PROVIDER_AUTH_FAILED",
    408: "PROVIDER_TIMEOUT",
    413: "MODEL_CONTEXT_LENGTH_EXCEEDED",
    429: "PROVIDER_RATE_LIMITED",
}

# What a status that says little means with these words; the first that fits counts.
_CODE_OF_WORDS: Final = (
    (frozenset({400, 422, 500}), _CONTEXT_LENGTH, "MODEL_CONTEXT_LENGTH_EXCEEDED"),
    (frozenset({400, 404, 422, 500, 501}), _NO_ABILITY, "MODEL_CAPABILITY_MISMATCH"),
    (frozenset({400, 404, 422}), _NO_MODEL, "MODEL_NOT_FOUND"),
    (frozenset({400}), _KEY, "PROVIDER_AUTH_FAILED"),
)

# Refusals that say nothing was begun: asking again costs nothing and can't do a thing twice.
_NOT_BEGUN: Final = frozenset({429, 503, 529})
_LONGEST_TEXT: Final = 4000


class UpstreamError(ProjectError):
    """A call that a provider refused, or that didn't get through.

    ``not_begun`` tells that the provider did nothing for it, so that it may be repeated; ``retry_after``
    is how long the provider asks to wait, in seconds.
    """

    def __init__(
        self,
        code: str,
        details: dict[str, Any],
        *,
        not_begun: bool = False,
        retry_after: float | None = None,
        mentions: str = "",
    ) -> None:
        if retry_after is not None:
            details = {**details, "retry_after_seconds": retry_after}
        super().__init__(code, details=details)
        self.not_begun = not_begun
        self.retry_after = retry_after
        self.mentions = mentions
        """The provider's words in lower case, to look names of fields up in. Never to be shown."""
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_after)))


def failure_of_answer(
    status: int, headers: Mapping[str, str], body: Any, about: Mapping[str, Any]
) -> UpstreamError:
    """Return the failure that an answer with an HTTP *status* other than 2xx means.

    *body* is its JSON or text; *about* are the safe facts that every error of this call tells.
    """
    words = _words(body)
    details = {**about, "upstream_status": status}
    code = _code_of_status(status, words)
    waiting = (
        _retry_after(headers) if code in ("PROVIDER_RATE_LIMITED", "PROVIDER_UNAVAILABLE") else None
    )
    return UpstreamError(
        code,
        details,
        not_begun=status in _NOT_BEGUN and not _USED_UP.search(words),
        retry_after=waiting,
        mentions=words.lower(),
    )


def failure_told_in_stream(body: Any, about: Mapping[str, Any]) -> UpstreamError:
    """Return the failure that a provider told of inside an answer that had begun."""
    words = _words(body)
    if _CONTEXT_LENGTH.search(words):
        code = "MODEL_CONTEXT_LENGTH_EXCEEDED"
    elif _NO_ABILITY.search(words):
        code = "MODEL_CAPABILITY_MISMATCH"
    elif _NO_MODEL.search(words):
        code = "MODEL_NOT_FOUND"
    elif _RATE.search(words):
        code = "PROVIDER_RATE_LIMITED"
    elif _KEY.search(words):
        code = "PROVIDER_AUTH_FAILED"
    elif _BUSY.search(words):
        code = "PROVIDER_UNAVAILABLE"
    else:
        code = "PROVIDER_PROTOCOL_ERROR"
    return UpstreamError(code, dict(about), mentions=words.lower())


def _code_of_status(status: int, words: str) -> str:
    if status in _CODE_OF_STATUS:
        return _CODE_OF_STATUS[status]
    for statuses, pattern, code in _CODE_OF_WORDS:
        if status in statuses and pattern.search(words):
            return code
    return "PROVIDER_UNAVAILABLE" if status >= 500 else "PROVIDER_PROTOCOL_ERROR"


def _words(body: Any) -> str:
    """Return what an error's body says, in one text: vendors put it under one of a few names."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return str(body or "")[:_LONGEST_TEXT]
    error = body.get("error")
    inner = error if isinstance(error, dict) else body
    parts = [inner.get(name) for name in ("code", "type", "status", "param")]
    messages = [inner.get("message"), error if isinstance(error, str) else None, body.get("detail")]
    # The message first: one rule looks at how it begins.
    return "\n".join(str(part) for part in (*messages, *parts) if part)[:_LONGEST_TEXT]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` (a number or a date) asks for, None without a usable one."""
    milliseconds = headers.get("retry-after-ms", "")
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(text)
    except ValueError:
        seconds = _seconds_until(text)
    return seconds if 0 <= seconds < 10**7 else None


def _seconds_until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return -1
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, round((moment - datetime.now(UTC)).total_seconds(), 3))
