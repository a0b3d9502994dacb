"""The OpenAI protocol beside chat: bodies and answers of embedding, transcription and speaker matching.

Speaker matching is no part of OpenAI's protocol: it is this product's own, for servers that offer it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from sidecar.providers.failures import UpstreamError

_LARGEST: Final = 3.4e38


@dataclass(frozen=True, slots=True)
class Used:
    """What a call cost, as far as the provider told."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    audio_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class HeardSegment:
    """A passage with its times in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TranscriptionAnswer:
    """A transcript, never blank. Times and language are there if the provider tells them."""

    text: str
    language: str | None
    segments: tuple[HeardSegment, ...]


# -- embedding ---------------------------------------------------------------------------------------


def embedding_body(model: str, texts: Sequence[str], dimensions: int | None) -> dict[str, Any]:
    """Return the body of a request for vectors."""
    body: dict[str, Any] = {"model": model, "input": list(texts)}
    return body if dimensions is None else {**body, "dimensions": dimensions}


def read_embeddings(answer: Any, count: int, dimensions: int | None) -> list[list[float]]:
    """Return the vectors of an answer in the order of the texts, all of one length.

    Raises ``PROVIDER_INVALID_RESPONSE``, or ``EMBEDDING_DIMENSION_MISMATCH`` for vectors of another
    length than *dimensions*.
    """
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or len(items) != count:
        raise _invalid("count")
    vectors = [_vector(item) for item in _in_order(items)]
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1:
        raise _invalid("dimensions")
    found = lengths.pop()
    if dimensions is not None and found != dimensions:
        raise UpstreamError(
            "EMBEDDING_DIMENSION_MISMATCH",
            {"expected_dimension": dimensions, "dimension": found},
        )
    return vectors


def _in_order(items: list[Any]) -> list[Any]:
    """Return the items by their ``index``; where none has one, as they came."""
    indices = [item.get("index") if isinstance(item, dict) else None for item in items]
    if all(index is None for index in indices):
        return items
    if any(isinstance(index, bool) or not isinstance(index, int) for index in indices):
        raise _invalid("index")
    placed = dict(zip(indices, items, strict=True))
    if set(placed) != set(range(len(items))):
        raise _invalid("index")
    return [placed[position] for position in range(len(items))]


def _vector(item: Any) -> list[float]:
    numbers = item.get("embedding") if isinstance(item, dict) else None
    if not isinstance(numbers, list) or not numbers or not set(map(type, numbers)) <= {int, float}:
        raise _invalid("embedding")
    # An index has tens of thousands of these: no step of this is taken number by number. The sum
    # shows what the maximum doesn't, a NaN.
    largest = max(map(abs, numbers))
    if not largest <= _LARGEST or not sum(map(abs, numbers)) <= _LARGEST * len(numbers):
        raise _invalid("embedding")
    return list(map(float, numbers))


# -- transcription -----------------------------------------------------------------------------------


def transcription_fields(model: str, language: str | None) -> dict[str, Any]:
    """Return the fields of the form beside ``file``."""
    return {"model": model} if language is None else {"model": model, "language": language}


def read_transcription(answer: Any) -> TranscriptionAnswer:
    """Return the transcript of an answer; raises ``PROVIDER_INVALID_RESPONSE``, also for blank text."""
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise _invalid("text")
    language = answer.get("language")
    return TranscriptionAnswer(
        text.strip(),
        # Some tell a code, some a word for it.
        language if isinstance(language, str) and 2 <= len(language) <= 3 else None,
        _segments(answer.get("segments")),
    )


def _segments(items: Any) -> tuple[HeardSegment, ...]:
    """Return the passages; if one of them makes no sense, their times are not to be trusted at all."""
    found: list[HeardSegment] = []
    for item in items if isinstance(items, list) else []:
        if not isinstance(item, dict):
            return ()
        text, start, end = item.get("text"), item.get("start"), item.get("end")
        if not isinstance(text, str) or not _is_number(start) or not _is_number(end):
            return ()
        if not 0 <= start <= end:
            return ()
        if text.strip():
            found.append(HeardSegment(text.strip(), float(start), float(end)))
    return tuple(found)


# -- speaker matching --------------------------------------------------------------------------------


def match_fields(model: str) -> dict[str, Any]:
    """Return the fields of the form beside ``file`` and ``reference_file``."""
    return {"model": model}


def read_match(answer: Any) -> float:
    """Return the score of an answer, from 0 to 1; raises ``PROVIDER_INVALID_RESPONSE``."""
    score = answer.get("score") if isinstance(answer, dict) else None
    if not _is_number(score) or not 0 <= score <= 1:
        raise _invalid("score")
    return float(score)


# -- shared ------------------------------------------------------------------------------------------


def used_of(answer: Any) -> Used:
    """Return what an answer tells of its cost, whatever else is wrong with it.

    Tokens come under either name; sound in seconds, also as the ``duration`` of a transcript.
    """
    if not isinstance(answer, dict):
        return Used()
    given = answer.get("usage")
    usage = given if isinstance(given, dict) else {}
    lengths = (usage.get("seconds"), answer.get("duration") if "text" in answer else None)
    seconds = [float(length) for length in lengths if _is_number(length) and length >= 0]
    return Used(
        input_tokens=_first_count(usage, "input_tokens", "prompt_tokens"),
        output_tokens=_first_count(usage, "output_tokens", "completion_tokens"),
        total_tokens=_first_count(usage, "total_tokens"),
        audio_seconds=seconds[0] if seconds else None,
    )


def _first_count(usage: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return None


def _is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a number that a 32-bit float can hold: JSON knows larger ones, and Python reads NaN."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST


def _invalid(part: str) -> UpstreamError:
    return UpstreamError("PROVIDER_INVALID_RESPONSE", {"reason": part})
