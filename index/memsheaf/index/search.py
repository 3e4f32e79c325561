"""Exact top-k over a snapshot: bounds first, then the few that can win in float64."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .documents import Partition
from .head import Head
from .impacts import FREQUENCIES, ROUNDING, bm25, step, weights
from .segment import Ints, Segment

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
PRUNE = 20_000
"""Postings left for which it pays to look whether they can be skipped."""
_local = threading.local()


@dataclass(slots=True)
class Postings:
    """One term in one source: documents, codes, and where the exact frequencies are."""

    docs: npt.NDArray[np.int32]
    codes: npt.NDArray[np.uint16]
    at: "Ints | int"


_NONE = Postings(np.zeros(0, np.int32), np.zeros(0, np.uint16), 0)


class Source:
    """A segment or the head, as one search sees it.

    Attributes:
        base: its first place in the accumulator.
        lo: its first document that is searched.
        span: how many documents are searched.
        alive: which documents still live, None if all do.
    """

    def __init__(self, part: Segment | Head, count: int, size: int, version: int) -> None:
        self.part, self.count, self._size = part, count, size
        self.base, self.lo, self.span = 0, 0, count
        died = part.died
        self._died, self._version = (died[:count] if died is not None else None), version
        self._keep: Mask | None = None
        self.lists: list[Postings] = []
        if isinstance(part, Head):
            self.lengths, self.weights = part.lengths[:count], part.weights[:count]
            self._flat = part.terms[:size], part.docs, part.codes, part.tf
        else:
            self.lengths, self.weights = part.arrays["lengths"], part.arrays["weights"]

    def alive(self, docs: Ints) -> Mask | None:
        """Return which of the documents live, None if all do."""
        return None if self._died is None else self._died[docs] > self._version

    def kept(self) -> Ints:
        """Return the selected live documents."""
        docs = np.arange(self.lo, self.lo + self.span)
        if self._keep is not None:
            docs = docs[self._keep]
        alive = self.alive(docs)
        return docs if alive is None else docs[alive]

    def gather(self, terms: npt.NDArray[np.int32]) -> None:
        """Look up the postings of the terms."""
        if isinstance(self.part, Head):
            held, docs, codes, _ = self._flat
            for term in terms.tolist():
                at = np.flatnonzero(held == term)
                self.lists.append(Postings(docs[at], codes[at], at))
        else:
            docs, codes = self.part.arrays["docs"], self.part.arrays["codes"]
            for b, e in self.part.ranges(terms):
                self.lists.append(Postings(docs[b:e], codes[b:e], b) if e > b else _NONE)

    def restrict(self, where: Partition) -> None:
        """Keep only the documents of the selected partitions that live."""
        keep: Mask | None
        if isinstance(self.part, Head):
            keep = self.part.mask(where, self.count)
        else:
            chosen = self.part.select(where)
            if isinstance(chosen, slice):
                self.lo, self.span, keep = chosen.start, chosen.stop - chosen.start, None
                self.lists = [self._between(p, chosen.start, chosen.stop) for p in self.lists]
            else:
                keep = chosen
        if self._died is not None:
            living = self._died[self.lo : self.lo + self.span] > self._version
            if not living.all():
                keep = living if keep is None else keep & living
        if keep is not None:
            self.filter(keep)
            self._keep = keep

    @staticmethod
    def _between(p: Postings, lo: int, hi: int) -> Postings:
        b, e = p.docs.searchsorted(np.array([lo, hi], np.int32)).tolist()
        at = p.at + b if isinstance(p.at, int) else p.at[b:e]
        return Postings(p.docs[b:e], p.codes[b:e], at)

    def filter(self, keep: Mask) -> None:
        """Drop the postings of documents outside the mask, which begins at `lo`."""
        for i, p in enumerate(self.lists):
            some = np.flatnonzero(keep[p.docs - self.lo])
            at = p.at + some if isinstance(p.at, int) else p.at[some]
            self.lists[i] = Postings(p.docs[some], p.codes[some], at)

    def frequencies(self, p: Postings, places: Ints) -> Floats:
        """Return the exact frequencies of some postings."""
        at = p.at + places if isinstance(p.at, int) else p.at[places]
        return self._flat[3][at] if isinstance(self.part, Head) else self.part.frequencies(at)

    def places(self, id: str) -> list[int]:
        """Return the searched documents that were ever called `id`."""
        if isinstance(self.part, Head):
            found = [n for n, own in enumerate(self.part.ids[: self.count]) if own == id]
        else:
            found = self.part.ids.find(id)
        return found

    def adjacent(self, docs: Ints, sequence: npt.NDArray[np.int32]) -> Floats:
        """Return per document the share of the query's neighbouring terms that it also holds so."""
        share = np.zeros(len(docs))
        pairs = set(pairwise(sequence.tolist()))
        if pairs:
            for n, doc in enumerate(docs.tolist()):
                own = self.part.sequence(doc).tolist()
                share[n] = len(pairs.intersection(pairwise(own))) / len(pairs)
        return share

    def peak(self, i: int, term: int, model: "Model", table: npt.NDArray[np.float32]) -> float:
        """Return the largest weight in a posting list."""
        p = self.lists[i]
        if not len(p.codes):
            return 0.0
        if len(p.codes) < 4096 or isinstance(self.part, Head):
            return float(table.take(p.codes).max())
        peaks, key = self.part.peaks, (term, model.k1, model.b, step(model.mean))
        if key not in peaks:
            if len(peaks) > 10_000:
                peaks.clear()
            peaks[key] = float(table.take(p.codes).max())
        return peaks[key]


@dataclass(slots=True)
class Query:
    """What to score: terms as numbers, in a fixed order.

    Attributes:
        terms: term numbers.
        factors: weight per term (occurrences in the query, similarity of a variant).
        slots: per word of the query its terms' places in `terms`, with their similarity.
    """

    terms: npt.NDArray[np.int32]
    factors: Floats
    slots: list[list[tuple[int, float]]]


@dataclass(slots=True)
class Model:
    """The statistics of the searched documents and the parameters of BM25."""

    idf: Floats
    unknown: float
    k1: float
    b: float
    mean: float


def lookup(p: Postings, docs: Ints) -> tuple[Ints, Ints]:
    """Return which of the sorted documents are in a list, and where."""
    if not len(p.docs):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    place = p.docs.searchsorted(docs.astype(np.int32))
    place[place == len(p.docs)] = 0
    hit = np.flatnonzero(p.docs[place] == docs)
    return hit, place[hit]


def exact(source: Source, docs: Ints, query: Query, model: Model) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of sorted documents, terms in their fixed order."""
    total, lengths = np.zeros(len(docs)), source.lengths[docs]
    matched = np.zeros((len(query.terms), len(docs)), bool)
    for i, p in enumerate(source.lists):
        hit, place = lookup(p, docs)
        tf = source.frequencies(p, place)
        weight = bm25(tf, lengths[hit], model.k1, model.b, model.mean)
        total[hit] += query.factors[i] * model.idf[i] * weight
        matched[i, hit] = True
    share, whole = np.zeros(len(docs)), 0.0
    for slot in query.slots:
        idf = max((float(model.idf[i]) for i, _ in slot), default=model.unknown)
        whole += idf
        if slot:
            share += idf * np.max([matched[i] * similar for i, similar in slot], axis=0)
    return total * source.weights[docs], share / whole if whole else share


def top(
    sources: Sequence[Source],
    query: Query,
    model: Model,
    limit: int,
    weighted: bool,
    boost: float = 0.0,
) -> list[tuple[Source, Ints]]:
    """Return documents per source among which the best `limit` surely are.

    Args:
        sources: what to search, with their postings.
        query: the terms.
        model: statistics and parameters.
        limit: how many will be wanted.
        weighted: whether documents have weights other than 1.
        boost: largest share by which a score may still rise.
    """
    size = 0
    for source in sources:
        source.base, size = size, size + source.span
    acc = getattr(_local, "acc", None)
    if acc is None or len(acc) < size:
        acc = np.zeros(size + size // 8 + 1024, np.float32)
    _local.acc = None  # an accumulator that an error leaves dirty is never used again
    table = weights(model.k1, model.b, model.mean)
    factor = (query.factors * model.idf).astype(np.float32)
    terms = query.terms.tolist()
    peaks = [max(s.peak(i, t, model, table) for s in sources) for i, t in enumerate(terms)]
    bounds = factor * peaks
    counts = np.array([sum(len(s.lists[i].docs) for s in sources) for i in range(len(terms))])
    order = np.argsort(-bounds).tolist()
    rest = np.append(np.cumsum(bounds[order][::-1])[::-1], 0.0)
    left = np.append(np.cumsum(counts[order][::-1])[::-1], 0)
    slack = _slack(sources, model)
    may_prune = not weighted

    touched: list[tuple[Source, Ints]] = []
    seen = 0
    done = len(order)
    for j, i in enumerate(order):
        if may_prune and left[j] > PRUNE and rest[0] > 2 * rest[j]:
            floor = _floor(acc, touched, limit) / slack
            if floor > rest[j] * (1 + boost):
                done = j
                break
        for source in sources:
            p = source.lists[i]
            if len(p.docs):
                view = acc[source.base : source.base + source.span]
                docs = p.docs - np.int32(source.lo) if source.lo else p.docs
                np.add.at(view, docs, table.take(p.codes) * factor[i])
                touched.append((source, docs))
        seen += int(counts[i])
    floor = 0.0 if weighted else _floor(acc, touched, limit) / slack
    least = max(floor - rest[done] * (1 + boost), float(np.finfo(np.float32).tiny))
    if seen * 3 < size:
        some = [
            docs[acc[s.base : s.base + s.span].take(docs) >= least].astype(np.int64) + s.base
            for s, docs in touched
        ]
        found = _distinct(some)
        value = acc.take(found)
        for s, docs in touched:
            acc[s.base : s.base + s.span][docs] = 0
    else:
        found = np.flatnonzero(acc[:size] >= least)
        value = acc.take(found)
        acc[:size] = 0
    _local.acc = acc
    tail = list(zip(order[done:], rest[done + 1 :].tolist(), strict=True))
    return _narrow(sources, found, value, tail, table, factor, limit, slack, boost, weighted)


def _floor(acc: npt.NDArray[np.float32], touched: list[tuple[Source, Ints]], limit: int) -> float:
    """Return a score that `limit` live documents surely reach, 0 if that is not known."""
    places, room = [], max(2048, limit)
    for source, docs in touched:
        if room <= 0:
            break
        some = docs[:: 1 + len(docs) // max(2048, limit)]
        room -= len(some)
        alive = source.alive(some + source.lo)
        places.append((some if alive is None else some[alive]) + source.base)
    if not places:
        return 0.0
    sample = _distinct(places)
    if len(sample) < limit:
        return 0.0
    return float(np.partition(acc.take(sample), -limit)[-limit])


def _distinct(places: Sequence[Ints]) -> Ints:
    """Return the distinct values in order; sorting is several times faster than `np.unique`."""
    joined = np.concatenate(places) if places else np.zeros(0, np.int64)
    joined.sort()
    fresh = np.ones(len(joined), bool)
    np.not_equal(joined[1:], joined[:-1], out=fresh[1:])
    return joined[fresh]


def _slack(sources: Sequence[Source], model: Model) -> float:
    """Return how many times the true score a score from codes may be at most."""
    longest = max(s.part.rounding[0] for s in sources)
    fractional = any(s.part.rounding[1] for s in sources)
    smallest = min(s.part.rounding[2] for s in sources)
    slack = 1.0051 if longest <= 128 and not fractional else ROUNDING
    if fractional:
        if smallest < FREQUENCIES[0] or model.b == 1:
            return math.inf
        slack *= 1 + model.b / (1 - model.b) / model.mean
    if longest > FREQUENCIES[-2]:
        slack += model.k1 * (1 + longest / model.mean) / float(FREQUENCIES[-2])
    return slack * 1.00001


def _narrow(
    sources: Sequence[Source],
    found: Ints,
    value: npt.NDArray[np.float32],
    tail: list[tuple[int, float]],
    table: npt.NDArray[np.float32],
    factor: npt.NDArray[np.float32],
    limit: int,
    slack: float,
    boost: float,
    weighted: bool,
) -> list[tuple[Source, Ints]]:
    """Add the skipped terms to the candidates, and drop those that can no longer win."""
    bases = [s.base for s in sources] + [sources[-1].base + sources[-1].span]
    edges = found.searchsorted(bases).tolist()
    chosen, values = [], []
    for source, b, e in zip(sources, edges, edges[1:], strict=False):
        docs, score = found[b:e] - source.base + source.lo, value[b:e]
        alive = source.alive(docs)
        chosen.append(docs if alive is None else docs[alive])
        values.append(score if alive is None else score[alive])
    for i, rest in [*tail, (-1, 0.0)]:
        for n, source in enumerate(sources):
            if i >= 0:
                hit, place = lookup(source.lists[i], chosen[n])
                values[n][hit] += table.take(source.lists[i].codes[place]) * factor[i]
            elif weighted:
                values[n] = values[n] * source.weights[chosen[n]].astype(np.float32)
        if sum(map(len, values)) > limit:
            floor = float(np.partition(np.concatenate(values), -limit)[-limit]) / slack
            for n, score in enumerate(values):
                keep = (score + rest) * (1 + boost) >= floor
                chosen[n], values[n] = chosen[n][keep], score[keep]
    return [(s, docs) for s, docs in zip(sources, chosen, strict=True) if len(docs)]
