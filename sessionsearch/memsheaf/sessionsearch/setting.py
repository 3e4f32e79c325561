"""What a ranking makes of the conversations that are searched, whatever the query."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from memsheaf.index.impacts import FREQUENCIES, LENGTHS

from .catalog import Catalog, Searched
from .ranking import SessionRanking

__all__ = ["AFTER", "Setting"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

AFTER = 0.8
"""What the turn after lends, as a share of what the turn before lends."""
_AROUND = 5
"""An item, and two neighbours on each side."""


class Setting:
    """What a ranking makes of the statistics of some conversations; the same for every query.

    Attributes:
        searched: The conversations.
        size: How many numbers of conversations there are.
        table: BM25 without idf by the index's codes.
        lent: What the turn before lends, for each conversation.
        around: What an item and its neighbours hold at the most, as a multiple of what one item of
            the conversation does.
        factors: By role and type, for each kind of item; None for 1.
        highest: The most that they can be.
    """

    def __init__(self, catalog: Catalog, searched: Searched, ranking: SessionRanking) -> None:
        self.searched = searched
        mean = _rounded(searched.words / searched.items if searched.items else 1.0)
        self._k1, b = ranking.saturation(mean)
        self.table = _weights(self._k1, b, mean)
        items, words = catalog.conversations["items"], catalog.conversations["words"]
        self.size = len(items)
        self.lent = ranking.neighbours / (1 + words / np.maximum(items, 1) / ranking.reach)
        one, two = self.lent, self.lent**2  # not above 1
        near = np.empty((self.size, _AROUND))  # by how many items hold a word: the largest shares
        near[:, 0] = 1.0
        near[:, 1] = 1 + one
        near[:, 2] = near[:, 1] + np.maximum(AFTER * one, two)
        near[:, 3] = near[:, 1] + AFTER * one + two
        near[:, 4] = near[:, 3] + AFTER**2 * two
        self._near, self.around = near.reshape(-1), near[:, -1]
        longest = searched.words / searched.conversations if searched.conversations else 1.0
        self._norm = self._k1 * (1 - b + b / (longest or 1.0) * words)
        self.factors = catalog.factors(ranking.roles, ranking.types)
        self.highest = 1.0 if self.factors is None else float(self.factors.max())

    def near(self, conversations: Ints, counts: Ints) -> Floats:
        """What an item and its neighbours hold of a word at the most, as a multiple of its peak.

        Args:
            conversations: For each of these.
            counts: How many of its items hold the word.
        """
        places = np.minimum(counts, _AROUND)
        places += conversations * _AROUND - 1
        return self._near.take(places)

    def heard(self, conversations: Ints, frequencies: Floats) -> Floats:
        """BM25 without idf of whole conversations that have a word so often."""
        heard: Floats = frequencies / (self._norm.take(conversations) + frequencies)
        heard *= self._k1 + 1
        return heard


@lru_cache(maxsize=64)
def _weights(k1: float, b: float, mean: float) -> Floats:
    """BM25 without idf by the index's codes; lengths above 128 are rounded to 7 per cent."""
    frequency = FREQUENCIES[:-1, None]
    table = np.full((256, 256), k1 + 1)
    table[:-1] = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * LENGTHS / mean))
    return table.ravel()


def _rounded(mean: float) -> float:
    """A mean length to half a per cent, so that an appended item does not need other tables."""
    return math.exp(round(math.log(mean) / 0.005) * 0.005) if mean > 0 else 1.0
