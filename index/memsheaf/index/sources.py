"""One segment, or the head, as a single search sees it."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import LEVELS, Column, add
from .documents import Partition
from .head import Head
from .impacts import FREQUENCIES, Table
from .segment import Array, Ints, Segment

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
LONG = 4_096
"""Postings from which a list may be used as a column ..."""
SHARE = 12
"""... if at least one in so many documents holds the term."""


_NONE = np.zeros(0, np.int32)


class Source:
    """The documents of a part that were there when the search began.

    Attributes:
        base: its first place in the accumulator.
        lo: its first document that is searched.
        span: how many documents are searched.
        docs, codes: postings of all lists.
        bounds: per term, where its list begins and ends in them.
        at: per posting its place in the part, None if that is the same.
        odd: whether codes do not tell all frequencies.
        scattered: the terms whose postings are added one by one, and their bounds.
        columns: the columns of the other terms.
    """

    def __init__(self, part: Segment | Head, count: int, size: int, version: int) -> None:
        self.part, self.count = part, count
        self.base, self.lo, self.span = 0, 0, count
        died = part.died
        self._died, self._version = (died[:count] if died is not None else None), version
        self._keep: Mask | None = None
        self.columns: dict[int, Column] = {}
        self.scattered: list[tuple[int, int, int]] = []
        self.bounds: list[tuple[int, int]] = []
        self.at: Ints | None = None
        if isinstance(part, Head):
            self.lengths, self.weights = part.lengths[:count], part.weights[:count]
            self.docs, self.codes, self._size, self.odd = part.docs, part.codes, size, part.odd
        else:
            self.lengths, self.weights = part.arrays["lengths"], part.arrays["weights"]
            self.docs, self.codes = part.arrays["docs"], part.arrays["codes"]
            self._size, self.odd = size, len(part.arrays["odd"]) > 0

    def alive(self, docs: npt.NDArray[Any]) -> Mask | None:
        """Return which of the documents live, None if all do."""
        return None if self._died is None else self._died.take(docs) > self._version

    def kept(self) -> Ints:
        """Return the selected live documents."""
        docs = np.arange(self.lo, self.lo + self.span)
        if self._keep is not None:
            docs = docs[self._keep]
        alive = self.alive(docs)
        return docs if alive is None else docs[alive]

    def holds(self, where: Partition) -> bool:
        """Return whether it has a document of the selected partitions."""
        if isinstance(self.part, Head):
            return bool(self.part.mask(where, self.count).any())
        chosen = self.part.select(where)
        return chosen.start < chosen.stop if isinstance(chosen, slice) else bool(chosen.any())

    def leave_out(self, terms: int) -> None:
        """Search none of its documents."""
        self.span, self.bounds = 0, [(0, 0)] * terms

    def gather(self, terms: Sequence[int]) -> None:
        """Look up the postings of the terms."""
        if isinstance(self.part, Segment):
            self.bounds = self.part.ranges(terms)
        else:
            lists = self.part.lists(self._size, terms)
            self.docs, self.codes, self.at, self.bounds = lists

    def restrict(self, where: Partition) -> None:
        """Keep only the documents of the selected partitions."""
        if isinstance(self.part, Head):
            self._restrict_to(self.part.mask(where, self.count))
            return
        chosen = self.part.select(where)
        if not isinstance(chosen, slice):
            self._restrict_to(chosen)
            return
        self.lo, self.span = chosen.start, chosen.stop - chosen.start
        if self.span < self.count:
            ends, docs = np.array([chosen.start, chosen.stop], np.int32), self.docs
            lists = [(b, docs[b:e].searchsorted(ends).tolist()) for b, e in self.bounds]
            self.bounds = [(b + lo, b + hi) for b, (lo, hi) in lists]

    def _restrict_to(self, keep: Mask) -> None:
        if not keep.all():
            self.filter(keep)
            self._keep = keep

    def statistics(self) -> tuple[int, float, list[int]]:
        """Return the number of live documents that are searched, their length, and df per term."""
        df = [e - b for b, e in self.bounds]
        lengths = self.lengths[self.lo : self.lo + self.span]
        count, total = self.span, float(lengths.sum())
        if self._keep is not None:
            count, total = int(np.count_nonzero(self._keep)), float(lengths[self._keep].sum())
        if self._died is not None and self.span:
            gone = self._died[self.lo : self.lo + self.span] <= self._version
            if self._keep is not None:
                gone &= self._keep
            dead = gone.nonzero()[0]
            if len(dead):
                count, total = count - len(dead), total - float(lengths[dead].sum())
                held = self.frequencies(dead + self.lo) > 0
                df = [n - k for n, k in zip(df, held.sum(axis=1).tolist(), strict=True)]
        return count, total, df

    def keep(self, docs: Ints) -> None:
        """Drop the postings of all other documents."""
        mask = np.zeros(self.span, bool)
        mask[docs - self.lo] = True
        self.filter(mask)

    def filter(self, keep: Mask) -> None:
        """Drop the postings of documents outside the mask, which begins at `lo`."""
        docs = np.concatenate([_NONE, *(self.docs[b:e] for b, e in self.bounds)])
        kept = keep.take(docs - np.int32(self.lo)).nonzero()[0]
        begins, ends = np.array(self.bounds, np.int64).reshape(-1, 2).T
        stops = (ends - begins).cumsum()
        at = kept + (ends - stops).take(stops.searchsorted(kept, "right"))
        self.docs, self.codes = self.docs.take(at), self.codes.take(at)
        self.at = at if self.at is None else self.at.take(at)
        edges = [0, *kept.searchsorted(stops).tolist()]
        self.bounds = list(pairwise(edges))

    def matching(self) -> Ints:
        """Return the distinct documents of all lists."""
        return distinct([self.docs[b:e] for b, e in self.bounds]).astype(np.int64)

    def plan(self, table: Table, columns: bool) -> int:
        """Choose which lists are added posting by posting, and which as columns; count those."""
        part, least = self.part, self.count + 1
        if columns and self.at is None and self.span == self.count and isinstance(part, Segment):
            least = max(LONG, self.count // SHARE)
        for i, (b, e) in enumerate(self.bounds):
            column = part.column(b, e, table) if e - b >= least else None  # type: ignore[union-attr]
            if column:
                self.columns[i] = column
            elif b < e:
                self.scattered.append((i, b, e))
        return len(self.columns)

    def factored(self, factors: Sequence[float]) -> list[tuple[Column, int]]:
        """Return the columns, and what a level of each is worth."""
        return [(c, math.ceil(factors[i] * c.step)) for i, c in self.columns.items()]

    def add_columns(self, sums: Array, factors: Sequence[float]) -> int:
        """Add the columns to the sums; return by how much these may then be too large."""
        columns = self.factored(factors)
        add(columns, sums)
        return sum([factor + LEVELS for _, factor in columns])

    def most(self, factors: Sequence[float]) -> int:
        """Return the most that the columns can add to a sum."""
        return sum([factor * LEVELS for _, factor in self.factored(factors)])

    def look_up(self, docs: Ints, factors: Sequence[float], sums: Array) -> int:
        """Add the columns to the sums of documents, see `add_columns`."""
        columns = self.factored(factors)
        for column, factor in columns:
            sums += column.levels.take(docs).astype(np.uint16) * np.uint16(factor)
        return sum([factor + LEVELS for _, factor in columns])

    def allowed(self, docs: Ints, test: Callable[[str], bool] | None) -> Mask | None:
        """Return which of the documents live and pass the test, None if all do."""
        allowed = self.alive(docs)
        if test is not None:
            ids, alive = self.part.ids, np.ones(len(docs), bool) if allowed is None else allowed
            pairs = zip(docs.tolist(), alive.tolist(), strict=True)
            allowed = np.array([live and test(ids[doc]) for doc, live in pairs], bool)
        return None if allowed is None or allowed.all() else allowed

    def frequencies(self, docs: Ints) -> Floats:
        """Return the exact frequency of each term (rows) in sorted documents (columns)."""
        tf = np.zeros((len(self.bounds), len(docs)))
        wanted, own = docs.astype(np.int32), self.docs
        rows: list[int] = []
        begins: list[int] = []
        places: list[Ints] = []
        for i, (b, e) in enumerate(self.bounds):
            column = self.columns.get(i)
            if column and not self.odd:
                tf[i] = column.frequencies(docs)
            elif b < e:
                rows.append(i)
                begins.append(b)
                places.append(own[b : e - 1].searchsorted(wanted))  # the last one is left over
        if rows:
            place = np.array(places)
            place += np.array(begins)[:, None]
            value = self._exact(place)
            value *= own.take(place) == wanted
            tf[rows] = value
        return tf

    def _exact(self, at: Ints) -> Floats:
        """Return the exact frequencies of postings."""
        if not self.odd:
            value: Floats = FREQUENCIES.take(self.codes.take(at) >> 8)
            return value
        return self.part.frequencies(at if self.at is None else self.at.take(at))

    def adjacent(self, docs: Ints, sequence: Sequence[int]) -> Floats:
        """Return per document the share of the query's neighbouring terms that it also holds so."""
        share = np.zeros(len(docs))
        pairs = set(pairwise(sequence))
        if pairs:
            for n, doc in enumerate(docs.tolist()):
                own = self.part.sequence(doc).tolist()
                share[n] = len(pairs.intersection(pairwise(own))) / len(pairs)
        return share


def distinct(places: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the distinct values in order; sorting is several times faster than `np.unique`."""
    joined = np.concatenate(places) if len(places) else np.zeros(0, np.int64)
    joined.sort()
    fresh = np.ones(len(joined), bool)
    np.not_equal(joined[1:], joined[:-1], out=fresh[1:])
    return joined[fresh]
