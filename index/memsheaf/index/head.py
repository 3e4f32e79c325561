"""The newest documents, in arrays that only grow."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .batch import Batch
from .documents import Partition
from .impacts import LENGTHS, WHOLE
from .segment import Array, Ints, Segment, build, encode_each

LIMIT = 40_000
"""Postings in the head before it is made into a segment."""
DOCUMENTS = 2_048
"""Documents in the head before it is made into a segment."""
UNSORTED = 2_048
"""Postings that searches compare one by one, while documents come, before they are sorted."""
_LENGTHS: list[float] = LENGTHS.tolist()


class _Sorted(NamedTuple):
    """The first postings by term: the terms, and per posting its document, code and place."""

    terms: npt.NDArray[np.int32]
    docs: npt.NDArray[np.int32]
    codes: npt.NDArray[np.uint16]
    at: Ints


class Head:
    """Documents since the last segment; a reader looks only at what was there when it began.

    Attributes:
        count: number of documents, dead ones included.
        size: number of postings.
        died: per document the version that removed it.
        rounding: see `Segment.rounding`.
        odd: whether codes do not tell all frequencies.
        tokens: the term sequence per document.
    """

    def __init__(self, names: dict[str, int], fields: int) -> None:
        self.count = self.size = 0
        self.rounding = (0.0, False, 1.0)
        self.odd = False
        self.ids: list[str] = []
        self.partitions: list[Partition] = []
        self.tokens: list[npt.NDArray[np.int32]] = []
        self.factors: list[npt.NDArray[np.float64] | None] = []
        self._names, self._fields = names, fields
        self.columns = [np.zeros(64, np.int32) for _ in range(fields)]
        self.lengths, self.weights = np.zeros(64), np.zeros(64)
        self.died, self.order = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self.terms, self.docs = np.zeros(1024, np.int32), np.zeros(1024, np.int32)
        self.codes, self.tf = np.zeros(1024, np.uint16), np.zeros(1024)
        self._sorted = self._sort(0)
        self._asked = 0

    @property
    def full(self) -> bool:
        """Whether it is time to make a segment."""
        return self.size >= LIMIT or self.count >= DOCUMENTS

    def add(
        self,
        id: str,
        partition: Partition,
        weight: float,
        order: int,
        tokens: npt.NDArray[np.int32],
        factors: npt.NDArray[np.float64] | None,
        terms: npt.NDArray[np.int32],
        tf: Array,
        length: float,
    ) -> int:
        """Append a document and return its place."""
        doc, size = self.count, self.size
        if doc == len(self.lengths):
            self.columns = [_grown(c) for c in self.columns]
            self.lengths, self.weights = _grown(self.lengths), _grown(self.weights)
            self.died, self.order = _grown(self.died), _grown(self.order)
        while size + len(terms) > len(self.terms):
            self.terms, self.docs = _grown(self.terms), _grown(self.docs)
            self.codes, self.tf = _grown(self.codes), _grown(self.tf)
        for column, name in zip(self.columns, partition, strict=True):
            column[doc] = self._names.setdefault(name or "", len(self._names))
        self.lengths[doc], self.weights[doc] = length, weight
        self.died[doc], self.order[doc] = np.iinfo(np.int64).max, order
        end = size + len(terms)
        self.terms[size:end], self.docs[size:end], self.tf[size:end] = terms, doc, tf
        self.codes[size:end] = encode_each(tf, np.uint16(bisect_right(_LENGTHS, length) - 1))
        longest, fractional, smallest = self.rounding
        if factors is not None and len(tf):
            fractional = fractional or length % 1 > 0 or bool((tf % 1).any())
            smallest = min(smallest, float(tf.min()))
        self.odd = self.odd or fractional or (len(tf) > 0 and float(tf.max()) > WHOLE)
        self.rounding = (max(longest, length), fractional, smallest)
        self.ids.append(id)
        self.partitions.append(partition)
        self.tokens.append(tokens)
        self.factors.append(factors)
        self.count, self.size = doc + 1, end
        return doc

    @property
    def heaviest(self) -> float:
        """The largest weight of a document."""
        return float(self.weights[: self.count].max(initial=0))

    def sequence(self, doc: int) -> npt.NDArray[np.int32]:
        """Return the term sequence of a document, -1 between fields."""
        return self.tokens[doc]

    def length(self, doc: int) -> float:
        """Return the weighted length of a document."""
        return float(self.lengths[doc])

    def insertion(self) -> Ints:
        """Return the insertion number per document."""
        return self.order

    def frequencies(self, at: Ints) -> npt.NDArray[np.float64]:
        """Return the exact term frequencies of postings."""
        return self.tf.take(at)

    def lists(
        self, size: int, terms: Sequence[int]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16], Ints, list[tuple[int, int]]]:
        """Return postings, their places, and where each term's are among them.

        Args:
            size: how many of the head's postings are looked at.
            terms: term numbers.
        """
        known = self._sorted
        if len(known.at) < size:
            if size - len(known.at) > UNSORTED or size == self._asked:  # two searches in a row
                known = self._sorted = self._sort(size)
            self._asked = size
        wanted = np.array(terms, np.int32)
        begins = known.terms.searchsorted(wanted).tolist()
        ends = known.terms.searchsorted(wanted, "right").tolist()
        bounds = list(zip(begins, ends, strict=True))
        if len(known.at) == size:
            return known.docs, known.codes, known.at, bounds
        first = len(known.at)
        late = self.terms[first:size]
        found = [known.at[b:e] for b, e in bounds]
        if first > size:  # sorted by a search that began later
            found = [at[at < size] for at in found]
        else:
            new = [(late == term).nonzero()[0] + first for term in wanted]
            found = [np.concatenate(pair) for pair in zip(found, new, strict=True)]
        at = np.concatenate([*found, np.zeros(0, np.int64)])
        edges = np.cumsum([0, *map(len, found)]).tolist()
        return self.docs.take(at), self.codes.take(at), at, list(pairwise(edges))

    def _sort(self, size: int) -> _Sorted:
        at = self.terms[:size].argsort(kind="stable")
        return _Sorted(self.terms.take(at), self.docs.take(at), self.codes.take(at), at)

    def mask(self, where: Partition, count: int) -> npt.NDArray[np.bool_]:
        """Return which of the first `count` documents lie in the selected partitions."""
        result = np.ones(count, bool)
        for column, name in zip(self.columns, where, strict=True):
            if name is not None:
                result &= column[:count] == self._names.get(name, -1)
        return result

    def present(self, terms: npt.NDArray[np.int32], where: Partition) -> npt.NDArray[np.bool_]:
        """Return which terms a document of the selected partitions has."""
        size, count = self.size, self.count  # postings first: their documents are there
        mask = self.mask(where, count)
        if not mask.any():
            return np.zeros(len(terms), bool)
        inside = mask[self.docs[:size]]
        own = self.terms[:size][inside]
        held = np.zeros(1 + max(own.max(initial=0), terms.max(initial=0)), bool)
        held[own] = True
        return held[terms]

    def seal(self) -> Segment:
        """Return the documents as a segment."""
        n = self.count
        factors = None
        if any(f is not None for f in self.factors):
            pairs = zip(self.factors, self.tokens, strict=True)
            factors = np.concatenate([np.ones(len(t)) if f is None else f for f, t in pairs])
        numbers: dict[Partition, int] = {}
        batch = Batch(
            self.ids,
            list(dict.fromkeys(self.partitions)),
            np.array([numbers.setdefault(p, len(numbers)) for p in self.partitions], np.int64),
            self.weights[:n].copy(),
            self.lengths[:n].copy(),
            np.fromiter(map(len, self.tokens), np.int64, n),
            np.concatenate(self.tokens),
            factors,
        )
        segment = build(batch, self.order[:n].copy())
        died = self.died[np.searchsorted(self.order[:n], segment.arrays["order"])]
        dead = np.flatnonzero(died != np.iinfo(np.int64).max)
        if len(dead):
            segment.kill(dead, died[dead])
        return segment


def _grown(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros_like(array)])
