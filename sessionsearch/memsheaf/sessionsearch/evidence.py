"""The three levels of evidence, computed where they can win.

A conversation is a block: from the runs of the words alone follow its own score and a bound on
those of its items (as in block-max pruning, Ding and Suel 2011). The items of the most promising
conversations are scored first, and then those of the others that can still reach them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index
from memsheaf.index.impacts import FREQUENCIES, LENGTHS, inverse_frequency
from memsheaf.index.postings import Part, Runs, RunsCache, Term, look_up

from .catalog import Catalog, Searched
from .ranking import SessionRanking

__all__ = ["Evidence", "Scored", "Setting"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Keep = Callable[[Ints], Mask]
"""Which rows may be returned."""

_FIRST = 32
"""Conversations whose items are scored first."""
_NEXT = 16
"""How many times more are scored each time after that."""
_MANY = 1024
"""Items from which on it pays to ask once more which conversations are able."""
_ROUNDING = 1e-9
_TELLING = 0.05
"""idf below which a word tells nothing of a session: nearly all of them hold it."""
_AFTER = 0.8
"""What the turn after lends, as a share of what the turn before lends."""
_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.uint16)


class Scored(NamedTuple):
    """Items that hold a word of the query: row, score, share of the query's idf."""

    rows: Ints
    scores: Floats
    relevance: Floats


class Setting:
    """What a ranking makes of the statistics of some conversations; the same for every query.

    Attributes:
        searched: The conversations.
        k1: Of BM25.
        table: BM25 without idf by the index's codes.
        lent: What the turn before lends, for each conversation.
        near: What an item and its neighbours hold of a word at the most, as a multiple of its
            peak, for each conversation; five in a row, by how many of its items hold the word.
        norm: What lengths make of the BM25 of each session.
        factors: By role and type, for each kind of item; None for 1.
        highest: The most that they can be.
    """

    def __init__(self, catalog: Catalog, searched: Searched, ranking: SessionRanking) -> None:
        self.searched = searched
        mean = _rounded(searched.words / searched.items if searched.items else 1.0)
        self.k1, b = ranking.saturation(mean)
        self.table = _weights(self.k1, b, mean)
        items, words = catalog.conversations["items"], catalog.conversations["words"]
        self.lent = ranking.neighbours / (1 + words / np.maximum(items, 1) / ranking.reach)
        one, two = self.lent, self.lent**2
        shares = np.stack([np.ones_like(one), one, _AFTER * one, two, _AFTER**2 * two], axis=1)
        self.near = (-np.sort(-shares, axis=1)).cumsum(axis=1)
        longest = searched.words / searched.conversations if searched.conversations else 1.0
        self.norm = self.k1 * (1 - b + b / (longest or 1.0) * words)
        self.factors = catalog.factors(ranking.roles, ranking.types)
        self.highest = 1.0 if self.factors is None else float(self.factors.max())


class _List(NamedTuple):
    """A word's runs in one part, those of conversations that are searched.

    Attributes:
        chosen: The places of the runs, None for all.
        owners: The conversation of each.
        weight: What the word weighs in an item.
    """

    part: Part
    place: int
    runs: Runs
    chosen: Ints | None
    owners: Ints
    weight: float
    idf: float

    def postings(self, among: Mask) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """The rows of some conversations that hold the word, and their codes."""
        runs = among.take(self.owners).nonzero()[0]
        if not len(runs):
            return _NOTHING
        chosen = runs if self.chosen is None else self.chosen.take(runs)
        return self.part.postings(self.place, self.runs, chosen)


class _Found(NamedTuple):
    """Items of some conversations, and what they hold.

    Attributes:
        reached: What they and their neighbours hold.
        lent: What their session lends, as a share of the largest own score.
        factor: By role and type; None for 1.
        shares: The idf of the words that they hold.
        top: The most that one of them holds itself.
    """

    rows: Ints
    reached: Floats
    lent: Floats
    factor: Floats | None
    shares: Floats
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
        self._searched = setting.searched
        self._lists: list[_List] = []
        self._whole = 0.0
        size = catalog.conversations.size
        self._session, self._bound, self._reach = np.zeros(size), np.zeros(size), np.zeros(size)
        parts, found = look_up(index, text, cache, _number)
        for word in found:
            self._add(word, parts)
        values = self._session[self._searched.mask]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        self._scaled = (self._session - low) / (high - low) if high > low else self._session * 0

    def every(self, among: Mask | None, keep: Keep | None = None) -> Scored:
        """All items of some conversations, or of all that are searched, that hold a word."""
        return self._scored([self._score(self._holding(among), keep)] if self._lists else [])

    def best(self, limit: int, among: Mask | None, keep: Keep | None) -> Scored:
        """At least the best items.

        Args:
            limit: How many will be wanted.
            among: Only of these conversations.
            keep: Which rows may be returned; None for all.
        """
        left = self._holding(among)
        found: list[_Found] = []
        size, top, floor = _FIRST, 0.0, 0.0
        while True:
            bound = self._most(self._reach, top or float(self._bound.max(initial=0.0)))
            able = (left & ((bound >= floor) | (self._bound > top))).nonzero()[0]
            if not len(able):
                return self._scored(found)
            if len(able) > 2 * size:
                able = able[bound.take(able).argpartition(-size)[-size:]]
            chosen = np.zeros(len(left), bool)
            chosen[able] = True
            left[able] = False
            most = max(top, float(self._bound.max(initial=0.0, where=left)))
            found.append(self._score(chosen, keep, floor, most))
            size *= _NEXT
            top = max([each.top for each in found])
            scores = np.concatenate([each.scores(top) for each in found])
            if len(scores) >= limit:
                floor = float(np.partition(scores, -limit)[-limit]) * (1 - _ROUNDING)

    def _most(self, reached: Floats, top: float) -> Floats:
        """What a score is at the most, by what items reach and their conversations lend."""
        most = reached + self._scaled * (self._ranking.prior * top)
        most *= self._setting.highest
        return most

    def _holding(self, among: Mask | None) -> Mask:
        """The conversations that hold a word."""
        held: Mask = self._bound > 0
        return held if among is None else held & among

    def _scored(self, found: list[_Found]) -> Scored:
        if not found:
            return Scored(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        top = max([each.top for each in found])
        return Scored(
            np.concatenate([each.rows for each in found]),
            np.concatenate([each.scores(top) for each in found]),
            np.minimum(1.0, np.concatenate([each.shares for each in found]) / (self._whole or 1.0)),
        )

    def _score(
        self, among: Mask, keep: Keep | None, floor: float = 0.0, most: float = 0.0
    ) -> _Found:
        """What the items of some conversations hold, those that hold a word.

        Args:
            among: The conversations.
            keep: Which rows are wanted; None for all.
            floor: A score below which an item is not wanted.
            most: What the largest own score is at the most, or one of these.
        """
        table, setting = self._catalog.rows, self._setting
        own, share = self._catalog.scratch()
        found = [each.postings(among) for each in self._lists]
        sizes = [len(rows) for rows, _ in found]
        held = np.concatenate([rows for rows, _ in found])
        gain = setting.table.take(np.concatenate([codes for _, codes in found]))
        gain *= np.repeat([each.weight for each in self._lists], sizes)
        try:
            np.add.at(own, held, gain)
            np.add.at(share, held, np.repeat([each.idf for each in self._lists], sizes))
            rows = _distinct(held)
            owners, alone = table["conversation"].take(rows), own.take(rows)
            top = float(alone.max(initial=0.0))
            if len(rows) > _MANY:
                peak = np.zeros(len(among))
                np.maximum.at(peak, owners, alone)
                able = self._most(peak * setting.near[:, -1], max(most, top)) >= floor
                rows = rows[able.take(owners)]
            if keep is not None:
                rows = rows[keep(rows)]
            return self._with_neighbours(rows, top)
        finally:
            own[held] = share[held] = 0.0

    def _with_neighbours(self, rows: Ints, top: float) -> _Found:
        """What items, their neighbours and their sessions hold."""
        table, ranking = self._catalog.rows, self._ranking
        own, share = self._catalog.scratch()
        owners = table["conversation"].take(rows)
        reached = own.take(rows)
        if ranking.neighbours:
            before, after = table["before"], table["after"]
            one, two = before.take(rows), after.take(rows)
            f = self._setting.lent.take(owners)
            reached += f * (own[one] + _AFTER * own[two])
            one, two = np.where(one < 0, -1, before[one]), np.where(two < 0, -1, after[two])
            reached += f * f * (own[one] + _AFTER**2 * own[two])
        lent = ranking.prior / (1 + table["words"].take(rows) / ranking.tau)
        lent *= self._scaled.take(owners)
        factors = self._setting.factors
        factor = None if factors is None else factors.take(table["kind"].take(rows))
        return _Found(rows, reached, lent, factor, share.take(rows), top)

    def _add(self, word: Term, parts: Sequence[Part]) -> None:
        """Take in a word: its rarity, the evidence of the sessions, the bounds."""
        lists: list[_List] = []
        count = 0
        for part in parts if word.place is not None else ():
            runs = part.runs(word.place or 0)
            owners, chosen, size = runs.groups, None, runs.size
            if not self._searched.whole:
                chosen = self._searched.mask.take(owners).nonzero()[0]
                owners = owners.take(chosen)
                size = int(runs.counts.take(chosen).sum())
            if len(owners):
                count += size
                lists.append(_List(part, word.place or 0, runs, chosen, owners, 0.0, 0.0))
        idf = inverse_frequency(self._searched.items, count)
        self._whole += idf
        weight = word.times * idf
        for each in lists:
            peaks = _of(each.runs.peaks, each.chosen)
            peak = self._setting.table.take(peaks) * weight
            self._bound[each.owners] += peak
            near = self._setting.near
            held = np.minimum(_of(each.runs.counts, each.chosen), near.shape[1])
            peak *= near.take(each.owners * near.shape[1] + held - 1)
            self._reach[each.owners] += peak
            self._lists.append(each._replace(weight=weight, idf=idf))
        if lists:
            self._hear(word, lists)

    def _hear(self, word: Term, lists: Sequence[_List]) -> None:
        """Add a word to the evidence of the sessions, unless nearly all of them hold it."""
        sessions = self._searched.conversations
        owners = lists[0].owners
        if len(lists) > 1:
            held = np.zeros(len(self._session), bool)
            for each in lists:
                held[each.owners] = True
            owners = held.nonzero()[0]
        rarity = inverse_frequency(sessions, len(owners))
        if rarity <= _TELLING:
            return
        tf = _of(lists[0].runs.frequencies, lists[0].chosen)
        if len(lists) > 1:
            summed = np.zeros(len(self._session))
            for each in lists:
                summed[each.owners] += _of(each.runs.frequencies, each.chosen)
            tf = summed.take(owners)
        gain = word.times * rarity * (self._setting.k1 + 1)
        self._session[owners] += gain * tf / (tf + self._setting.norm.take(owners))


@lru_cache(maxsize=64)
def _weights(k1: float, b: float, mean: float) -> Floats:
    """BM25 without idf by the index's codes; lengths above 128 are rounded to 7 per cent."""
    frequency = FREQUENCIES[:-1, None]
    table = np.full((256, 256), k1 + 1)
    table[:-1] = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * LENGTHS / mean))
    return table.ravel()


def _rounded(mean: float) -> float:
    """A mean length to half a per cent, so that an appended item does not need other tables."""
    return math.exp(round(math.log(mean) / 0.005) * 0.005) if mean > 0 else 1.0


def _number(partition: Sequence[str | None]) -> int:
    """The number of a conversation, which is the name of its partition."""
    return int(partition[0] or 0)


def _of(values: npt.NDArray[Any], chosen: Ints | None) -> npt.NDArray[Any]:
    return values if chosen is None else values.take(chosen)


def _distinct(rows: Ints) -> Ints:
    """The distinct values in order; sorting is faster than `np.unique`."""
    rows = np.sort(rows)
    new = np.ones(len(rows), bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    return rows[new]
