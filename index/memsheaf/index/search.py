"""Exact top-k over a snapshot: bounds first, then the few that can win in float64."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .columns import LEVELS
from .impacts import FREQUENCIES, FREQUENCY_ROUNDING, LENGTH_ROUNDING, table
from .lists import Lists
from .queries import Query
from .segment import Array, Ints
from .sources import Floats, Source

Test = Callable[[str], bool]
Pieces = list[tuple[Source, Ints]]
GROUPS = 2_048
"""Groups of documents by whose best sums the k-th best sum is bounded from below."""
GROUP = 128
"""Documents of a group, from which on there are more groups."""
SCAN = 64
"""Documents of a group up to which all sums are looked at for good ones, not only good groups."""
PRUNE = 1 << 18
"""Documents from which it may pay to look columns up for a few only."""
FEW = 2
"""Columns are looked up if no more than one group in so many has a document that may win."""
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

    Scores are summed in sixteen bits, each weight rounded up, so that the sums of a million
    documents stay in the cache. The documents whose sums reach the `limit`-th best, less what
    rounding may have given that, are scored exactly.

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
        source.base, size = size, size + source.span
    weights, terms = table(query.k1, query.b, query.mean), len(query.terms)
    small = terms <= TERMS
    heaviest = max([source.part.heaviest for source in sources]) if weighted else 1.0
    columns = max([source.plan(weights, small) for source in sources])
    unit = (UNITS - terms - columns * (LEVELS + 1)) / (sum(query.strength) * heaviest)
    factors = [strength * unit for strength in query.strength]
    groups = max(GROUPS, 8 * min(limit, size), size // GROUP)
    room = -(-size // groups) * groups
    sums: Array = _accumulator(room) if small else np.zeros(room, np.float32)
    Lists(sources, factors).add(sums, weights, weighted)
    slack = _slack(sources, query) * (1 + boost)
    wanted = _Wanted(sources, sums[:room].reshape(-1, groups), factors, limit, slack, test)
    pieces = wanted.by_lists() if columns and size >= PRUNE and not test else None
    if pieces is None:
        pieces = wanted.by_sums()
    if small:
        sums[:size] = 0
        _local.sums = sums
    return pieces, *rate(pieces, query, weighted)


def rate(pieces: Pieces, query: Query, weighted: bool) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of the documents; 0 of those without any term."""
    if not pieces:
        return np.zeros(0), np.zeros(0)
    tf = _joined([source.frequencies(docs) for source, docs in pieces])
    score, share = scored(tf, _joined([s.lengths.take(docs) for s, docs in pieces]), query)
    if weighted:
        score *= _joined([source.weights.take(docs) for source, docs in pieces])
    return score, share


def scored(tf: Floats, lengths: Floats, query: Query) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of documents, terms in their fixed order."""
    if not query.terms:
        return np.zeros(len(lengths)), np.zeros(len(lengths))
    strength, portion = np.array([query.strength, query.portion])[:, :, None]
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


@dataclass(slots=True)
class _Wanted:
    """Finds the documents that may be among the best.

    Attributes:
        sources: whose documents they are.
        grid: the sums of the lists, one document of each group in each row.
        factors: weight per term.
        limit: how many are wanted.
        slack: how many times the true score a sum may be, but for the rounding to whole units.
        test: see `top`.
    """

    sources: Sequence[Source]
    grid: Array
    factors: Sequence[float]
    limit: int
    slack: float
    test: Test | None

    def by_sums(self) -> Pieces:
        """Add the columns, then return the documents of the best sums."""
        sums, loose = self.grid.ravel(), 0
        for source in self.sources:
            if source.columns:
                view = sums[source.base : source.base + source.span]
                loose = max(loose, source.add_columns(view, self.factors))
        loose += len(self.factors)
        best = self.grid.max(axis=0)
        want = self._enough()
        while True:
            kth = _kth(best, want)
            found = self._above(best, max(self._least(kth, loose), 1))
            pieces, gone = self._allowed(found)
            if kth == 0 or gone <= want - self.limit or self._reached(pieces, kth):
                return pieces
            want *= 2

    def by_lists(self) -> Pieces | None:
        """Look columns up only for the documents whose lists say that they may win.

        That is MaxScore (Turtle and Flood 1995).

        Returns:
            None if they may be many, or too few of them live.
        """
        best, want = self.grid.max(axis=0), self._enough()
        rest = max([source.most(self.factors) for source in self.sources])
        least = self._least(_kth(best, want), len(self.factors)) - rest
        if least <= 0 or np.count_nonzero(best >= least) * FEW > len(best):
            return None
        found = self._above(best, least)
        value, loose = self.grid.ravel().take(found), 0
        for source, docs, part in self._split(found):
            loose = max(loose, source.look_up(docs, self.factors, value[part]))
        least = self._least(_kth(value, want), loose + len(self.factors))
        pieces, gone = self._allowed(found[value >= least])
        return pieces if gone <= want - self.limit else None

    def _least(self, kth: int, loose: int) -> int:
        """Return the least sum of a document that may be better than one with the sum `kth`."""
        return math.ceil((kth - loose) / self.slack)

    def _enough(self) -> int:
        """Return how many to look for, as a few of the best may be gone, or not be allowed."""
        return self.limit + self.limit // 4 + 2

    def _above(self, best: Array, least: int) -> Ints:
        """Return the places of sums of at least so much; `best` has the largest of each group."""
        if len(self.grid) <= SCAN:
            return (self.grid.ravel() >= least).nonzero()[0]
        groups = (best >= least).nonzero()[0]
        at = (self.grid.take(groups, axis=1).ravel() >= least).nonzero()[0]
        row = at // (len(groups) or 1)
        places: Ints = row * len(best) + groups[at - row * len(groups)]
        return places

    def _split(self, found: Ints) -> list[tuple[Source, Ints, slice]]:
        """Return the documents at places of the sums by source, and where they are in `found`."""
        edges = [0]
        if len(self.sources) > 1:
            edges = found.searchsorted([source.base for source in self.sources]).tolist()
        return [
            (source, found[b:e] - (source.base - source.lo), slice(b, e))
            for source, b, e in zip(self.sources, edges, [*edges[1:], len(found)], strict=True)
            if b < e
        ]

    def _allowed(self, found: Ints) -> tuple[Pieces, int]:
        """Return those of the documents that live and pass the test, and the number of others."""
        pieces: Pieces = []
        gone = 0
        for source, docs, _ in self._split(found):
            keep = source.allowed(docs, self.test)
            if keep is not None:
                docs = docs[keep]
                gone += len(keep) - len(docs)
            if len(docs):
                pieces.append((source, docs))
        return pieces, gone

    def _reached(self, pieces: Pieces, kth: int) -> bool:
        """Return whether enough documents have sums of at least so much."""
        sums = self.grid.ravel()
        places = [docs + (source.base - source.lo) for source, docs in pieces]
        counts = [int(np.count_nonzero(sums.take(some) >= kth)) for some in places]
        return sum(counts) >= self.limit


def _kth(sums: Array, number: int) -> int:
    """Return the sum that so many reach, 0 if there are fewer."""
    if number > len(sums):
        return 0
    ordered = sums.copy()
    ordered.partition(-number)
    return int(ordered[-number])


def _slack(sources: Sequence[Source], query: Query) -> float:
    """Return how many times the true score a score from codes may be at most."""
    longest, fractional, smallest, odd = 0.0, False, 1.0, False
    for source in sources:
        own = source.part.rounding
        longest, smallest = max(longest, own[0]), min(smallest, own[2])
        fractional, odd = fractional or own[1], odd or source.odd
    slack = 1.0051
    if longest > 128 or fractional:
        slack *= LENGTH_ROUNDING
    if odd or fractional:
        slack *= FREQUENCY_ROUNDING
    if fractional:
        if smallest < FREQUENCIES[0] or query.b == 1:
            return math.inf
        slack *= 1 + query.b / (1 - query.b) / query.mean
    if longest > FREQUENCIES[-2]:
        slack += query.k1 * (1 + longest / query.mean) / float(FREQUENCIES[-2])
    return slack * (1.00001 + 1e-6 * len(query.terms))
