"""Which memories are relevant to a message: to the whole of it, or to a stretch of a long one.

A long message shares a small part of its words with any memory. So its memories are also held
against each stretch of it that is as long as a question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memsheaf.index import content_words, get_analyzer, terms
from memsheaf.stack import Hit

__all__ = ["POOL", "STRETCH", "relevant_hits", "words_of"]

STRETCH = 8
"""Content words of a stretch; a message with no more is not long."""
POOL = 20
"""Hits of a long message that are looked at."""

_RISE = 0.1  # of the threshold, for each doubling: the more stretches, the more matches by chance
_LAST = 256  # words of a message that count
_CONTENT = 4_000  # characters of a memory that count


def words_of(text: str) -> list[str]:
    """The distinct terms of a long message's content words, in order; none of another message.

    A message in a script without spaces is never long.
    """
    content = content_words(text)
    found = list(dict.fromkeys(terms(get_analyzer("english"), content)))[-_LAST:]
    return found if STRETCH < len(found) <= 2 * len(content.split()) else []


def relevant_hits(
    words: Sequence[str], hits: Sequence[Hit], limit: int, min_relevance: float
) -> tuple[Hit, ...]:
    """Keep the hits that match a long message, or a stretch of it, well enough.

    A stretch's match is the share of its idf (over these hits) that a memory holds. It must reach
    `min_relevance`, and 0.1 more for each doubling of the message's length.

    Args:
        words: The message, from `words_of`.
        hits: What was found for it, best first.
        limit: Hits at the most.
        min_relevance: What a hit's own relevance must reach.

    Returns:
        The hits in their order.
    """
    if not hits:
        return ()
    rules = get_analyzer("english")
    contents = [set(terms(rules, hit.record.content[:_CONTENT])) for hit in hits]
    held = np.array([[word in content for word in words] for content in contents])
    frequency = held.sum(axis=0)
    size = max(len(hits), POOL)  # a few hits, chosen by these words, make no word a common one
    idf = np.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
    whole, matched = _stretches(idf[np.newaxis]), _stretches(held * idf)
    best = (matched / whole).max(axis=1)
    needed = min_relevance + _RISE * math.log2(len(words) / STRETCH)
    kept = [
        hit
        for hit, match in zip(hits, best.tolist(), strict=True)
        if (hit.relevance or 0.0) >= min_relevance or match >= needed
    ]
    return tuple(kept[:limit])


def _stretches(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sums of every `STRETCH` values in a row."""
    summed = np.cumsum(np.pad(rows, ((0, 0), (1, 0))), axis=1)
    return summed[:, STRETCH:] - summed[:, :-STRETCH]
