"""Weights of a frequent term, one per document: a column costs less to add than a long list."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from .impacts import FREQUENCIES

LEVELS = 63
"""Steps of a column's weights."""
BLOCK = 1 << 16
"""Documents per step: their sums stay in the cache."""
_HELD = np.where(np.arange(256) > 0, FREQUENCIES, 0.0)
_local = local()


@dataclass(frozen=True, slots=True)
class Column:
    """A weight per document, rounded up.

    Attributes:
        levels: the weight in steps, 0 where the document lacks the term.
        high: the frequency's code, 0 where the document lacks the term.
        step: what a level is worth; a weight is less than that above the true one.
    """

    levels: npt.NDArray[np.uint8]
    high: npt.NDArray[np.uint8]
    step: float

    def frequencies(self, docs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the frequencies of the term in documents, as far as codes tell them."""
        found: npt.NDArray[np.float64] = _HELD.take(self.high.take(docs))
        return found


def column(
    size: int,
    docs: npt.NDArray[Any],
    codes: npt.NDArray[np.uint16],
    weights: npt.NDArray[np.float32],
) -> Column:
    """Return the column of `size` documents: those that hold the term, their codes and weights."""
    step = float(weights.max()) / LEVELS
    weights /= np.float32(step)
    np.ceil(weights, out=weights)
    np.minimum(weights, LEVELS, out=weights)
    levels, high = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    levels[docs] = weights.astype(np.uint8)
    high[docs] = (codes >> 8).astype(np.uint8)
    return Column(levels, high, step)


def add(columns: Sequence[tuple[Column, int]], sums: npt.NDArray[np.uint16]) -> None:
    """Add the levels of columns, times their factors, to the sums."""
    scratch: npt.NDArray[np.uint16] | None = getattr(_local, "scratch", None)
    if scratch is None:
        scratch = _local.scratch = np.empty(BLOCK, np.uint16)
    for begin in range(0, len(sums), BLOCK):
        part = sums[begin : begin + BLOCK]
        gain = scratch[: len(part)]
        for column, factor in columns:
            gain[:] = column.levels[begin : begin + BLOCK]
            gain *= np.uint16(factor)
            part += gain
