"""Upper bounds on the scores of documents, summed up from the lists of a query."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .impacts import HELD
from .segment import Array, Ints
from .sources import Floats32, Source
from .strings import distinct

GUESS = 3
"""Postings of the best documents, for each that is wanted: a guess."""
MANY = 8_192
"""Postings from which it pays to guess better, and to leave some out after each term."""


class Bounds:
    """The sums of the lists that were added so far, one place per document.

    Each weight is rounded up to whole units.

    Args:
        sources: whose lists.
        sums: a place per document, all 0.
        table: weight per code.
        factors: units per weight, for each term.
        weighted: whether documents have weights other than 1.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        sums: Array,
        table: Floats32,
        factors: Sequence[float],
        weighted: bool,
    ) -> None:
        self._sources, self._sums, self._table = sources, sums, table
        self._factors, self._weighted = factors, weighted
        self._left: list[int] = []
        self._places: Ints = np.zeros(0, np.int64)
        self._codes = np.zeros(0, np.uint16)
        self._terms: list[int] = []
        self._sizes: list[int] = []
        self._rows = self._near = self._places
        self._values: Array = sums[:0]
        self.most = 0.0

    def add(self, terms: Sequence[int], left: list[int]) -> None:
        """Add the lists of terms, all end to end: one long pass costs less than many.

        Args:
            terms: which; of small sources those that are left are added at once.
            left: the other terms that are not added yet, the strongest first.
        """
        docs: list[Array] = []
        codes: list[Array] = []
        held: list[int] = []
        sizes: list[int] = []
        shifts: list[tuple[Source, int, int]] = []
        at = 0
        first = not len(self._places)
        for source in self._sources:
            start, bounds = at, source.bounds
            for i in terms if source.large else [*terms, *left] if first else ():
                begin, end = bounds[i]
                if begin < end:
                    docs.append(source.docs[begin:end])
                    codes.append(source.codes[begin:end])
                    held.append(i)
                    sizes.append(end - begin)
                    at += end - begin
            if start < at and (source.base or self._weighted):
                shifts.append((source, start, at))
        self._left = left
        self.most = max([self._most(source, left) for source in self._sources]) if left else 0.0
        if not docs:
            return
        places, coded = np.concatenate(docs, dtype=np.int64), np.concatenate(codes)
        gain = self._table.take(coded)
        for source, start, stop in shifts:
            if self._weighted:
                gain[start:stop] *= source.weights.take(places[start:stop])
            places[start:stop] += source.base
        gain *= np.array([self._factors[i] for i in held], np.float32).repeat(sizes)
        gain += 1
        np.add.at(self._sums, places, gain.astype(self._sums.dtype))
        if first:
            self._places, self._codes = places, coded
        else:
            self._places = np.concatenate([self._places, places])
            self._codes = np.concatenate([self._codes, coded])
        self._terms += held
        self._sizes += sizes
        self._values = self._sums.take(self._places)

    def best(self, want: int, slack: float) -> Ints | None:
        """Return in order the places of all documents that may be among the best.

        Args:
            want: how many are wanted.
            slack: how many times the true score a sum may be, but for the rounding to whole units.

        Returns:
            None if a document may be among the best with the terms alone that are left.
        """
        values, left, most = self._values, self._left, self.most
        number, guess = GUESS * want, 0.0
        if number < len(values):
            ordered = values.copy()
            ordered.partition(len(values) - number)
            guess = self._enough(float(ordered[len(values) - number]), slack)
            if left and guess <= most:
                return None
        while True:
            rows = self._reaching(guess - most)
            if left and len(rows) > MANY:
                first = self._whole(distinct(self._places.take(self._reaching(guess))))
                guess = max(guess, self._enough(_kth(first, want), slack))
                rows = self._fewer(self._reaching(guess - most), guess)
            self._rows, self._near = rows, self._places.take(rows)
            places = distinct(self._near.copy())
            total = self._whole(places)
            enough = self._enough(_kth(total, want), slack)
            if guess <= max(0.0, enough):  # no other document can be among the best
                break
            guess = enough
        return places[total >= enough] if not left or enough > most else None

    def _reaching(self, least: float) -> Ints:
        """Return the postings whose documents have sums of at least so much."""
        return (self._values >= max(0, math.floor(least))).nonzero()[0]

    def _enough(self, sum: float, slack: float) -> float:
        """Return the least sum of a document that may be better than one with a given sum."""
        return (sum - len(self._factors)) / slack

    def frequencies(self, pieces: Sequence[tuple[Source, Ints]]) -> npt.NDArray[np.float64]:
        """Return what codes tell of the frequency of each term (rows) in the documents (columns).

        These are some of those that `best` returned.
        """
        places = np.concatenate([self._places[:0], *(docs + s.base for s, docs in pieces)])
        at = places.searchsorted(self._near)
        hit = (places.take(at, mode="clip") == self._near).nonzero()[0]
        rows = self._rows.take(hit)
        lists = np.array(self._sizes).cumsum().searchsorted(rows, "right")
        codes = np.zeros((len(self._factors), len(places)), np.uint16)
        codes[np.array(self._terms).take(lists), at.take(hit)] = self._codes.take(rows)
        stop = 0
        for source, docs in pieces if self._left else ():
            for term in self._left if source.large else ():
                codes[term, stop : stop + len(docs)] = source.look_up(term, docs)
            stop += len(docs)
        return HELD.take(codes >> 8)

    def _fewer(self, rows: Ints, least: float) -> Ints:
        """Leave out postings of large sources whose documents cannot reach a sum."""
        places, kept = self._places.take(rows), []
        for source in self._sources:
            first = source.base + source.lo
            inside = (places >= first) & (places < first + source.span)
            own, docs = rows[inside], places[inside] - source.base
            total = self._values.take(own).astype(np.float32)
            for n, term in enumerate(self._left if source.large else (), 1):
                total += self._gain(source, term, docs)
                good = total >= least - self._most(source, self._left[n:])
                own, docs, total = own[good], docs[good], total[good]
            kept.append(own)
        return np.concatenate(kept)

    def _whole(self, places: Ints) -> Floats32:
        """Return the sums at places in order, with what the terms add that are left."""
        total = self._sums.take(places).astype(np.float32)
        for source, docs, part in split(self._sources, places) if self._left else ():
            for term in self._left if source.large else ():
                total[part] += self._gain(source, term, docs)
        return total

    def _gain(self, source: Source, term: int, docs: Ints) -> Floats32:
        gain: Floats32 = self._table.take(source.look_up(term, docs))
        gain *= self._factors[term]
        if self._weighted:
            gain *= source.weights.take(docs)
        return gain

    def _most(self, source: Source, terms: Sequence[int]) -> float:
        """Return the most that the terms which are left can add to a sum."""
        if not source.large:
            return 0.0
        heaviest = source.part.heaviest if self._weighted else 1.0
        return heaviest * sum([self._factors[i] * source.peak(i, self._table) for i in terms])


def split(sources: Sequence[Source], places: Ints) -> list[tuple[Source, Ints, slice]]:
    """Return the documents at places in order by source, and where they are among the places."""
    found, begin = [], 0
    for source in sources:
        end = len(places)
        if source is not sources[-1]:
            end = int(places.searchsorted(source.base + source.lo + source.span))
        if begin < end:
            found.append((source, places[begin:end] - source.base, slice(begin, end)))
        begin = end
    return found


def _kth(sums: Floats32, number: int) -> float:
    """Return the sum that so many reach, 0 if there are fewer."""
    if number > len(sums):
        return 0.0
    ordered = sums.copy()
    ordered.partition(len(sums) - number)
    return float(ordered[len(sums) - number])
