"""Exact top-k over a snapshot: bounds first, then the few that can win in float64."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .impacts import FREQUENCIES, ROUNDING, bm25, weights
from .segment import Ints
from .sources import Floats, Source, distinct, table_key

PRUNE = 150_000
"""Postings left above which it pays to look whether they can be skipped."""
SAMPLE = 1_024
"""Documents by which the k-th best score is bounded from below."""
_local = threading.local()


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


def exact(
    found: Sequence[tuple[Source, Ints]], query: Query, model: Model
) -> tuple[Floats, Floats]:
    """Return the scores and the relevance of sorted documents, terms in their fixed order."""
    tf = np.hstack([source.frequencies(docs) for source, docs in found])
    lengths = np.concatenate([source.lengths.take(docs) for source, docs in found])
    held = tf > 0
    score = bm25(np.where(held, tf, 1.0), lengths, model.k1, model.b, model.mean)
    score *= (query.factors * model.idf)[:, None]
    score *= held
    total, share, whole = np.zeros(len(lengths)), np.zeros(len(lengths)), 0.0
    for row in score:  # not sum(): its order of additions depends on the shape
        total += row
    for slot in query.slots:
        idf = max((float(model.idf[i]) for i, _ in slot), default=model.unknown)
        whole += idf
        if len(slot) == 1:
            share += held[slot[0][0]] * (idf * slot[0][1])
        elif slot:
            share += idf * np.max([held[i] * similar for i, similar in slot], axis=0)
    total *= np.concatenate([source.weights.take(docs) for source, docs in found])
    return total, share / whole if whole else share


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
    strength = query.factors * model.idf
    factor = strength.astype(np.float32)
    order = (-strength).argsort(kind="stable").tolist()
    counts = np.sum([source.sizes() for source in sources], axis=0).tolist()
    left = sum(counts)
    may_prune = left > PRUNE and not weighted
    rest = [0.0] * (len(order) + 1)
    if may_prune:
        key = table_key(model.k1, model.b, model.mean)
        for j in range(len(order) - 1, -1, -1):
            i = order[j]
            peak = max(s.peak(i, int(query.terms[i]), table, key) for s in sources)
            rest[j] = rest[j + 1] + float(factor[i]) * peak
    slack = _slack(sources, model)
    sample = np.zeros(0, np.int64) if weighted else _sample(sources, order, limit)
    views = [(source, acc[source.base : source.base + source.span]) for source in sources]

    seen, done = left, len(order)
    for j, i in enumerate(order):
        if may_prune and left > PRUNE and rest[0] > 2 * rest[j]:
            floor = _floor(acc, sample, limit) / slack
            if floor > rest[j] * (1 + boost):
                done, seen = j, seen - left
                break
        left -= counts[i]
        for source, view in views:
            b, e = source.bounds[i]
            if b < e:
                here = source.docs[b:e]
                if source.lo:
                    here = here - np.int32(source.lo)
                np.add.at(view, here, table.take(source.codes[b:e]) * factor[i])
    floor = _floor(acc, sample, limit) / slack
    least = max(floor / (1 + boost) - rest[done], float(np.finfo(np.float32).tiny))
    if seen * 12 < size:
        lists = [
            (s, view, s.docs[b:e] - s.lo)
            for s, view in views
            for b, e in (s.bounds[i] for i in order[:done])
        ]
        found = distinct(
            [docs[v.take(docs) >= least].astype(np.int64) + s.base for s, v, docs in lists]
        )
        value = acc.take(found)
        for _, view, docs in lists:
            view[docs] = 0
    else:
        found = (acc[:size] >= least).nonzero()[0]
        value = acc.take(found)
        acc[:size] = 0
    _local.acc = acc
    chosen = _split(sources, found, value)
    if weighted:
        chosen = [(s, d, v * s.weights[d].astype(np.float32)) for s, d, v in chosen]
    chosen = _narrow(chosen, 0.0 if weighted else rest[done], limit, slack, boost)
    for i, remaining in zip(order[done:], rest[done + 1 :], strict=True):
        for source, own, score in chosen:
            hit, codes = source.lookup(i, own)
            score[hit] += table.take(codes) * factor[i]
        chosen = _narrow(chosen, remaining, limit, slack, boost)
    return [(source, docs) for source, docs, _ in chosen]


Candidates = list[tuple[Source, Ints, npt.NDArray[np.float32]]]


def _sample(sources: Sequence[Source], order: Sequence[int], limit: int) -> Ints:
    """Return places of live documents that hold the strongest terms, in the widest source."""
    source = max(sources, key=lambda source: source.span)
    room = most = max(SAMPLE, limit)
    lists = []
    for i in order:
        b, e = source.bounds[i]
        lists.append(source.docs[b : e : 1 + (e - b) // most])
        room -= e - b
        if room <= 0:
            break
    some = distinct(lists)
    alive = source.alive(some)
    if alive is not None:
        some = some[alive]
    return some + np.int64(source.base - source.lo)


def _floor(acc: npt.NDArray[np.float32], sample: Ints, limit: int) -> float:
    """Return a score that `limit` live documents surely reach, 0 if that is not known."""
    if len(sample) < limit:
        return 0.0
    return float(np.partition(acc.take(sample), -limit)[-limit])


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


def _split(sources: Sequence[Source], found: Ints, value: npt.NDArray[np.float32]) -> Candidates:
    """Return the live documents at places of the accumulator, by source."""
    edges = found.searchsorted(np.array([s.base for s in sources])).tolist()
    chosen: Candidates = []
    for source, b, e in zip(sources, edges, [*edges[1:], len(found)], strict=True):
        if b < e:
            docs, score = found[b:e] - (source.base - source.lo), value[b:e]
            alive = source.alive(docs)
            if alive is not None:
                docs, score = docs[alive], score[alive]
            chosen.append((source, docs, score))
    return chosen


def _narrow(chosen: Candidates, rest: float, limit: int, slack: float, boost: float) -> Candidates:
    """Drop the candidates that cannot be among the best, though `rest` may still be added."""
    if sum(len(docs) for _, docs, _ in chosen) <= limit:
        return chosen
    every = np.concatenate([score for _, _, score in chosen])
    least = float(np.partition(every, -limit)[-limit]) / slack
    kept: Candidates = []
    for source, docs, score in chosen:
        keep = ((score + rest) * (1 + boost) >= least).nonzero()[0]
        if len(keep):
            kept.append((source, docs[keep], score[keep]))
    return kept
