"""Weights of a frequent term as one byte per document: adding a column beats scattering a list."""

from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

LEVELS = 63
"""Steps of a column's weights."""
BLOCK = 1 << 17
"""Documents per step: what is computed stays in the cache."""
_local = local()


@dataclass(frozen=True, slots=True)
class Column:
    """A weight per document, rounded up.

    Attributes:
        levels: the weight in steps, 0 where the document lacks the term.
        step: what a level is worth; a weight is less than that above the true one.
    """

    levels: npt.NDArray[np.uint8]
    step: float

    def add(self, acc: npt.NDArray[Any], factor: int) -> None:
        """Add the levels, times the factor."""
        scratch = getattr(_local, "scratch", None)
        if scratch is None or scratch.dtype != acc.dtype:
            scratch = _local.scratch = np.empty(BLOCK, acc.dtype)
        for b in range(0, len(acc), BLOCK):
            part = acc[b : b + BLOCK]
            gain = scratch[: len(part)]
            np.multiply(self.levels[b : b + BLOCK], gain.dtype.type(factor), gain)
            part += gain


def column(size: int, docs: npt.NDArray[Any], weights: npt.NDArray[Any]) -> Column:
    """Return the column of `size` documents, for those that hold the term and their weights."""
    step = float(weights.max()) / LEVELS
    levels = np.zeros(size, np.uint8)
    levels[docs] = np.minimum(np.ceil(weights / step), LEVELS)
    return Column(levels, step)
