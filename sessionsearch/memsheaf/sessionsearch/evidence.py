"""The three levels of evidence, computed where they can win.

A conversation is a block: from the runs of the words alone follow its own score and a bound on
those of its items (as in block-max pruning, Ding and Suel 2011). The items of the most promising
conversations are scored first. The bounds of the others are tightened, the rarest words first
(as in MaxScore, Turtle and Flood 1995), and the items of those that can still win are scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index
from memsheaf.index.postings import RunsCache

from .catalog import Catalog
from .ranking import SessionRanking
from .setting import AFTER, Setting
from .words import Words

__all__ = ["Evidence"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Keep = Callable[[Ints], Mask]
"""Which rows may be returned."""

_FIRST = 64
"""Conversations whose items are scored first."""
_NEXT = 4
"""How many times more are scored each time after that."""
_FEW = 64
"""Conversations whose items are scored rather than their bounds tightened."""
_MANY = 256
"""The same where all lists have to be read for it."""
_ENOUGH, _STEP = 8, 4
"""Postings a conversation that the first tightening reads, how many times more the next do."""
_ROUNDING = 1e-9
_NONE = np.zeros(0, np.int64)


class _Found(NamedTuple):
    """Items of some conversations, and what they hold.

    Attributes:
        reached: What they and their neighbours hold.
        lent: What their session lends, as a share of the largest own score.
        factor: By role and type; None for 1.
        top: The most that one of the conversations' items holds itself.
    """

    rows: Ints
    reached: Floats
    lent: Floats
    factor: Floats | None
    top: float

    def scores(self, top: float) -> Floats:
        """The scores, where this is the largest own score."""
        score = self.reached + self.lent * top
        return score if self.factor is None else score * self.factor


class Evidence:
    """One query over the conversations that it may see.

    Args:
        index: The words.
        catalog: The rows and conversations.
        cache: What is remembered of the index.
        text: The query.
        setting: Which conversations may be seen, and their statistics.
        ranking: The settings.
    """

    def __init__(
        self,
        index: BM25Index,
        catalog: Catalog,
        cache: RunsCache,
        text: str,
        setting: Setting,
        ranking: SessionRanking,
    ) -> None:
        self._catalog, self._ranking, self._setting = catalog, ranking, setting
        self._words = words = Words(index, text, cache, setting)
        self._peak, self._reach = words.peak, words.reach
        self._read: list[tuple[Ints, Floats]] = []
        values = words.session[setting.searched.mask]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        self._scaled = (words.session - low) / ((high - low) or 1.0)

    def every(self, among: Mask | None, keep: Keep | None = None) -> tuple[Ints, Floats]:
        """The rows and scores of all items that hold a word, of some conversations or of all."""
        found = self._score(self._holding(among), keep)
        return found.rows, found.scores(found.top)

    def best(self, limit: int, among: Mask | None, keep: Keep | None) -> tuple[Ints, Floats]:
        """The rows and scores of the best items at least.

        Args:
            limit: How many will be wanted.
            among: Only of these conversations.
            keep: Which rows may be returned; None for all.
        """
        left = self._holding(among)
        found: list[_Found] = []
        scores = np.zeros(0)
        size, top, floor = _FIRST, 0.0, 0.0
        depths = self._depths()
        while True:
            bound = self._most(self._reach, top or float(self._peak.max(initial=0.0)))
            able = left & ((bound >= floor) | (self._peak > top * (1 - _ROUNDING)))
            places = able.nonzero()[0]
            if not len(places):
                return np.concatenate([_NONE, *[each.rows for each in found]]), scores
            if floor and len(places) > _FEW:
                depth, enough = next(depths, (0, len(places)))
                if len(places) > enough:
                    self._tighten(able, depth, top, floor)
                    continue
            if len(places) > 2 * size:
                able = np.zeros(len(left), bool)
                able[places[bound.take(places).argpartition(-size)[-size:]]] = True
            left &= ~able
            found.append(self._score(able, keep))
            size *= _NEXT
            top = max([each.top for each in found])
            scores = np.concatenate([each.scores(top) for each in found])
            if len(scores) >= limit:
                floor = float(np.partition(scores, -limit)[-limit]) * (1 - _ROUNDING)

    def relevance(self, rows: Ints) -> Floats:
        """The share of the query's idf that items hold themselves, of those that were scored."""
        place = self._catalog.scratch()
        idf = np.zeros(len(rows) + 1)
        try:
            place[rows] = np.arange(1, len(rows) + 1)
            for held, each in self._read:
                np.add.at(idf, place.take(held).astype(np.int64), each)
        finally:
            place[rows] = 0.0
        return np.minimum(1.0, idf[1:] / self._words.idf)

    def _depths(self) -> Iterator[tuple[int, int]]:
        """How many of the lists each tightening reads, and for how many conversations at least.

        To read all lists is nearly to score, so it is worth it only where many are left.
        """
        postings, enough = 0, self._setting.searched.conversations * _ENOUGH
        for depth, size in enumerate(self._words.sizes, 1):
            postings += size
            last = depth == len(self._words.sizes)
            if postings >= enough or last:
                yield depth, _MANY if last else _FEW
                enough = postings * _STEP

    def _most(self, reached: Floats, top: float) -> Floats:
        """What a score is at the most, by what items reach and their conversations lend."""
        most = self._scaled * (self._ranking.prior * top)
        most += reached
        most *= self._setting.highest
        return most

    def _holding(self, among: Mask | None) -> Mask:
        """The conversations that hold a word."""
        held: Mask = self._peak > 0
        return held if among is None else held & among

    def _tighten(self, able: Mask, depth: int, top: float, floor: float) -> None:
        """Lower the bounds of conversations, reading the first lists."""
        own = self._catalog.scratch()
        setting, size = self._setting, len(able)
        rest_peak, rest_reach = self._words.rest(depth)
        rows, gain, _ = self._words.postings(able, depth)
        owners = self._catalog.rows["conversation"].take(rows)
        peak, reach = np.zeros(size), np.zeros(size)
        try:
            np.add.at(own, rows, gain)
            np.maximum.at(peak, owners, own.take(rows))
            others = np.bincount(owners, gain, size) - peak
            most = np.minimum(peak * setting.around, peak + setting.lent * others)
            left = (able & (self._most(most + rest_reach, top) >= floor)).take(owners)
            owners = owners[left]
            np.maximum.at(reach, owners, self._reached(rows[left], owners))
        finally:
            own[rows] = 0.0
        # an item that holds none of these words may hear more than its neighbours do
        reach *= np.maximum(1.0, setting.around - 1)
        np.copyto(reach, most, where=reach == 0)
        np.copyto(self._peak, peak + rest_peak, where=able)
        np.copyto(self._reach, reach + rest_reach, where=able)

    def _score(self, among: Mask, keep: Keep | None) -> _Found:
        """What the items of some conversations hold, those that hold a word.

        Args:
            among: The conversations.
            keep: Which rows are wanted; None for all.
        """
        own = self._catalog.scratch()
        held, gain, idf = self._words.postings(among)
        self._read.append((held, idf))
        try:
            np.add.at(own, held, gain)
            rows = _distinct(held)
            top = float(own.take(rows).max(initial=0.0))
            if keep is not None:
                rows = rows[keep(rows)]
            return self._with_neighbours(rows, top)
        finally:
            own[held] = 0.0

    def _with_neighbours(self, rows: Ints, top: float) -> _Found:
        """What items, their neighbours and their sessions hold."""
        table, ranking = self._catalog.rows, self._ranking
        owners = table["conversation"].take(rows)
        fading = table["words"].take(rows)
        fading /= ranking.tau
        fading += 1
        lent = self._scaled.take(owners)
        lent *= ranking.prior
        lent /= fading
        factors = self._setting.factors
        factor = None if factors is None else factors.take(table["kind"].take(rows))
        return _Found(rows, self._reached(rows, owners), lent, factor, top)

    def _reached(self, rows: Ints, owners: Ints) -> Floats:
        """What items of conversations and their neighbours hold."""
        table = self._catalog.rows
        own = self._catalog.scratch()
        reached = own.take(rows)
        if self._ranking.neighbours:
            before, after = table.ended("before"), table.ended("after")  # of -1 it is -1 again
            one, two = before.take(rows), after.take(rows)
            f = self._setting.lent.take(owners)
            reached += f * (own.take(one) + AFTER * own.take(two))
            one, two = before.take(one), after.take(two)
            reached += f * f * (own.take(one) + AFTER**2 * own.take(two))
        return reached


def _distinct(rows: Ints) -> Ints:
    """The distinct values in order; sorting is faster than `np.unique`."""
    rows = np.sort(rows)
    new = np.empty(len(rows), bool)
    new[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    return rows[new]
