"""How much of a conversation fits a model's window. Tokens are estimated: every vendor counts its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.kernel.errors import ProjectError
from sidecar.providers.schemas.model_call import ChatTarget, Message

ANSWER_TOKENS: Final = 4096
_MESSAGE_TOKENS: Final = 8
_TOOL_TOKENS: Final = 400


@dataclass(frozen=True, slots=True)
class _Rates:
    """Tokens for each character of ASCII, of other alphabets, and of CJK and emoji; and for an image."""

    ascii: float
    alphabets: float
    wide: float
    image: int


# Old tokenizers make one token of each byte of a rare character, new ones take two characters of
# Chinese for one. Turns are left out by the first estimate, a message is refused by the second only:
# what may fit is left to the vendor to judge.
_MOST: Final = _Rates(0.34, 0.7, 1.5, 1600)
_LEAST: Final = _Rates(0.14, 0.2, 0.4, 80)


def most_tokens(text: str) -> int:
    """Return how many tokens *text* takes with a tokenizer that isn't made for it."""
    return _tokens(text, _MOST)


def least_tokens(text: str) -> int:
    """Return how many tokens *text* takes with the best of tokenizers."""
    return _tokens(text, _LEAST)


def _tokens(text: str, rates: _Rates) -> int:
    plain = len(text.encode("ascii", "ignore"))
    others = len(text) - plain
    if not others:
        return round(plain * rates.ascii + 0.5)
    # UTF-8 has two bytes for a character of most alphabets, three or four for CJK and emoji.
    bytes_of_others = len(text.encode("utf-8", "replace")) - plain
    wide = min(others, max(0, bytes_of_others - 2 * others))
    alphabets = others - wide
    return round(plain * rates.ascii + alphabets * rates.alphabets + wide * rates.wide + 0.5)


def _of_message(message: Message, rates: _Rates) -> int:
    total = _MESSAGE_TOKENS + _tokens(message.content, rates) + rates.image * len(message.images)
    if message.reasoning_content:
        total += _tokens(message.reasoning_content, rates)
    return total + sum(_tokens(call.arguments_text(), rates) for call in message.tool_calls)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The turns that are sent, and how many older ones aren't."""

    turns: Sequence[Sequence[Message]]
    left_out: int


def fit(
    target: ChatTarget,
    fixed: Sequence[Message],
    turns: Sequence[Sequence[Message]],
    *,
    with_tools: bool,
) -> Fitted:
    """Leave out the oldest of *turns* until they and *fixed* (what must be sent) fit the window.

    Raises ``MODEL_CONTEXT_LENGTH_EXCEEDED`` if *fixed* alone can't fit.
    """
    window = target.context_window
    if window is None:
        return Fitted(turns, 0)
    if sum(_of_message(message, _LEAST) for message in fixed) > window:
        raise ProjectError("MODEL_CONTEXT_LENGTH_EXCEEDED", details={"context_window": window})
    room = window - _answer_tokens(target, window) - (_TOOL_TOKENS if with_tools else 0)
    room -= sum(_of_message(message, _MOST) for message in fixed)
    kept = 0
    for turn in reversed(turns):
        room -= sum(_of_message(message, _MOST) for message in turn)
        if room < 0:
            break
        kept += 1
    return Fitted(turns[len(turns) - kept :], len(turns) - kept)


def _answer_tokens(target: ChatTarget, window: int) -> int:
    return min(target.max_output_tokens or ANSWER_TOKENS, ANSWER_TOKENS, window // 4)


def source_tokens(target: ChatTarget) -> int | None:
    """Return how much of the window the sources of a reply may take; None where it isn't known."""
    return target.context_window // 2 if target.context_window else None
