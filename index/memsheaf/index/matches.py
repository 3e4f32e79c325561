"""All documents that match a query, with their place in their partition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .documents import Partition
from .head import Head
from .impacts import bm25
from .queries import Query
from .search import scored
from .segment import Ints
from .sources import Source

Floats = npt.NDArray[np.float64]


class Matches:
    """Every match of a query, at one moment.

    Attributes:
        scores: BM25 per match, float64.
        relevance: share of the query's idf per match.
        partitions: the distinct partitions of the matches.
        group: per match, the index of its partition in `partitions`.
        position: per match, its rank in its partition, in order of insertion, from 0.
    """

    def __init__(self, sources: Sequence[Source], query: Query) -> None:
        self._sources, self._query = sources, query
        names: dict[Partition, int] = {}
        columns: list[tuple[npt.NDArray[Any], ...]] = []
        for n, source in enumerate(sources):
            docs = source.matching()
            alive = source.alive(docs)
            docs = docs if alive is None else docs[alive]
            group = _groups(source, docs, names)
            if query.terms:
                tf, lengths = source.frequencies(docs), source.lengths.take(docs)
                score, share = scored(tf, lengths, query)
                score *= source.weights.take(docs)
                columns.append((np.full(len(docs), n), docs, group, score, share))
        self.partitions = list(names)
        empty: tuple[npt.NDArray[Any], ...] = (_none(), _none(), _none(), np.zeros(0), np.zeros(0))
        joined = [np.concatenate(c) for c in zip(*columns or [empty], strict=True)]
        self._source, self._doc, self.group, self.scores, self.relevance = joined
        self._gather(names)

    def _gather(self, names: dict[Partition, int]) -> None:
        """Find all documents of the partitions of the matches, and their positions."""
        rows, everyone, self._total = [], dict(names), 0.0
        for n, source in enumerate(self._sources):
            docs = source.kept()
            group = _groups(source, docs, everyone)
            self._total += float(source.lengths[docs].sum())
            docs, group = docs[group < len(names)], group[group < len(names)]
            order = _order(source)[docs]
            rows.append((np.full(len(docs), n), docs, group, order))
        if not rows:
            rows = [(_none(), _none(), _none(), _none())]
        self._everyone = len(everyone)
        source_, doc, group, order = (np.concatenate(c) for c in zip(*rows, strict=True))
        rank = np.lexsort((order, group))
        self._members = source_[rank], doc[rank]
        self._starts = np.searchsorted(group[rank], np.arange(len(names) + 1))
        place = np.empty(len(rank), np.int64)
        place[rank] = np.arange(len(rank))
        key = source_ << 40 | doc
        at = np.searchsorted(key, self._source << 40 | self._doc)
        self.position = place[at] - self._starts[self.group] if len(at) else _none()

    def __len__(self) -> int:
        return len(self.scores)

    def ids(self, matches: Sequence[int] | None = None) -> list[str]:
        """Return the id of each match, or of those at the given indexes."""
        chosen = range(len(self)) if matches is None else matches
        return [self._sources[self._source[i]].part.ids[int(self._doc[i])] for i in chosen]

    def size(self, group: int) -> int:
        """Return how many documents the partition holds."""
        return int(self._starts[group + 1] - self._starts[group])

    def id(self, group: int, position: int) -> str:
        """Return the id of the document at `position` of a partition, matching or not."""
        if not 0 <= position < self.size(group):
            raise IndexError(f"partition {group} has {self.size(group)} documents")
        at = self._starts[group] + position
        source, doc = (int(column[at]) for column in self._members)
        return self._sources[source].part.ids[doc]

    def group_scores(self, *, k1: float | None = None, b: float | None = None) -> Floats:
        """Return BM25 per partition, each taken as one document among all that were searched."""
        k1, b = self._query.k1 if k1 is None else k1, self._query.b if b is None else b
        n = len(self.partitions)
        lengths, total = np.zeros(n), np.zeros(n)
        owner = np.repeat(np.arange(n), np.diff(self._starts))
        for s, source in enumerate(self._sources):
            mine = self._members[0] == s
            np.add.at(lengths, owner[mine], source.lengths[self._members[1][mine]])
        mean = self._total / max(1, self._everyone)
        held_by = [(s, self._source == s) for s in range(len(self._sources))]
        found = [(self.group[m], self._sources[s].frequencies(self._doc[m])) for s, m in held_by]
        for i, factor in enumerate(self._query.factors):
            tf = np.zeros(n)
            for group, frequency in found:
                np.add.at(tf, group, frequency[i])
            df = np.count_nonzero(tf)
            idf = np.log(1 + (self._everyone - df + 0.5) / (df + 0.5))
            held = tf > 0
            total[held] += factor * idf * bm25(tf[held], lengths[held], k1, b, mean)
        return total


def _none() -> Ints:
    """Return no integers."""
    return np.zeros(0, np.int64)


def _order(source: Source) -> Ints:
    part = source.part
    return part.order if isinstance(part, Head) else part.arrays["order"]


def _groups(source: Source, docs: Ints, names: dict[Partition, int]) -> Ints:
    """Return the number of each document's partition; new ones are added to `names`."""
    part = source.part
    if isinstance(part, Head):
        own = [part.partitions[d] for d in docs.tolist()]
        return np.fromiter((names.setdefault(p, len(names)) for p in own), np.int64, len(own))
    index = part.partition(docs)
    used = np.unique(index)
    number = np.zeros(len(part.partitions), np.int64)
    for i in used.tolist():
        number[i] = names.setdefault(part.partitions[i], len(names))
    return number[index]
