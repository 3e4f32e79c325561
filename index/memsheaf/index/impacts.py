"""Sixteen-bit impacts: a frequency and a length in one code, rounded so that weights are bounds.

A code's weight is never below the true BM25 weight: frequencies are rounded up, lengths down, and
the mean length is taken from a grid just above. So one table of 65,536 weights serves any k1, b and
mean without touching the postings, and a search may prune by it safely. Code 0 says that a term is
absent; a frequency that small is of no use for bounds.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]

_STEPS = np.arange(256)
FREQUENCIES: Floats = (1 + _STEPS % 16 / 16) * 2.0 ** (_STEPS // 16 - 6)
"""Frequency per high byte; whole numbers to 31 are exact; the last one stands for all above."""
FREQUENCIES[-1] = np.inf
HELD: Floats = np.where(_STEPS > 0, FREQUENCIES, 0.0)
"""The same where there may be no posting, which is code 0: whole frequencies only."""
WHOLE = 31
"""Whole frequencies up to here are exact."""
LENGTHS: Floats = np.where(_STEPS < 128, _STEPS, np.floor(128 * 1.0725 ** (_STEPS - 128.0)))
"""Length per low byte; whole numbers to 128 are exact."""
FREQUENCY_ROUNDING = 17 / 16
"""A frequency below the last is rounded up to at most so many times itself."""
LENGTH_ROUNDING = 1.0725 * 129 / 128
"""A length from 128 on is at most so many times what it is rounded down to."""
_GRID = math.log(1.005)


def encode(frequency: Floats, length: Floats | np.float64) -> npt.NDArray[np.uint16]:
    """Return the codes of frequencies (above 0) in documents of the given lengths."""
    high = np.searchsorted(FREQUENCIES, frequency, "left").clip(0, 255)
    low = np.searchsorted(LENGTHS, length, "right") - 1
    codes: npt.NDArray[np.uint16] = (high << 8 | low.clip(0)).astype(np.uint16)
    return codes


def table(k1: float, b: float, mean: float) -> Floats32:
    """Return the weight of each code, at least `bm25` / (k1 + 1); that of code 0 is 0.

    The mean length is that of the step of the grid at or above it.
    """
    return _table(k1, b, math.ceil(math.log(mean) / _GRID) if mean > 0 else 0)


@lru_cache(maxsize=32)
def _table(k1: float, b: float, at: int) -> Floats32:
    norm = k1 * (1 - b + b * LENGTHS / math.exp(at * _GRID))
    frequency = FREQUENCIES[:-1, None]
    weights = np.ones((256, 256))
    weights[:-1] = frequency / (frequency + norm)
    weights[0, 0] = 0.0
    result = (weights.ravel() * (1 + 1e-6)).astype(np.float32)
    result.flags.writeable = False
    return result


def bm25(frequency: Floats, length: Floats, k1: float, b: float, mean: float) -> Floats:
    """Return the true weights, 0 where a term is absent (Robertson and Zaragoza 2009, 3.4)."""
    norm = k1 * (1 - b + b / (mean or 1.0) * length)
    return frequency * (k1 + 1) / (frequency + np.maximum(norm, 1e-300))


def inverse_frequency(documents: int, holding: int) -> float:
    """Return the idf of a term that some of the documents hold, always above 0.

    ln(1 + (N - df + 1/2) / (df + 1/2)), as in BM25 (Robertson and Zaragoza 2009).
    """
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
