"""Exact top-k over a snapshot: bounds first, then the few that can win in float64."""

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .columns import LEVELS
from .impacts import FREQUENCIES, FREQUENCY_ROUNDING, LENGTH_ROUNDING, Table, table
from .queries import Query
from .segment import Array, Ints
from .sources import Floats, Source

Test = Callable[[str], bool]
Pieces = list[tuple[Source, Ints]]
GROUPS = 2_048
"""Groups of documents by whose best scores the k-th best score is bounded from below."""
UNITS = 65_000
"""What the largest sum that a query could give is, in units of the accumulator."""
_NO_PLACES, _NO_CODES = np.zeros(0, np.int64), np.zeros(0, np.uint16)
_local = threading.local()


class Lists:
    """The lists that are added posting by posting, of all sources, end to end."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        terms: list[int] = []
        sizes: list[int] = []
        self._starts: list[int] = []
        docs, codes, edges = [], [], [0]
        for source in sources:
            for i in source.scattered:
                b, e = source.bounds[i]
                terms.append(i)
                sizes.append(e - b)
                self._starts.append(b)
                docs.append(source.docs[b:e])
                codes.append(source.codes[b:e])
            edges.append(sum(sizes))
        self._docs, self._edges = docs, edges
        self._terms, self._sizes = np.array(terms, np.int64), np.array(sizes, np.int64)
        self._places = np.concatenate([_NO_PLACES, *docs], dtype=np.int64)
        self._codes = np.concatenate([_NO_CODES, *codes])
        for source, x, y in zip(sources, edges, edges[1:], strict=False):
            if source.base != source.lo:
                self._places[x:y] += source.base - source.lo

    def add(self, acc: Array, factors: Floats, weights: Table, weighted: bool) -> None:
        """Add the weights of all postings, times the factors and rounded up, to the sums."""
        gain = weights.weights.take(self._codes)
        if weighted:
            for source, x, y in zip(self._sources, self._edges, self._edges[1:], strict=False):
                gain[x:y] *= source.weights.take(self._places[x:y] - (source.base - source.lo))
        factor = factors.astype(np.float32).take(self._terms).repeat(self._sizes)
        units = np.empty(len(gain), acc.dtype)
        np.multiply(gain, factor, out=units, casting="unsafe")
        units += 1
        np.add.at(acc, self._places, units)

    def frequencies(self, found: Ints, mark: npt.NDArray[np.bool_], tf: Floats) -> None:
        """Put the exact frequency of each term (rows) in sorted places (columns) into `tf`."""
        mark[found] = True
        hit = mark.take(self._places).nonzero()[0]
        mark[found] = False
        stops = self._sizes.cumsum()
        row = stops.searchsorted(hit, "right")
        value = FREQUENCIES.take(self._codes.take(hit) >> 8)
        edges = hit.searchsorted(self._edges).tolist()
        for source, x, y in zip(self._sources, edges, edges[1:], strict=False):
            if source.odd and x < y:
                starts = np.array(self._starts) - stops + self._sizes
                value[x:y] = source.exact(hit[x:y] + starts.take(row[x:y]))
        tf[self._terms.take(row), found.searchsorted(self._places.take(hit))] = value


def scored(tf: Floats, lengths: Floats, query: Query) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of documents, terms in their fixed order."""
    norm = lengths * (query.k1 * query.b / query.mean)
    norm += query.k1 * (1 - query.b) + 1e-300  # not 0: an absent term gets 0
    score = tf * query.strength[:, None]
    score /= tf + norm
    # Not sum(): its order of additions depends on the shape.
    total: Floats = np.add.accumulate(score)[-1]
    held = tf > 0
    share: Floats = np.add.accumulate(held * query.portion[:, None])[-1]
    for idf, alike in query.shared:
        share += idf * np.max([held[i] * similar for i, similar in alike], axis=0)
    return total, share / query.whole


def top(
    sources: Sequence[Source],
    query: Query,
    limit: int,
    weighted: bool,
    boost: float = 0.0,
    test: Test | None = None,
) -> tuple[Pieces, Floats, Floats]:
    """Return documents among which the best `limit` surely are, with scores and relevance.

    Scores are summed in sixteen bits, each weight rounded up; so the sums of a million documents
    stay in the cache. The documents whose sums reach the `limit`-th best, less what rounding may
    have given that, are scored exactly.

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
    weights, factors = table(query.k1, query.b, query.mean), query.strength
    heaviest = max([source.part.heaviest for source in sources]) if weighted else 1.0
    columns = max([source.plan(weights) for source in sources])
    room = UNITS - len(factors) - columns * (LEVELS + 1)
    factors = factors * (room / (float(factors.sum()) * heaviest))
    groups = max(GROUPS, 8 * min(limit, size))
    acc, mark = _scratch(-(-size // groups) * groups, np.uint16 if room > 0 else np.float32)
    lists = Lists(sources)
    lists.add(acc, factors, weights, weighted)
    loose = 0
    for source in sources:
        view = acc[source.base : source.base + source.span]
        loose = max(loose, source.add_columns(view, factors))
    loose += len(factors)
    grid = acc[: -(-size // groups) * groups].reshape(-1, groups)
    slack = _slack(sources, query) * (1 + boost)
    pieces = _candidates(sources, grid, limit, loose, slack, test)
    acc[:size] = 0
    if pieces:
        found = np.concatenate([docs + (source.base - source.lo) for source, docs in pieces])
        tf = np.zeros((len(factors), len(found)))
        lists.frequencies(found, mark, tf)
    _local.scratch = acc, mark
    if not pieces:
        return [], np.zeros(0), np.zeros(0)
    end = 0
    for source, docs in pieces:
        begin, end = end, end + len(docs)
        if source.columns:
            chosen = [i for i, _ in source.columns]
            tf[chosen, begin:end] = source.frequencies(docs, chosen)
    score, share = scored(tf, np.concatenate([s.lengths.take(docs) for s, docs in pieces]), query)
    if weighted:
        score *= np.concatenate([source.weights.take(docs) for source, docs in pieces])
    return pieces, score, share


def _scratch(size: int, kind: type[np.generic]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return this thread's accumulator of zeros, and marks; the caller gives them back clean."""
    scratch: tuple[Array, npt.NDArray[np.bool_]] | None = getattr(_local, "scratch", None)
    _local.scratch = None  # what an error leaves dirty is never used again
    if scratch is None or len(scratch[1]) < size or scratch[0].dtype != kind:
        return np.zeros(size + size // 8, kind), np.zeros(size + size // 8, bool)
    return scratch


def _candidates(
    sources: Sequence[Source], grid: Array, limit: int, loose: int, slack: float, test: Test | None
) -> Pieces:
    """Return the documents that may be among the best.

    Args:
        sources: whose documents they are.
        grid: the sums, one document of each group in each row.
        limit: how many are wanted.
        loose: by how much a sum may exceed the true one ...
        slack: ... and how many times what is left.
        test: see `top`.
    """
    best = grid.max(axis=0)
    want = limit + limit // 4 + 2  # a few of the best may be gone, or not be allowed
    while True:
        kth = int(np.partition(best, -want)[-want]) if want <= len(best) else 0
        found = _above(grid, best, max((kth - loose) / slack, 1))
        sure = grid.ravel().take(found) >= kth
        edges = found.searchsorted([source.base for source in sources]).tolist()
        chosen: Pieces = []
        count = 0
        for source, b, e in zip(sources, edges, [*edges[1:], len(found)], strict=True):
            if b < e:
                docs, mine = found[b:e] - (source.base - source.lo), sure[b:e]
                keep = source.allowed(docs, test)
                if keep is not None:
                    docs, mine = docs[keep], mine[keep]
                if len(docs):
                    chosen.append((source, docs))
                    count += int(np.count_nonzero(mine))
        if kth == 0 or count >= limit:
            return chosen
        want *= 2


def _above(grid: Array, best: Array, least: float) -> Ints:
    """Return the places of sums of at least so much; `best` has the largest of each column."""
    columns = (best >= least).nonzero()[0]
    if len(columns) * 8 > len(best):
        return (grid.ravel() >= least).nonzero()[0]
    part = grid.take(columns, axis=1).ravel()
    row, column = np.divmod((part >= least).nonzero()[0], len(columns) or 1)
    return row * len(best) + columns[column]


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
