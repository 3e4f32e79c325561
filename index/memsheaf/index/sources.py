"""One segment, or the head, as a single search sees it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .documents import Partition
from .head import Head
from .impacts import step
from .segment import Ints, Segment

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
SHORT = 1024
"""Postings up to which the largest weight of a list is not worth computing."""


class Source:
    """The documents of a part that were there when the search began.

    Attributes:
        base: its first place in the accumulator.
        lo: its first document that is searched.
        span: how many documents are searched.
        docs, codes: postings of all lists.
        bounds: per term, where its list begins and ends in them.
        at: per posting its place in the part, None if that is the same.
    """

    def __init__(self, part: Segment | Head, count: int, size: int, version: int) -> None:
        self.part, self.count = part, count
        self.base, self.lo, self.span = 0, 0, count
        died = part.died
        self._died, self._version = (died[:count] if died is not None else None), version
        self._keep: Mask | None = None
        self.bounds: list[tuple[int, int]] = []
        self.at: Ints | None = None
        if isinstance(part, Head):
            self.lengths, self.weights = part.lengths[:count], part.weights[:count]
            self._terms, self._tf = part.terms[:size], part.tf
            self.docs, self.codes = part.docs, part.codes
        else:
            self.lengths, self.weights = part.arrays["lengths"], part.arrays["weights"]
            self.docs, self.codes = part.arrays["docs"], part.arrays["codes"]

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

    def gather(self, terms: npt.NDArray[np.int32]) -> None:
        """Look up the postings of the terms."""
        if isinstance(self.part, Head):
            found = self.part.find(self._terms, terms)
            self._copy(np.concatenate([*found, np.zeros(0, np.int64)]), list(map(len, found)))
        else:
            self.bounds = self.part.ranges(terms)

    def _copy(self, at: Ints, sizes: Sequence[int]) -> None:
        """Keep the postings at these places, lists of these sizes."""
        self.docs, self.codes = self.docs.take(at), self.codes.take(at)
        self.at = at if self.at is None else self.at[at]
        ends = np.cumsum(sizes).tolist()
        self.bounds = [(e - size, e) for size, e in zip(sizes, ends, strict=True)]

    def restrict(self, where: Partition) -> None:
        """Keep only the documents of the selected partitions that live."""
        keep: Mask | None
        if isinstance(self.part, Head):
            keep = self.part.mask(where, self.count)
        else:
            chosen = self.part.select(where)
            if isinstance(chosen, slice):
                self.lo, self.span, keep = chosen.start, chosen.stop - chosen.start, None
                ends = np.array([chosen.start, chosen.stop], np.int32)
                for i, (b, e) in enumerate(self.bounds):
                    lo, hi = self.docs[b:e].searchsorted(ends).tolist()
                    self.bounds[i] = b + lo, b + hi
            else:
                keep = chosen
        if self._died is not None:
            living = self._died[self.lo : self.lo + self.span] > self._version
            if not living.all():
                keep = living if keep is None else keep & living
        if keep is not None:
            self.filter(keep)
            self._keep = keep

    def filter(self, keep: Mask) -> None:
        """Drop the postings of documents outside the mask, which begins at `lo`."""
        kept = [b + keep[self.docs[b:e] - self.lo].nonzero()[0] for b, e in self.bounds]
        self._copy(np.concatenate([*kept, np.zeros(0, np.int64)]), list(map(len, kept)))

    def sizes(self) -> Ints:
        """Return the number of postings per term."""
        return np.array([e - b for b, e in self.bounds], np.int64)

    def matching(self) -> Ints:
        """Return the distinct documents of all lists."""
        return distinct([self.docs[b:e] for b, e in self.bounds]).astype(np.int64)

    def lookup(self, i: int, docs: Ints) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """Return which of the sorted documents are in a list, and their codes."""
        b, e = self.bounds[i]
        if b == e:
            return np.zeros(0, np.int64), self.codes[:0]
        place = self.docs[b:e].searchsorted(docs.astype(np.int32))
        place += b
        np.minimum(place, e - 1, out=place)
        hit = (self.docs.take(place) == docs).nonzero()[0]
        return hit, self.codes.take(place[hit])

    def frequencies(self, docs: Ints) -> Floats:
        """Return the exact frequency of each term (rows) in sorted documents (columns)."""
        if not len(self.docs):
            return np.zeros((len(self.bounds), len(docs)))
        wanted = docs.astype(np.int32)
        place = np.empty((len(self.bounds), len(docs)), np.int64)
        for i, (b, e) in enumerate(self.bounds):
            place[i] = self.docs[b:e].searchsorted(wanted)
        begins, ends = np.array(self.bounds).reshape(-1, 2, 1).transpose(1, 0, 2)
        place += begins
        np.minimum(place, ends - 1, out=place)
        np.maximum(place, 0, out=place)
        held = self.docs.take(place) == wanted
        held &= begins < ends
        at = place if self.at is None else self.at.take(place)
        tf = self._tf[at] if isinstance(self.part, Head) else self.part.frequencies(at)
        result: Floats = tf * held
        return result

    def places(self, id: str) -> list[int]:
        """Return the searched documents that were ever called `id`."""
        if isinstance(self.part, Head):
            return [n for n, own in enumerate(self.part.ids[: self.count]) if own == id]
        return self.part.ids.find(id)

    def adjacent(self, docs: Ints, sequence: npt.NDArray[np.int32]) -> Floats:
        """Return per document the share of the query's neighbouring terms that it also holds so."""
        share = np.zeros(len(docs))
        pairs = set(pairwise(sequence.tolist()))
        if pairs:
            for n, doc in enumerate(docs.tolist()):
                own = self.part.sequence(doc).tolist()
                share[n] = len(pairs.intersection(pairwise(own))) / len(pairs)
        return share

    def peak(self, i: int, term: int, table: npt.NDArray[np.float32], key: Any) -> float:
        """Return a bound on the weights in a list; `key` names the table."""
        b, e = self.bounds[i]
        if e - b < SHORT:
            return float(table[-1]) if e > b else 0.0
        if isinstance(self.part, Head):
            return float(table.take(self.codes[b:e]).max())
        peaks = self.part.peaks
        peak = peaks.get((term, key))
        if peak is None:
            if len(peaks) > 10_000:
                peaks.clear()
            start, stop = self.part.ranges(np.array([term], np.int32))[0]
            whole = self.part.arrays["codes"][start:stop]
            peak = peaks[term, key] = float(table.take(whole).max())
        return peak


def table_key(k1: float, b: float, mean: float) -> tuple[float, float, int]:
    """Return what a table of weights depends on."""
    return k1, b, step(mean)


def distinct(places: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the distinct values in order; sorting is several times faster than `np.unique`."""
    joined = np.concatenate(places) if len(places) else np.zeros(0, np.int64)
    joined.sort()
    fresh = np.ones(len(joined), bool)
    np.not_equal(joined[1:], joined[:-1], out=fresh[1:])
    return joined[fresh]
