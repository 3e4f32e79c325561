"""One segment, or the head, as a single search sees it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import Column
from .documents import Partition
from .head import Head
from .impacts import FREQUENCIES
from .segment import LARGE, Ints, Segment
from .strings import distinct

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
_NONE, _NO_CODES = np.zeros(0, np.int32), np.zeros(0, np.uint16)


class Source:
    """The documents of a part that were there when the search began.

    Attributes:
        base: what to add to a document for its place among those of all sources.
        lo: its first document that is searched.
        span: how many documents are searched.
        docs, codes: postings of all lists.
        bounds: per term, where its list begins and ends in them.
        at: per posting its place in the part, None if that is the same.
        columns: those that were asked for, by the term's place in the query.
    """

    __slots__ = (
        *("part", "count", "base", "lo", "span", "docs", "codes", "bounds", "at", "columns"),
        *("_size", "_version", "_keep"),
    )

    def __init__(self, part: Segment | Head, version: int) -> None:
        self.part, self.count, self._version = part, part.count, version
        self.base, self.lo, self.span = 0, 0, part.count
        self.docs, self.codes, self._size = _NONE, _NO_CODES, 0
        self._keep: Mask | None = None
        self.columns: dict[int, Column | None] = {}
        self.bounds: list[tuple[int, int]] = []
        self.at: Ints | None = None
        if isinstance(part, Head):
            self._size = part.size

    @property
    def lengths(self) -> Floats:
        """The length per document."""
        return self.part.lengths

    @property
    def weights(self) -> Floats:
        """The weight per document."""
        return self.part.weights

    @property
    def odd(self) -> bool:
        """Whether codes do not tell all frequencies."""
        return self.part.odd

    @property
    def large(self) -> bool:
        """Whether terms may be looked up in it for a few documents."""
        return self.span >= LARGE

    def alive(self, docs: npt.NDArray[Any]) -> Mask | None:
        """Return which of the documents live, None if all do."""
        died = self.part.died
        return None if died is None else died.take(docs) > self._version

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
        part = self.part
        if isinstance(part, Segment):
            self.docs, self.codes, self.bounds = part.docs, part.codes, part.ranges(terms)
        else:
            self.docs, self.codes, self.at, self.bounds = part.lists(self._size, terms)

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
        died = self.part.died
        if died is not None and self.span:
            gone = died[self.lo : self.lo + self.span] <= self._version
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
        return distinct(np.concatenate([_NONE, *(self.docs[b:e] for b, e in self.bounds)])).astype(
            np.int64
        )

    def column(self, term: int) -> Column | None:
        """Return the column of a term that many documents hold, None if it has but its list."""
        if term not in self.columns:
            begin, end = self.bounds[term]
            whole = self.at is None and self.span == self.count and begin < end
            part = self.part if whole else None
            self.columns[term] = part.column(begin, end) if isinstance(part, Segment) else None
        return self.columns[term]

    def peak(self, term: int, table: Floats32) -> float:
        """Return a weight that the term has in no document more than."""
        column = self.column(term)
        return table.item(column.peak) if column else 1.0

    def look_up(self, term: int, docs: Ints) -> npt.NDArray[np.uint16]:
        """Return the codes of a term in sorted documents, 0 where they lack it."""
        column = self.column(term)
        if column:
            return column.codes.take(docs)
        begin, end = self.bounds[term]
        if begin == end:
            return np.zeros(len(docs), np.uint16)
        place = self.docs[begin : end - 1].searchsorted(docs.astype(np.int32))
        place += begin
        codes = self.codes.take(place)
        codes *= self.docs.take(place) == docs
        return codes

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
        wanted, own = docs.astype(np.int32), self.docs
        rows = [i for i, (begin, end) in enumerate(self.bounds) if begin < end]
        places: list[Ints] = []
        for begin, end in [self.bounds[i] for i in rows]:
            places.append(own[begin : end - 1].searchsorted(wanted))  # the last is left over
            places[-1] += begin
        tf = np.zeros((len(self.bounds), len(docs)))
        if rows:
            place = np.concatenate(places).reshape(len(rows), -1)
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
