"""What the words of a query hold, partition by partition: for a ranking of one's own.

Documents of a segment lie in order of their partition, so the postings of a term are runs, one of
each partition that holds it. A ranking that adds up evidence over partitions reads the runs, and
looks at single documents only in the partitions that can win.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .bm25 import BM25Index
from .documents import Partition
from .head import Head
from .impacts import FREQUENCIES
from .merge import merge
from .queries import words_of
from .segment import Segment
from .sources import Source

__all__ = ["Part", "Runs", "RunsCache", "lengths_since", "look_up", "prepare", "unite"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LONG = 128
"""Postings from which the runs of a list are remembered."""
_COUNTED = np.append(FREQUENCIES[:-1], FREQUENCIES[-2]).repeat(256)
"""What a code counts in the frequency of a run; exact to 31."""
_ROOM = 4_000_000
"""Runs that are remembered at most; about 40 bytes each."""


class Runs:
    """The postings of one term in one part, by partition.

    Args:
        groups: The number of each run's partition; distinct.
        counts: How many documents each run has.
        starts: Where each run begins among the postings.
        codes: The code of each posting, in order of the runs.
        at: The places of the postings, in order of the runs; None where that is their order.
    """

    def __init__(
        self,
        groups: Ints,
        counts: Ints,
        starts: Ints,
        codes: npt.NDArray[np.uint16],
        at: Ints | None,
    ) -> None:
        self.groups, self.counts, self.starts, self.at = groups, counts, starts, at
        self.size = len(codes)
        self._codes = codes
        self._frequencies: Floats | None = None
        self._peaks: tuple[weakref.ref[Floats], Floats] | None = None

    def evidence(self, weights: Floats) -> tuple[Floats, Floats]:
        """What each run holds.

        Args:
            weights: The weight of each code.

        Returns:
            The largest weight in each run, and the sum of the term's frequencies, of which single
            ones above 31 are rounded.
        """
        if self._peaks is None or self._peaks[0]() is not weights:
            peaks = weights.take(self._codes)
            if len(self.starts) < self.size:  # `reduceat` would take several times as long
                single, peaks = peaks, np.zeros(len(self.starts))
                np.maximum.at(peaks, self._numbers(), single)
            self._peaks = weakref.ref(weights), peaks  # half a megabyte that many may outlive
        if self._frequencies is None:
            self._frequencies = _COUNTED.take(self._codes)
            if len(self.starts) < self.size:
                single, self._frequencies = self._frequencies, np.zeros(len(self.starts))
                np.add.at(self._frequencies, self._numbers(), single)
        return self._peaks[1], self._frequencies

    def places(self, postings: Ints) -> Ints:
        """Where postings lie after the begin of the term's, by their numbers."""
        return postings if self.at is None else self.at.take(postings)

    def _numbers(self) -> Ints:
        """The number of the run of each posting."""
        return np.arange(len(self.starts)).repeat(self.counts)


@dataclass(slots=True)
class _Known:
    """What is remembered of a segment."""

    segment: Segment
    groups: npt.NDArray[np.int32] | None = None
    runs: dict[int, Runs] = field(default_factory=dict)


class RunsCache:
    """Remembers runs of long lists while their segment lives; `clear` it after removals."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._held = 0

    def clear(self) -> None:
        """Forget the runs."""
        for known in self._known.values():
            known.runs.clear()
        self._held = 0

    def keep(self, segments: list[Segment]) -> None:
        """Forget all other segments."""
        living = {id(segment) for segment in segments}
        for key in [key for key in self._known if key not in living]:
            self._held -= sum(len(r.groups) for r in self._known.pop(key).runs.values())

    def of(self, segment: Segment) -> _Known:
        """What is remembered of a segment."""
        return self._known.setdefault(id(segment), _Known(segment))

    @property
    def full(self) -> bool:
        """Whether remembering more would soon forget what is there."""
        return self._held > _ROOM // 2

    def add(self, known: _Known, term: int, runs: Runs) -> None:
        """Remember runs."""
        if self._held > _ROOM:
            self.clear()
        known.runs[term] = runs
        self._held += len(runs.groups)


class Part:
    """A segment, or the newest documents, as a query sees it."""

    def __init__(
        self, source: Source, terms: list[int], cache: RunsCache, number: Callable[[Partition], int]
    ) -> None:
        self._source, self._terms, self._cache = source, terms, cache
        self._known: _Known | None = None
        part = source.part
        self._number = number
        self._order = part.insertion()
        if not isinstance(part, Head):
            known = self._known = cache.of(part)
            if known.groups is None:
                every = np.array([number(p) for p in part.partitions], np.int32)
                known.groups = np.repeat(every, np.diff(part.first))

    def runs(self, place: int) -> Runs:
        """The runs of a term, by its place in the query."""
        term = self._terms[place]
        if self._known is not None and term in self._known.runs:
            return self._known.runs[term]
        begin, end = self._source.bounds[place]
        docs = self._source.docs[begin:end]
        groups = self._groups(docs)
        at: Ints | None = None
        alive = self._source.alive(docs)
        if alive is not None and not alive.all():
            at = np.flatnonzero(alive)
        if self._known is None:  # the newest documents are not in order of partition
            at = np.arange(end - begin) if at is None else at
            at = at[np.argsort(groups[at], kind="stable")]
        codes = self._source.codes[begin:end]
        if at is not None:
            groups, codes = groups[at], codes[at]
        runs = _runs(groups, codes, at)
        if self._known is not None and end - begin >= _LONG:
            self._cache.add(self._known, term, runs)
        return runs

    def _groups(self, docs: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The number of each document's partition."""
        part = self._source.part
        if self._known is not None and self._known.groups is not None:
            return self._known.groups.take(docs)
        partitions = part.partitions
        return np.array([self._number(partitions[doc]) for doc in docs.tolist()], np.int32)

    def begin(self, place: int) -> int:
        """Where the postings of a term begin."""
        return self._source.bounds[place][0]

    def items(self, places: Ints) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """The number of insertion and the code of the document of each posting."""
        return self._order.take(self._source.docs.take(places)), self._source.codes.take(places)


def _runs(groups: npt.NDArray[np.int32], codes: npt.NDArray[np.uint16], at: Ints | None) -> Runs:
    """Cut the postings of a term, those of a partition beside each other, into runs."""
    new = np.empty(len(groups), bool)
    new[:1] = True
    np.not_equal(groups[1:], groups[:-1], out=new[1:])
    starts = new.nonzero()[0]
    counts = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] = len(groups) - starts[-1:]
    return Runs(groups.take(starts).astype(np.int64), counts, starts, codes, at)


def look_up(
    index: BM25Index, text: str, cache: RunsCache, number: Callable[[Partition], int]
) -> tuple[list[Part], list[int], int]:
    """Return the parts of an index at one moment, and the distinct words of a text.

    Args:
        index: The index.
        text: The query.
        cache: What is remembered of the index.
        number: The number of a partition; always the same, and different for each.

    Returns:
        The parts; how often the text has each of the words that some document had, which `Part`
        knows by their place here; how many other words the text has.

    >>> index = BM25Index("plain", partition_fields=1)
    >>> index.add("a", "sea and salt sea", partition=("7",))
    >>> found = look_up(index, "salt moon", RunsCache(), lambda names: int(names[0] or 0))
    >>> [part], times, unknown = found
    >>> times, unknown, part.runs(0).groups.tolist()
    ([1], 1, [7])
    """
    _, asked = words_of(index._store.vocabulary, index.analyzer, text)
    known = [(times, slot[0][0]) for times, slot in asked if slot]
    terms = [term for _, term in known]
    sources, *_ = index._store.snapshot(terms, ())
    cache.keep([s.part for s in sources if isinstance(s.part, Segment)])
    parts = [Part(source, terms, cache, number) for source in sources]
    return parts, [times for times, _ in known], len(asked) - len(known)


def prepare(
    index: BM25Index, cache: RunsCache, number: Callable[[Partition], int], weights: Floats
) -> None:
    """Make the runs of long lists before the first search for them, the longest first.

    Args:
        index: The index.
        cache: Where they are remembered, up to half of its room.
        number: See `look_up`.
        weights: See `Runs.evidence`.
    """
    with index._store.lock:
        sources = index._store.sources()
    for source in sources:
        if not isinstance(source.part, Segment):
            continue
        sizes = np.diff(source.part.arrays["start"])
        longest = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes >= _LONG)]
        terms = source.part.arrays["terms"][longest].tolist()
        source.gather(terms)
        part = Part(source, terms, cache, number)
        for place in range(len(terms)):
            if cache.full:
                return
            part.runs(place).evidence(weights)


def unite(index: BM25Index) -> None:
    """Make one part of all, which a search reads fastest; worth it after much was added."""
    with index._writing:
        store = index._store
        store.settle()
        if len(store.segments) > 1:
            store._merging, store._merge_version = list(store.segments), store.version
            store._merge = merge(store._merging, store.version)
            while store._merge is not None:
                store.step()


def lengths_since(index: BM25Index, first: int) -> Floats:
    """Return the lengths of the documents from a number of insertion on, in that order."""
    with index._store.lock:
        sources = index._store.sources()
        found = np.zeros(max(0, index._store.inserted - first))
    left = len(found)
    for source in reversed(sources):
        if left <= 0:
            break
        order = source.part.insertion()[: source.count]
        new = np.flatnonzero(order >= first)
        found[order[new] - first] = source.lengths[new]
        left -= len(new)
    return found
