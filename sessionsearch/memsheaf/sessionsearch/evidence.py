"""The three levels of evidence, computed where they can win.

A conversation is a block: from its runs alone follow its own score and a bound on those of its
items (as in block-max pruning, Ding and Suel 2011). The words are added up from the rarest to the
commonest, and each time fewer conversations are able to have an item among the best (as in
MaxScore, Turtle and Flood 1995).
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

_FEW = 2048
"""Postings of a word that are added up without asking which conversations are still able."""
_ROUNDING = 1e-9
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
        conversations: The conversation of each.
        counts: How many items of it hold the word.
        weight: What the word weighs in an item.
        peak: What it can add to an item's own score, for each conversation.
    """

    part: Part
    place: int
    runs: Runs
    chosen: Ints | None
    conversations: Ints
    weight: float
    idf: float
    counts: Ints
    peak: Floats


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
        self._session, self._bound = np.zeros(len(items)), np.zeros(len(items))
        self._highest = max([1.0, *ranking.roles.values()]) * max([1.0, *ranking.types.values()])
        parts, found = look_up(index, text, cache, _number)
        for word in found:
            self._add(word, parts)
        self._lists.sort(key=lambda each: -each.weight)
        values = self._session[searched.mask]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        self._scaled = (self._session - low) / (high - low) if high > low else self._session * 0

    def every(self, among: Mask) -> Scored:
        """All items of some conversations that hold a word."""
        return self._scored(among & (self._bound > 0), None, lambda rows: None)

    def best(self, limit: int, among: Mask, keep: Callable[[Ints], Mask | None]) -> Scored:
        """At least the best items of some conversations.

        Args:
            limit: How many will be wanted.
            among: The conversations.
            keep: Which rows may be returned; None for all.
        """
        return self._scored(among & (self._bound > 0), limit, keep)

    def _scored(self, able: Mask, limit: int | None, keep: Callable[[Ints], Mask | None]) -> Scored:
        """Add up word after word, the rarest first, in the conversations that are still able.

        What is added up so far is a score that an item surely reaches. With a limit, conversations
        are dropped whose bounds lie below the score that so many items reach.
        """
        own, share = self._catalog.scratch()
        touched: list[Ints] = []
        held, rest = 0, self._bound.copy()
        peaks = [float(each.peak.max()) for each in self._lists]
        try:
            for place, each in enumerate(self._lists):
                runs = np.flatnonzero(able[each.conversations])
                size = int(each.counts[runs].sum())
                if limit is not None and touched and size > max(_FEW, held // 4):
                    more = sum(peaks[place:])
                    able = self._able(able, _distinct(touched), rest, more, limit, keep)
                    runs = np.flatnonzero(able[each.conversations])
                rest[each.conversations] -= each.peak
                if not len(runs):
                    continue
                runs = runs if each.chosen is None else each.chosen[runs]
                rows, codes = each.part.postings(each.place, each.runs, runs)
                own[rows] += self._table[codes] * each.weight
                share[rows] += each.idf
                touched.append(rows)
                held += len(rows)
            rows = _distinct(touched)
            rows = rows[able[self._catalog.rows["conversation"][rows]]]
            scores, top = self._reached(rows)
            lent, factor = self._lent_to(rows)
            scores = (scores + lent * top) * factor
            return Scored(rows, scores, np.minimum(1.0, share[rows] / (self._whole or 1.0)))
        finally:
            for rows in touched:
                own[rows] = share[rows] = 0.0

    def _able(
        self,
        able: Mask,
        rows: Ints,
        rest: Floats,
        peak: float,
        limit: int,
        keep: Callable[[Ints], Mask | None],
    ) -> Mask:
        """Those of the conversations that can still have one of the best items.

        Args:
            able: The conversations so far.
            rows: The items that hold one of the words so far.
            rest: What the other words can add, for each conversation.
            peak: What the other words can add to an own score.
            limit: How many items will be wanted.
            keep: Which rows may be returned.
        """
        reached, top = self._reached(rows)
        lent, factor = self._lent_to(rows)
        sure = (reached + lent * top) * factor
        mask = keep(rows)
        sure = sure if mask is None else sure[mask]
        if len(sure) < limit or not limit:
            return able
        floor = float(np.partition(sure, -limit)[-limit]) * (1 - _ROUNDING)
        prior = self._ranking.prior * (top + peak)
        owners = self._catalog.rows["conversation"][rows]
        bound = reached + rest[owners] + prior * self._scaled[owners]
        left = able & (self._highest * (rest + prior * self._scaled) >= floor)
        left[owners[self._highest * bound >= floor]] = True
        return left & able

    def _reached(self, rows: Ints) -> tuple[Floats, float]:
        """What items and their neighbours hold so far, and the most that one holds itself."""
        own, _ = self._catalog.scratch()
        alone = own[rows]
        top = float(alone.max(initial=0.0))
        if not self._ranking.neighbours:
            return alone, top
        before, after = self._catalog.rows["before"], self._catalog.rows["after"]
        one, two = before[rows], after[rows]
        f = self._lent[self._catalog.rows["conversation"][rows]]
        score = alone + f * (own[one] + _AFTER * own[two])
        one, two = np.where(one < 0, -1, before[one]), np.where(two < 0, -1, after[two])
        score += f**2 * (own[one] + _AFTER**2 * own[two])
        return score, top

    def _lent_to(self, rows: Ints) -> tuple[Floats, Floats | float]:
        """The share of the largest score that the session lends to items, and their factors."""
        table, ranking = self._catalog.rows, self._ranking
        lent = ranking.prior / (1 + table["words"][rows] / ranking.tau)
        lent = lent * self._scaled[table["conversation"][rows]]
        factor = self._catalog.factors(ranking.roles, table["role"][rows])
        return lent, factor * self._catalog.factors(ranking.types, table["type"][rows])

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
            self._bound[owners] += peak
            counts = _of(runs.counts, chosen)
            self._lists.append(
                _List(part, word.place, runs, chosen, owners, weight, idf, counts, peak)
            )
        owners, tf = seen[0][3], _of(seen[0][1].frequencies, seen[0][2])
        if len(seen) > 1:
            held = np.zeros(len(self._session))
            for _, runs, chosen, each in seen:
                held[each] += _of(runs.frequencies, chosen)
            owners = np.flatnonzero(held)
            tf = held[owners]
        gain = word.times * _idf(self._searched.conversations, len(owners)) * (self._k1 + 1)
        self._session[owners] += gain * tf / (tf + self._norm[owners])


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
