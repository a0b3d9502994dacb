"""How wrong it is who talks when."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STEP_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody talks from *start* to *end*, in seconds."""

    start: float
    end: float
    speaker: str | None


def read_rttm(path: Path) -> list[Turn]:
    """Return the turns of a reference."""
    turns = []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.split()
        start = float(fields[3])
        turns.append(Turn(start, start + float(fields[4]), fields[7]))
    return turns


def error_rate(reference: Sequence[Turn], heard: Sequence[Turn], *, collar: float = 0.0) -> float:
    """Return the diarization error rate: missed, invented and confused speech by that of the reference.

    Nothing counts within *collar* seconds of where a turn of the reference begins or ends.
    """
    end = max(turn.end for turn in (*reference, *heard))
    names = sorted({turn.speaker for turn in reference}, key=str)
    others = sorted({turn.speaker for turn in heard if turn.speaker is not None}, key=str)
    truth, guess = _grid(reference, names, end), _grid(heard, others, end)
    counted = np.ones(truth.shape[1], bool)
    for turn in reference:
        for edge in (turn.start, turn.end):
            counted[_frame(max(0.0, edge - collar)) : _frame(edge + collar)] = False
    truth, guess = truth[:, counted], guess[:, counted]
    several, found = truth.sum(axis=0), guess.sum(axis=0)
    size = max(len(names), len(others))
    truth, guess = _padded(truth, size), _padded(guess, size)
    right = max((truth & guess[list(order)]).sum() for order in permutations(range(size), size))
    return float((np.maximum(several, found).sum() - right) / several.sum())


def _grid(turns: Sequence[Turn], names: Sequence[str | None], end: float) -> NDArray[np.bool_]:
    grid = np.zeros((len(names), _frame(end)), bool)
    for turn in turns:
        if turn.speaker in names:
            grid[names.index(turn.speaker), _frame(turn.start) : _frame(turn.end)] = True
    return grid


def _padded(grid: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    return np.concatenate([grid, np.zeros((size - len(grid), grid.shape[1]), bool)])


def _frame(seconds: float) -> int:
    return round(seconds / STEP_SECONDS)
