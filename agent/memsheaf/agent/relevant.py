"""Which memories are relevant to a message: to the whole of it, or to a stretch of a long one.

A long message shares a small part of its words with any memory. So its memories are also held
against each stretch of it that is as long as a question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from memsheaf.index import content_words, get_analyzer, terms
from memsheaf.stack import Hit

__all__ = ["POOL", "STRETCH", "is_long", "relevant_hits"]

STRETCH = 8
"""Content words of a stretch; a message with no more is not long."""
POOL = 20
"""Hits of a long message that are looked at."""

_RISE = 0.1  # of the threshold, for each doubling: the more stretches, the more matches by chance
_LAST = 256  # words of a message that count
_CONTENT = 4_000  # characters of a memory that count


def is_long(text: str) -> bool:
    """Whether a message has more content words than a question; not in scripts without spaces."""
    return len(_words(text)) > STRETCH


def relevant_hits(
    text: str, hits: Sequence[Hit], limit: int, min_relevance: float
) -> tuple[Hit, ...]:
    """Keep the hits that match a long message, or a stretch of it, well enough.

    A stretch's match is the share of its idf (over these hits) that a memory holds. It must reach
    `min_relevance`, and 0.1 more for each doubling of the message's length.

    Args:
        text: The message.
        hits: What was found for it, best first.
        limit: Hits at the most.
        min_relevance: What a hit's own relevance must reach.

    Returns:
        The hits in their order.
    """
    words = _words(text)
    rules = get_analyzer("english")
    held = [set(terms(rules, hit.record.content[:_CONTENT])) for hit in hits]
    asked = set(words)
    frequency = Counter(word for found in held for word in found & asked)
    size = max(len(hits), POOL)  # a few hits, chosen by these words, make no word a common one
    idf = [math.log(1 + (size - frequency[w] + 0.5) / (frequency[w] + 0.5)) for w in words]
    needed = min_relevance + _RISE * math.log2(max(1, len(words) / STRETCH))
    kept = [
        hit
        for hit, found in zip(hits, held, strict=True)
        if (hit.relevance or 0.0) >= min_relevance or _best_stretch(words, idf, found) >= needed
    ]
    return tuple(kept[:limit])


def _best_stretch(words: Sequence[str], idf: Sequence[float], held: set[str]) -> float:
    whole = [0.0, *accumulate(idf)]
    parts = (value if word in held else 0.0 for word, value in zip(words, idf, strict=True))
    matched = [0.0, *accumulate(parts)]
    return max(
        (matched[end] - matched[end - STRETCH]) / (whole[end] - whole[end - STRETCH])
        for end in range(STRETCH, len(words) + 1)
    )


def _words(text: str) -> list[str]:
    """The distinct terms of the content words, in order; none where few spaces are between."""
    content = content_words(text)
    found = list(dict.fromkeys(terms(get_analyzer("english"), content)))[-_LAST:]
    return found if len(found) <= 2 * len(content.split()) else []
