"""The postings of a term that many documents hold, one place per document: to look up a few."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Column:
    """A code per document.

    Attributes:
        codes: 0 where the document lacks the term.
        peak: a code whose weight is not below that of any posting.
    """

    codes: npt.NDArray[np.uint16]
    peak: int


def column(size: int, docs: npt.NDArray[Any], codes: npt.NDArray[np.uint16]) -> Column:
    """Return the column of `size` documents: those that hold the term, and their codes."""
    spread = np.zeros(size, np.uint16)
    spread[docs] = codes
    highest, shortest = int(codes.max()) >> 8, int(codes.astype(np.uint8).min())
    return Column(spread, highest << 8 | shortest)
