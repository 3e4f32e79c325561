"""The three levels of evidence, computed where they can win.

A conversation is a block: from its runs alone follow its own score and a bound on those of its
items (as in block-max pruning, Ding and Suel 2011). The words are added up from the rarest to the
commonest, and each time fewer conversations are able to have an item among the best (as in
MaxScore, Turtle and Flood 1995).
"""

from __future__ import annotations

import math
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
Keep = Callable[[Ints], Mask]
"""Which rows may be returned."""

_FEW = 512
"""Postings of a word that are added up without asking which conversations are still able."""
_ROUNDING = 1e-9
_TELLING = 0.05
"""idf below which a word tells nothing of a session: nearly all of them hold it."""
_AFTER = 0.8
"""What the turn after lends, as a share of what the turn before lends."""


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
        size: How many items of all hold it.
        most: What it can add to an item.
        peak: What it can add to an item of each conversation; None where most of them hold it.
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
    size: int
    most: float
    peak: Floats | None

    def among(self, able: Mask | None) -> tuple[Ints | None, int]:
        """The places of the runs of some conversations, None for all, and their documents."""
        if able is None:
            return self.chosen, self.size
        runs = able.take(self.conversations).nonzero()[0]
        size = int(self.counts.take(runs).sum())
        return (runs if self.chosen is None else self.chosen.take(runs)), size


@dataclass(frozen=True, slots=True)
class _SoFar:
    """Items and what they hold of some of the words.

    Attributes:
        rows: The items, in order.
        owners: Their conversations.
        reached: What they and their neighbours hold.
        lent: What their session lends, as a share of the largest own score.
        factor: By role and type; None for 1.
        top: The most that one holds itself.
    """

    rows: Ints
    owners: Ints
    reached: Floats
    lent: Floats
    factor: Floats | None
    top: float

    def scores(self, top: float, more: Floats | float = 0.0) -> Floats:
        """The scores, where this is the largest own score, and with more that items hold."""
        score = self.reached + self.lent * top + more
        return score if self.factor is None else score * self.factor


_Seen = tuple[Part, Runs, Ints | None, Ints, int]
"""A word in a part: runs, the places of those that are searched, their conversations, the size."""


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
        mean = _rounded(searched.words / searched.items if searched.items else 1.0)
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

    def every(self, among: Mask | None) -> Scored:
        """All items of some conversations, or of all that are searched, that hold a word."""
        return self._scored(among, None, None)

    def best(self, limit: int, among: Mask | None, keep: Keep | None) -> Scored:
        """At least the best items.

        Args:
            limit: How many will be wanted.
            among: Only of these conversations.
            keep: Which rows may be returned; None for all.
        """
        return self._scored(among, limit, keep)

    def _scored(self, able: Mask | None, limit: int | None, keep: Keep | None) -> Scored:
        """Add up word after word, the rarest first, in the conversations that are still able.

        What is added up so far is a score that an item surely reaches. With a limit, conversations
        are dropped whose bounds lie below the score that so many items reach.
        """
        own, share = self._catalog.scratch()
        touched: list[Ints] = []
        fresh: list[Ints] = []
        rows, held, rest = np.zeros(0, np.int64), 0, self._bound.copy()
        more = sum(each.most for each in self._lists)
        everywhere = sum(each.most for each in self._lists if each.peak is None)
        try:
            for each in self._lists:
                runs, size = each.among(able)
                if limit is not None and held and size > max(_FEW, held // 4):
                    found = self._so_far(_distinct([rows, *fresh]))
                    able = self._able(able, found, rest + everywhere, more, limit, keep)
                    if able is not None:
                        rows, fresh = found.rows[able.take(found.owners)], []
                        held = len(rows)
                        runs, size = each.among(able)
                more -= each.most
                if each.peak is None:
                    everywhere -= each.most
                else:
                    rest[each.conversations] -= each.peak
                if size:
                    new, codes = each.part.postings(each.place, each.runs, runs)
                    own[new] += self._table.take(codes) * each.weight
                    share[new] += each.idf
                    touched.append(new)
                    fresh.append(new)
                    held += len(new)
            found = self._so_far(_distinct([rows, *fresh]))
            shares = share.take(found.rows) / (self._whole or 1.0)
            return Scored(found.rows, found.scores(found.top), np.minimum(1.0, shares))
        finally:
            for each_rows in touched:
                own[each_rows] = share[each_rows] = 0.0

    def _able(
        self,
        able: Mask | None,
        found: _SoFar,
        rest: Floats,
        peak: float,
        limit: int,
        keep: Keep | None,
    ) -> Mask | None:
        """Those of the conversations that can still have one of the best items.

        What later words of its neighbours lend to an item is not counted in its bound: they are
        the common ones, and all items have such neighbours.

        Args:
            able: The conversations so far; None for all.
            found: The items that hold one of the words so far.
            rest: What the other words can add, for each conversation.
            peak: What the other words can add to an own score.
            limit: How many items will be wanted.
            keep: Which rows may be returned.
        """
        sure = found.scores(found.top)
        if keep is not None:
            sure = sure[keep(found.rows)]
        if len(sure) < limit or not limit:
            return able
        floor = float(np.partition(sure, -limit)[-limit]) * (1 - _ROUNDING)
        most = found.top + peak
        left = self._highest * (self._ranking.prior * most * self._scaled + rest) >= floor
        bound = found.scores(most, rest.take(found.owners))
        left[found.owners[bound >= floor]] = True
        return left if able is None else left & able

    def _so_far(self, rows: Ints) -> _SoFar:
        """What items, their neighbours and their sessions hold of the words so far."""
        table, ranking = self._catalog.rows, self._ranking
        own, _ = self._catalog.scratch()
        owners = table["conversation"].take(rows)
        reached = own.take(rows)
        top = float(reached.max(initial=0.0))
        if ranking.neighbours:
            before, after = table["before"], table["after"]
            one, two = before.take(rows), after.take(rows)
            f = self._lent.take(owners)
            reached += f * (own[one] + _AFTER * own[two])
            one, two = np.where(one < 0, -1, before[one]), np.where(two < 0, -1, after[two])
            reached += f * f * (own[one] + _AFTER**2 * own[two])
        lent = ranking.prior / (1 + table["words"].take(rows) / ranking.tau)
        lent *= self._scaled.take(owners)
        factors = self._catalog.factors(ranking.roles, ranking.types)
        factor = None if factors is None else factors.take(table["kind"].take(rows))
        return _SoFar(rows, owners, reached, lent, factor, top)

    def _add(self, word: Term, parts: Sequence[Part]) -> None:
        """Take in a word: its rarity, the evidence of the sessions, the bounds."""
        seen: list[_Seen] = []
        count = 0
        for part in parts if word.place is not None else ():
            runs = part.runs(word.place or 0)
            owners, chosen = runs.groups, None
            if not self._searched.whole:
                chosen = self._searched.mask.take(owners).nonzero()[0]
                owners = owners.take(chosen)
            if len(owners):
                size = runs.size if chosen is None else int(runs.counts.take(chosen).sum())
                count += size
                seen.append((part, runs, chosen, owners, size))
        idf = _idf(self._searched.items, count)
        self._whole += idf
        if not seen or word.place is None:
            return
        weight = word.times * idf
        for part, runs, chosen, owners, size in seen:
            peak = None
            if len(owners) * 2 <= self._searched.conversations:
                peak = self._table.take(_of(runs.peaks, chosen)) * weight
                self._bound[owners] += peak
            most = float(self._table.take(runs.codes).max() if peak is None else peak.max())
            counts = _of(runs.counts, chosen)
            self._lists.append(
                _List(
                    part, word.place, runs, chosen, owners, weight, idf, counts, size,
                    most * weight if peak is None else most, peak,
                )
            )  # fmt: skip
        self._hear(word, seen)

    def _hear(self, word: Term, seen: Sequence[_Seen]) -> None:
        """Add a word to the evidence of the sessions, unless nearly all of them hold it."""
        sessions = self._searched.conversations
        owners = seen[0][3]
        if len(seen) > 1:
            held = np.zeros(len(self._session), bool)
            for _, _, _, each, _ in seen:
                held[each] = True
            owners = held.nonzero()[0]
        rarity = _idf(sessions, len(owners))
        if rarity <= _TELLING:
            return
        tf = _of(seen[0][1].frequencies, seen[0][2])
        if len(seen) > 1:
            summed = np.zeros(len(self._session))
            for _, runs, chosen, each, _ in seen:
                summed[each] += _of(runs.frequencies, chosen)
            tf = summed.take(owners)
        gain = word.times * rarity * (self._k1 + 1)
        self._session[owners] += gain * tf / (tf + self._norm.take(owners))


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


def _distinct(lists: list[Ints]) -> Ints:
    """The distinct values in order; sorting is faster than `np.unique`."""
    joined = np.concatenate(lists)
    joined.sort()
    new = np.ones(len(joined), bool)
    np.not_equal(joined[1:], joined[:-1], out=new[1:])
    return joined[new]


def _idf(size: int, count: int) -> float:
    """ln(1 + (N - df + 1/2) / (df + 1/2)), as in BM25 (Robertson and Zaragoza 2009)."""
    return float(np.log(1 + (size - count + 0.5) / (count + 0.5)))
