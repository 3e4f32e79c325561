"""Exact top-k over a snapshot: bounds first, then the few that can win in float64."""

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .bounds import Bounds, split
from .impacts import FREQUENCIES, FREQUENCY_ROUNDING, LENGTH_ROUNDING, table
from .queries import Query
from .segment import LARGE, SHARE, Array, Ints
from .sources import Floats, Source

Test = Callable[[str], bool]
Pieces = list[tuple[Source, Ints]]
UNITS = 65_000
"""The largest sum that a query can give."""
TERMS = 4_096
"""Terms of a query up to which sixteen bits are enough."""
_local = threading.local()


def top(
    sources: Sequence[Source],
    query: Query,
    limit: int,
    weighted: bool,
    boost: float = 0.0,
    test: Test | None = None,
) -> tuple[Pieces, Floats, Floats]:
    """Return documents among which the best `limit` surely are, with scores and relevance.

    Lists are added up in sixteen bits, each weight rounded up. Terms that many documents hold come
    last: once the documents of the largest sums score more than these terms can give, only the few
    documents are looked up in them that may still win. That is MaxScore (Turtle and Flood 1995).

    Args:
        sources: what to search, with their postings.
        query: the terms, statistics and parameters.
        limit: how many will be wanted.
        weighted: whether documents have weights other than 1.
        boost: largest share by which a score may still rise.
        test: says of an id whether it may be found.
    """
    size = 0
    for source in sources:
        source.base, size = size - source.lo, size + source.span
    terms = len(query.terms)
    heaviest = max([source.part.heaviest for source in sources]) if weighted else 1.0
    unit = (UNITS - terms) / (sum(query.strength) * heaviest)
    small = terms <= TERMS
    sums: Array = _accumulator(size) if small else np.zeros(size, np.float32)
    factors = [strength * unit for strength in query.strength]
    bounds = Bounds(sources, sums, table(query.k1, query.b, query.mean), factors, weighted)
    often = max(LARGE, size // SHARE)
    left = [i for i, held in enumerate(query.held) if held >= often]
    left.sort(key=factors.__getitem__, reverse=True)
    bounds.add([i for i, held in enumerate(query.held) if held < often], left)
    slack = _slack(sources, query) * (1 + boost)
    pieces = _best(sources, bounds, left, limit, slack, test)
    exact = slack < math.inf and not any([source.odd for source in sources])
    tf = bounds.frequencies(pieces) if pieces and exact else None
    if small:
        sums[:size] = 0
        _local.sums = sums
    return pieces, *rate(pieces, query, weighted, tf)


def _best(
    sources: Sequence[Source],
    bounds: Bounds,
    left: list[int],
    limit: int,
    slack: float,
    test: Test | None,
) -> Pieces:
    """Return the documents that live, pass the test, and may be among the best."""
    want = limit + limit // 4 + 2  # a few of the best may be gone
    while True:
        places = bounds.best(want, slack)
        if places is None:
            bounds.add(left[:1], left[1:])
            del left[0]
            continue
        pieces: Pieces = []
        gone = 0
        for source, docs, _ in split(sources, places):
            keep = source.allowed(docs, test)
            if keep is not None:
                docs = docs[keep]
                gone += len(keep) - len(docs)
            if len(docs):
                pieces.append((source, docs))
        if gone <= want - limit or len(places) < want:
            return pieces
        want *= 2


def rate(
    pieces: Pieces, query: Query, weighted: bool, tf: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of the documents; 0 of those without any term.

    Args:
        pieces: the documents.
        query: the terms, statistics and parameters.
        weighted: whether documents have weights other than 1.
        tf: the frequency of each term (rows) in each of them (columns), if it is known.
    """
    if not pieces:
        return np.zeros(0), np.zeros(0)
    if tf is None:
        tf = _joined([source.frequencies(docs) for source, docs in pieces])
    score, share = scored(tf, _joined([s.lengths.take(docs) for s, docs in pieces]), query)
    if weighted:
        score *= _joined([source.weights.take(docs) for source, docs in pieces])
    return score, share


def scored(tf: Floats, lengths: Floats, query: Query) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of documents, terms in their fixed order."""
    if not query.terms:
        return np.zeros(len(lengths)), np.zeros(len(lengths))
    strength, portion = np.array(query.strength)[:, None], np.array(query.portion)[:, None]
    norm = lengths * (query.k1 * query.b / query.mean)
    norm += query.k1 * (1 - query.b) + 1e-300  # not 0: an absent term gets 0
    score = tf * strength
    score /= tf + norm
    # Not sum(): its order of additions depends on the shape.
    total: Floats = np.add.accumulate(score)[-1]
    held = tf > 0
    share: Floats = np.add.accumulate(held * portion)[-1]
    for idf, alike in query.shared:
        share += idf * np.max([held[i] * similar for i, similar in alike], axis=0)
    share /= query.whole
    return total, share


def _joined(arrays: list[Floats]) -> Floats:
    return np.concatenate(arrays, axis=-1) if len(arrays) > 1 else arrays[0]


def _accumulator(size: int) -> npt.NDArray[np.uint16]:
    """Return this thread's sums, all 0; the caller gives them back clean."""
    sums: npt.NDArray[np.uint16] | None = getattr(_local, "sums", None)
    _local.sums = None  # what an error leaves dirty is never used again
    return sums if sums is not None and len(sums) >= size else np.zeros(size + size // 8, np.uint16)


def _slack(sources: Sequence[Source], query: Query) -> float:
    """Return how many times the true score a score from codes may be at most."""
    longest, fractional, smallest, odd = 0.0, False, 1.0, False
    for source in sources:
        own = source.part.rounding
        longest, smallest = max(longest, own[0]), min(smallest, own[2])
        fractional, odd = fractional or own[1], odd or source.odd
    slack = 1.0051
    if longest > 128:
        base, norm = smallest + query.k1 * (1 - query.b), query.k1 * query.b / query.mean * longest
        slack *= (base + norm) / (base + norm / LENGTH_ROUNDING)
    if odd or fractional:
        slack *= FREQUENCY_ROUNDING
    if fractional:
        if smallest <= FREQUENCIES[0] or query.b == 1:
            return math.inf
        slack *= 1 + query.b / (1 - query.b) / query.mean
    if longest > FREQUENCIES[-2]:
        slack += query.k1 * (1 + longest / query.mean) / float(FREQUENCIES[-2])
    return slack * (1.00001 + 1e-6 * len(query.terms))
