"""Retrieval metrics with binary relevance, each for one question."""

import math
from collections.abc import Collection, Sequence

__all__ = ["ndcg", "recall", "reciprocal_rank"]


def recall(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant that is in the first k.

    >>> recall(["a", "b", "c"], {"a", "c"}, 2)
    0.5
    """
    return len(set(found[:k]) & set(relevant)) / len(set(relevant))


def reciprocal_rank(found: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / the place of the first relevant one, 0 where there is none."""
    return next((1 / rank for rank, key in enumerate(found, start=1) if key in relevant), 0.0)


def ndcg(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the discounted gain of the first k over that of the best order.

    Gain 1, discount log2(rank + 1): Järvelin and Kekäläinen 2002.
    """
    gain = sum(1 / math.log2(r + 1) for r, key in enumerate(found[:k], start=1) if key in relevant)
    best = sum(1 / math.log2(r + 1) for r in range(1, min(k, len(set(relevant))) + 1))
    return gain / best
