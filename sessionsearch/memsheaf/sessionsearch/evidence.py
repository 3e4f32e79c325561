"""The three levels of evidence, computed where they can win.

A conversation is a block: from its runs alone follow its own score and a bound on those of its
items (as in block-max pruning, Ding and Suel 2011). Items are scored in the conversations with the
highest bounds. Then the rare words of the query alone show which of the others are still able to
have one among the best, and these are scored too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index
from memsheaf.index.impacts import FREQUENCIES, LENGTHS
from memsheaf.index.postings import Part, Runs, RunsCache, Term, look_up

from .catalog import Catalog, Searched
from .ranking import SessionRanking

__all__ = ["Evidence", "Scored"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FIRST = 32
"""Conversations whose items are scored first."""
_FEW = 2048
"""Postings that are scored without looking at the rare words first."""
_AFTER = 0.8
"""What the turn after lends, as a share of what the turn before lends."""
_BETWEEN = 1.1
"""How much more than all items that hold rare words one between them may gain from them."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Items that hold a word of the query: row, score, share of the query's idf."""

    rows: Ints
    scores: Floats
    relevance: Floats


@dataclass(frozen=True, slots=True)
class _List:
    """A word's runs in one part, those of conversations that are searched.

    Attributes:
        chosen: The places of the runs, None for all.
        weight: What the word weighs in an item.
        peak: What it can add to an item's own score, for each conversation.
        bound: What it and its neighbours can add to an item's score.
    """

    part: Part
    place: int
    runs: Runs
    chosen: Ints | None
    conversations: Ints
    weight: float
    idf: float
    peak: Floats
    bound: Floats


@dataclass(frozen=True, slots=True)
class _Rows:
    """Items of some conversations; to their scores comes `lent` times the largest own score."""

    rows: Ints
    scores: Floats
    lent: Floats
    relevance: Floats
    own: Floats

    @property
    def top(self) -> float:
        """The largest own score."""
        return float(self.own.max(initial=0.0))


class Evidence:
    """One query over the conversations that it may see.

    Args:
        index: The words.
        catalog: The rows and conversations.
        cache: What is remembered of the index.
        text: The query.
        searched: Which conversations may be seen.
        ranking: The settings.
    """

    def __init__(
        self,
        index: BM25Index,
        catalog: Catalog,
        cache: RunsCache,
        text: str,
        searched: Searched,
        ranking: SessionRanking,
    ) -> None:
        self._catalog, self._ranking, self._searched = catalog, ranking, searched
        mean = searched.words / searched.items if searched.items else 1.0
        self._k1, self._b = ranking.saturation(mean)
        self._table = _weights(self._k1, self._b, mean)
        items, words = catalog.conversations["items"], catalog.conversations["words"]
        self._lent = ranking.neighbours / (1 + words / np.maximum(items, 1) / ranking.reach)
        longest = searched.words / searched.conversations if searched.conversations else 1.0
        self._norm = self._k1 * (1 - self._b + self._b / (longest or 1.0) * words)
        self._lists: list[_List] = []
        self._whole = 0.0
        self._session, self._own, self._bound = (np.zeros(len(items)) for _ in range(3))
        self._reach = self._reaches()
        parts, found = look_up(index, text, cache, _number)
        for word in found:
            self._add(word, parts)
        self._lists.sort(key=lambda each: -each.weight)
        values = self._session[searched.mask]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        self._scaled = (self._session - low) / (high - low) if high > low else self._session * 0

    def every(self, among: Mask) -> Scored:
        """All items of some conversations that hold a word."""
        return self._finish([self._score(among & (self._own > 0))])

    def best(self, limit: int, among: Mask, keep: Callable[[Ints], Mask | None]) -> Scored:
        """At least the best items of some conversations.

        Args:
            limit: How many will be wanted.
            among: The conversations.
            keep: Which rows may be returned; None for all.
        """
        able = np.flatnonzero(among & (self._own > 0))
        own, bound = self._own[able], self._bound[able]
        found: list[_Rows] = []
        ask, refined = _FIRST, False
        while len(able):
            top = max((each.top for each in found), default=0.0)
            highest = self._highest(bound, max(top, float(own.max())), able)
            if found:
                floor = self._floor(found, top, limit, keep)
                left = np.flatnonzero((highest >= floor) | (own > top))
                able, own, bound, highest = able[left], own[left], bound[left], highest[left]
                if not refined and len(able) > ask and self._size(able) > _FEW:
                    own, bound = self._refined(able, floor)
                    refined = True
                    continue
            if len(able) > ask:
                order = np.argpartition(-highest, ask)
                now, rest = order[:ask], order[ask:]
            else:
                now, rest = np.arange(len(able)), np.zeros(0, np.int64)
            found.append(self._score(self._mask(able[now])))
            able, own, bound = able[rest], own[rest], bound[rest]
            ask *= 4
        return self._finish(found)

    def _reaches(self) -> Floats:
        """How many times its best weight a word can add to an item, by count and conversation."""
        f = self._lent
        steps = np.stack([f * 0, f * 0 + 1, f, _AFTER * f, f**2, (_AFTER * f) ** 2])
        return np.cumsum(steps, axis=0)

    def _add(self, word: Term, parts: Sequence[Part]) -> None:
        """Take in a word: its rarity, the evidence of the sessions, the bounds."""
        seen: list[tuple[Part, Runs, Ints | None, Ints]] = []
        count = 0
        for part in parts if word.place is not None else ():
            runs = part.runs(word.place or 0)
            owners, chosen = runs.groups, None
            if not self._searched.whole:
                chosen = np.flatnonzero(self._searched.mask[owners])
                owners = owners[chosen]
            if len(owners):
                count += int(_of(runs.counts, chosen).sum())
                seen.append((part, runs, chosen, owners))
        idf = _idf(self._searched.items, count)
        self._whole += idf
        if not seen or word.place is None:
            return
        weight = word.times * idf
        for part, runs, chosen, owners in seen:
            peak = self._table[_of(runs.peaks, chosen)] * weight
            bound = peak * self._reach[np.minimum(_of(runs.counts, chosen), 5), owners]
            self._own[owners] += peak
            self._bound[owners] += bound
            made = _List(part, word.place, runs, chosen, owners, weight, idf, peak, bound)
            self._lists.append(made)
        owners, tf = seen[0][3], _of(seen[0][1].frequencies, seen[0][2])
        if len(seen) > 1:
            held = np.zeros(len(self._session))
            for _, runs, chosen, each in seen:
                held[each] += _of(runs.frequencies, chosen)
            owners = np.flatnonzero(held)
            tf = held[owners]
        gain = word.times * _idf(self._searched.conversations, len(owners)) * (self._k1 + 1)
        self._session[owners] += gain * tf / (tf + self._norm[owners])

    def _highest(self, bound: Floats, most: float, able: Ints) -> Floats:
        """Bounds on the scores of the items of conversations."""
        factor = max([1.0, *self._ranking.roles.values()])
        factor *= max([1.0, *self._ranking.types.values()])
        highest: Floats = factor * (bound + self._ranking.prior * most * self._scaled[able])
        return highest

    def _refined(self, able: Ints, floor: float) -> tuple[Floats, Floats]:
        """Tighter bounds: items are looked at for the rare words, conversations for the rest."""
        rest = sum(float(each.bound.max()) for each in self._lists)
        rare = 0
        while rare < len(self._lists) and rest > floor / 3:
            rest -= float(self._lists[rare].bound.max())
            rare += 1
        common, own = np.zeros(len(self._own)), np.zeros(len(self._own))
        for each in self._lists[rare:]:
            common[each.conversations] += each.bound
            own[each.conversations] += each.peak
        found = self._evidence(self._mask(able), self._lists[:rare])
        owners = self._catalog.rows["conversation"][found.rows]
        best, alone = np.zeros(len(self._own)), np.zeros(len(self._own))
        np.maximum.at(best, owners, found.scores)
        np.maximum.at(alone, owners, found.own)
        bound = np.minimum(self._bound[able], best[able] * _BETWEEN + common[able])
        return alone[able] + own[able], bound

    def _evidence(self, chosen: Mask, lists: Sequence[_List]) -> _Rows:
        """What the items of some conversations and their neighbours hold of some words."""
        own, share = self._catalog.scratch()
        touched = []
        for each in lists:
            runs = np.flatnonzero(chosen[each.conversations])
            if len(runs):
                runs = runs if each.chosen is None else each.chosen[runs]
                rows, codes = each.part.postings(each.place, each.runs, runs)
                own[rows] += self._table[codes] * each.weight
                share[rows] += each.idf
                touched.append(rows)
        rows = _distinct(touched)
        alone, relevance = own[rows], share[rows]
        score = alone
        if self._ranking.neighbours:
            before, after = self._catalog.rows["before"], self._catalog.rows["after"]
            one, two = before[rows], after[rows]
            f = self._lent[self._catalog.rows["conversation"][rows]]
            score = alone + f * (own[one] + _AFTER * own[two])
            one, two = np.where(one < 0, -1, before[one]), np.where(two < 0, -1, after[two])
            score += f**2 * (own[one] + _AFTER**2 * own[two])
        own[rows] = share[rows] = 0.0
        return _Rows(rows, score, np.zeros(len(rows)), relevance, alone)

    def _score(self, chosen: Mask) -> _Rows:
        """Score the items of some conversations."""
        found = self._evidence(chosen, self._lists)
        rows = found.rows
        table, ranking = self._catalog.rows, self._ranking
        lent = ranking.prior / (1 + table["words"][rows] / ranking.tau)
        lent = lent * self._scaled[table["conversation"][rows]]
        factor = self._catalog.factors(ranking.roles, table["role"][rows])
        factor = factor * self._catalog.factors(ranking.types, table["type"][rows])
        return _Rows(rows, found.scores * factor, lent * factor, found.relevance, found.own)

    def _floor(
        self, found: list[_Rows], top: float, limit: int, keep: Callable[[Ints], Mask | None]
    ) -> float:
        """A score that `limit` items surely reach."""
        scores = [np.zeros(0)]
        for each in found:
            score = each.scores + each.lent * top
            mask = keep(each.rows)
            scores.append(score if mask is None else score[mask])
        every = np.concatenate(scores)
        if len(every) < limit or not limit:
            return 0.0
        return float(np.partition(every, -limit)[-limit])

    def _finish(self, found: list[_Rows]) -> Scored:
        top = max((each.top for each in found), default=0.0)
        rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in found)])
        scores = np.concatenate([np.zeros(0), *(each.scores + each.lent * top for each in found)])
        shares = np.concatenate([np.zeros(0), *(each.relevance for each in found)])
        return Scored(rows, scores, np.minimum(1.0, shares / (self._whole or 1.0)))

    def _mask(self, conversations: Ints) -> Mask:
        mask = np.zeros(len(self._own), bool)
        mask[conversations] = True
        return mask

    def _size(self, conversations: Ints) -> int:
        """How many postings conversations have."""
        mask = self._mask(conversations)
        counts = (_of(each.runs.counts, each.chosen) for each in self._lists)
        pairs = zip(counts, self._lists, strict=True)
        return sum(int(count[mask[each.conversations]].sum()) for count, each in pairs)


@lru_cache(maxsize=64)
def _weights(k1: float, b: float, mean: float) -> Floats:
    """BM25 without idf by the index's codes; lengths above 128 are rounded to 7 per cent."""
    frequency = FREQUENCIES[:-1, None]
    table = np.full((256, 256), k1 + 1)
    table[:-1] = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * LENGTHS / mean))
    return table.ravel()


def _number(partition: Sequence[str | None]) -> int:
    """The number of a conversation, which is the name of its partition."""
    return int(partition[0] or 0)


def _of(values: npt.NDArray[Any], chosen: Ints | None) -> npt.NDArray[Any]:
    return values if chosen is None else values[chosen]


def _distinct(lists: list[Ints]) -> Ints:
    """The distinct values in order; sorting is faster than `np.unique`."""
    if not lists:
        return np.zeros(0, np.int64)
    joined = np.sort(np.concatenate(lists))
    return joined[np.append(True, joined[1:] != joined[:-1])] if len(joined) else joined


def _idf(size: int, count: int) -> float:
    """ln(1 + (N - df + 1/2) / (df + 1/2)), as in BM25 (Robertson and Zaragoza 2009)."""
    return float(np.log(1 + (size - count + 0.5) / (count + 0.5)))
