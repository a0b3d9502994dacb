"""How a transcript is laid out as a note."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from sidecar.media.cjk import run_on
from sidecar.vault.schemas import TranscriptPassage

Layout = Callable[[Sequence[TranscriptPassage]], list[TranscriptPassage]]

# A paragraph that takes longer than this to say is hard to find one's way in, or to cite.
PARAGRAPH_SECONDS: Final = 90.0
_SENTENCE_ENDS: Final = tuple("。！？…!?.")


def as_passages(passages: Sequence[TranscriptPassage]) -> list[TranscriptPassage]:
    """Return a paragraph for each passage."""
    return list(passages)


def as_dialogue(passages: Sequence[TranscriptPassage]) -> list[TranscriptPassage]:
    """Return a paragraph for each turn of a speaker; a long one is cut at its sentences."""
    paragraphs: list[TranscriptPassage] = []
    for _, turn in groupby(passages, key=lambda passage: passage.speaker):
        gathered: list[TranscriptPassage] = []
        for passage in turn:
            too_long = gathered and passage.end_time - gathered[0].start_time > PARAGRAPH_SECONDS
            if too_long and gathered[-1].text.endswith(_SENTENCE_ENDS):
                paragraphs.append(_joined(gathered))
                gathered = []
            gathered.append(passage)
        paragraphs.append(_joined(gathered))
    return paragraphs


def _joined(passages: Sequence[TranscriptPassage]) -> TranscriptPassage:
    text = run_on(passage.text for passage in passages)
    first, last = passages[0], passages[-1]
    return TranscriptPassage(text, first.start_time, last.end_time, first.speaker)


BUILT_IN: Final = "passages"
TEMPLATES: Final[dict[str, Layout]] = {BUILT_IN: as_passages, "dialogue": as_dialogue}
"""Template → its layout; without a template notes have the built-in one."""
