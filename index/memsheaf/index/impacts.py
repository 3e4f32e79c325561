"""Sixteen-bit impacts: a frequency and a length in one code, rounded so that weights are bounds.

A code's weight is never below the true BM25 weight: frequencies are rounded up, lengths down, and
the mean length is taken from a grid just above. So one table of 65,536 weights serves any k1, b and
mean without touching the postings, and a search may prune by it safely.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEPS = np.arange(256)
FREQUENCIES: Floats = (1 + _STEPS % 16 / 16) * 2.0 ** (_STEPS // 16 - 6)
"""Frequency per high byte; whole numbers to 31 are exact; the last one stands for all above."""
FREQUENCIES[-1] = np.inf
LENGTHS: Floats = np.where(_STEPS < 128, _STEPS, np.floor(128 * 1.0725 ** (_STEPS - 128.0)))
"""Length per low byte; whole numbers to 128 are exact."""
ROUNDING = 1.15
"""A weight is at most this many times the true one, for frequencies below the last."""
_GRID = math.log(1.005)


def encode(frequency: Floats, length: Floats | np.float64) -> npt.NDArray[np.uint16]:
    """Return the codes of frequencies (above 0) in documents of the given lengths."""
    high = np.searchsorted(FREQUENCIES, frequency, "left").clip(0, 255)
    low = np.searchsorted(LENGTHS, length, "right") - 1
    codes: npt.NDArray[np.uint16] = (high << 8 | low.clip(0)).astype(np.uint16)
    return codes


def weights(k1: float, b: float, mean: float) -> npt.NDArray[np.float32]:
    """Return the weight of each code, an upper bound on `bm25`."""
    return _weights(k1, b, step(mean))


def step(mean: float) -> int:
    """Return the step of the grid at or above a mean length."""
    return math.ceil(math.log(mean) / _GRID) if mean > 0 else 0


@lru_cache(maxsize=32)
def _weights(k1: float, b: float, at: int) -> npt.NDArray[np.float32]:
    norm = k1 * (1 - b + b * LENGTHS / math.exp(at * _GRID))
    frequency = FREQUENCIES[:-1, None]
    table = np.full((256, 256), k1 + 1)
    table[:-1] = frequency * (k1 + 1) / (frequency + norm)
    result = (table.ravel() * (1 + 1e-6)).astype(np.float32)
    result.flags.writeable = False
    return result


def bm25(frequency: Floats, length: Floats, k1: float, b: float, mean: float) -> Floats:
    """Return the true weights (Robertson and Zaragoza 2009, section 3.4; without idf)."""
    return frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / (mean or 1.0)))
