"""Potts prior on the pixel grid: neighbouring pixels are probably on the same side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.mask_answers import MaskAnswers
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.run_lengths import Runs
from wisecrowd.families.pixel_coins import sigmoid
from wisecrowd.inference.mask_patterns import MaskPatterns

Floats = NDArray[np.float64]
SWEEPS, DAMPING = 20, 0.5
DIGITS = 3  # probabilities are rounded, so that runs stay long


def smoothed_answers(patterns: MaskPatterns, log_odds: Floats, strength: float) -> MaskAnswers:
    """Return answers by mean field, one image at a time.

    Parameters
    ----------
    patterns : MaskPatterns
    log_odds : (n_patterns,)
        Log-odds of the pixels of each pattern, without their neighbours.
    strength : float
        Each neighbour adds ``strength * (2 p - 1)`` to the log-odds of a pixel.
    """
    data, runs = patterns.data, patterns.runs
    ends = np.searchsorted(runs.image, np.arange(data.n_tasks + 1))
    parts, values = [], []
    for i in range(data.n_tasks):
        own = slice(int(ends[i]), int(ends[i + 1]))
        start, size = runs.start[own], (runs.end - runs.start)[own]
        if not len(start):
            continue
        _require_room(int(size.sum()))
        place = np.repeat(start - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
        given = np.repeat(log_odds[patterns.pattern[own]], size)
        found = np.round(mean_field(place, given, int(data.height[i]), strength), DIGITS)
        new = np.append(True, (np.diff(place) > 1) | (np.diff(found) != 0))
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(place)) - 1
        parts.append(Runs(np.full(len(first), i), place[first], place[last] + 1))
        values.append(found[first])
    joined = Runs(*(np.concatenate([np.zeros(0, np.int64), *part])
                    for part in (zip(*parts, strict=True) if parts else ((), (), ()))))  # fmt: skip
    value = np.concatenate([np.zeros(0), *values])
    return MaskAnswers(data.height, data.width, joined, value, patterns.empty)


def mean_field(place: NDArray[np.int64], log_odds: Floats, height: int, strength: float) -> Floats:
    """Return the probabilities of some pixels; all others are outside.

    All pixels move at once and half of the way, so that the result does not depend on their order.
    Mean field overstates what neighbours add to each other's evidence, so the log-odds that it
    ends with are divided by ``1 + 2 * strength``.
    """
    row, column = place % height, place // height
    row, column = row - row.min() + 1, column - column.min() + 1
    _require_room(int(row.max() + 2) * int(column.max() + 2))
    sign = np.full((int(row.max()) + 2, int(column.max()) + 2), -1.0)  # 2 p - 1, with a frame
    sign[row, column] = np.tanh(0.5 * log_odds)
    for _ in range(SWEEPS):
        moved = np.tanh(0.5 * (log_odds + strength * _around(sign)[row - 1, column - 1]))
        sign[row, column] += DAMPING * (moved - sign[row, column])
    total = log_odds + strength * _around(sign)[row - 1, column - 1]
    return sigmoid(total / (1 + 2 * strength))


def _require_room(pixels: int) -> None:
    require_memory(
        100 * pixels, f"Smoothing of {pixels} pixels would", f"use {parameter('smoothing', 0)}"
    )


def _around(sign: Floats) -> Floats:
    """Return the sums over the four neighbours of the pixels within the frame."""
    return sign[:-2, 1:-1] + sign[2:, 1:-1] + sign[1:-1, :-2] + sign[1:-1, 2:]
