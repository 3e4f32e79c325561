"""The words of a query, as the conversations that are searched hold them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index
from memsheaf.index.impacts import inverse_frequency
from memsheaf.index.postings import Runs, RunsCache, look_up

from .setting import Setting

__all__ = ["Words", "number"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_TELLING = 0.05
"""idf below which a word tells nothing of a session: nearly all of them hold it."""
_NONE = np.zeros(0, np.int64)


class _List(NamedTuple):
    """The postings of a word, by its number among the query's, in a part, by its number."""

    word: int
    part: int
    runs: Runs


class Words:
    """The postings of all words, cut into runs of one conversation; short lists come first.

    Args:
        index: The words of the items.
        text: The query.
        cache: What is remembered of the index.
        setting: The conversations that are searched.

    Attributes:
        sizes: How many items each list has.
        idf: The idf of all words together.
        peak: What an item of each conversation holds at the most.
        reach: What an item and its neighbours hold at the most.
        session: What each conversation holds.
    """

    def __init__(self, index: BM25Index, text: str, cache: RunsCache, setting: Setting) -> None:
        self._setting, searched = setting, setting.searched
        self._parts, times, unknown = look_up(index, text, cache, number)
        lists = [
            _List(word, number, runs)
            for number, part in enumerate(self._parts)
            for word in range(len(times))
            if (runs := part.runs(word)).size
        ]
        self._lists = lists = sorted(lists, key=lambda each: each.runs.size)
        peaks, frequencies = self._cut([each.runs for each in lists])
        sizes = [0] * len(times)
        for each, size in zip(lists, self.sizes, strict=True):
            sizes[each.word] += size
        idf = [inverse_frequency(searched.items, size) for size in sizes]
        self.idf = sum(idf) + unknown * inverse_frequency(searched.items, 0)
        self._idf = np.array([idf[each.word] for each in lists])
        self._weight = np.array([times[each.word] * idf[each.word] for each in lists])
        self._peak = peaks * self._weight.repeat(self._runs)
        self._near = self._peak * setting.near(self._owners, self._counts)
        self.peak, self.reach = self.rest(0)
        self.session = self._session(times, frequencies)

    def rest(self, depth: int) -> tuple[Floats, Floats]:
        """`peak` and `reach` by the lists after the first ones alone."""
        first, size = self._cuts[depth], self._setting.size
        owners = self._owners[first:]
        peak: Floats = np.bincount(owners, self._peak[first:], size).astype(float, copy=False)
        reach: Floats = np.bincount(owners, self._near[first:], size).astype(float, copy=False)
        return peak, reach

    def postings(self, among: Mask, depth: int | None = None) -> tuple[Ints, Floats, Floats]:
        """The items of some conversations that are in one of the first lists, or in any.

        Returns:
            For each posting the row of its item, what this holds of the word, the word's idf.
        """
        lists = self._lists[:depth]
        cuts = self._cuts[: len(lists) + 1]
        at = among.take(self._owners[: cuts[-1]]).nonzero()[0]
        counts = self._counts.take(at)
        ends = np.zeros(len(at) + 1, np.int64)
        counts.cumsum(out=ends[1:])
        places = (self._starts.take(at) - ends[:-1]).repeat(counts)
        places += np.arange(len(places))
        bounds = ends.take(at.searchsorted(cuts))
        of_list = np.arange(len(lists)).repeat(bounds[1:] - bounds[:-1])
        for number in self._moved:
            if number < len(lists):
                own = slice(bounds.item(number), bounds.item(number + 1))
                places[own] = lists[number].runs.places(places[own])
        places += self._begins.take(of_list)
        rows, codes = self._items(of_list, places)
        gain = self._setting.table.take(codes)
        gain *= self._weight.take(of_list)
        return rows, gain, self._idf.take(of_list)

    def _items(self, of_list: Ints, places: Ints) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """The row and code of each posting, by the number of its list."""
        if len(self._parts) == 1:
            return self._parts[0].items(places)
        of_part = np.array([each.part for each in self._lists], np.int64).take(of_list)
        rows, codes = np.empty(len(places), np.int64), np.empty(len(places), np.uint16)
        for number, part in enumerate(self._parts):
            own = (of_part == number).nonzero()[0]
            rows[own], codes[own] = part.items(places.take(own))
        return rows, codes

    def _cut(self, runs: Sequence[Runs]) -> tuple[Floats, Floats]:
        """Take the runs of conversations that are searched; return their peaks and frequencies."""
        searched = self._setting.searched
        evidence = [each.evidence(self._setting.table) for each in runs]
        columns: tuple[Ints, Ints, Ints, Floats, Floats] = (
            np.concatenate([_NONE, *[each.groups for each in runs]]),
            np.concatenate([_NONE, *[each.starts for each in runs]]),
            np.concatenate([_NONE, *[each.counts for each in runs]]),
            np.concatenate([_NONE, *[peaks for peaks, _ in evidence]]),
            np.concatenate([_NONE, *[frequencies for _, frequencies in evidence]]),
        )
        self._cuts = [0, *accumulate([len(each.groups) for each in runs])]
        self.sizes = [each.size for each in runs]
        if not searched.whole:
            chosen = searched.mask.take(columns[0]).nonzero()[0]
            columns = tuple([column.take(chosen) for column in columns])  # type: ignore[assignment]
            self._cuts = chosen.searchsorted(self._cuts).tolist()
            self.sizes = [int(columns[2][a:b].sum()) for a, b in pairwise(self._cuts)]
        self._runs = [b - a for a, b in pairwise(self._cuts)]
        self._owners, self._starts, self._counts, peaks, frequencies = columns
        self._begins = np.array(
            [self._parts[each.part].begin(each.word) for each in self._lists], np.int64
        )
        self._moved = [number for number, each in enumerate(runs) if each.at is not None]
        return peaks, frequencies

    def _session(self, times: Sequence[int], frequencies: Floats) -> Floats:
        """What the words are worth to each conversation, but those that nearly all hold."""
        setting, size = self._setting, self._setting.size
        lists: list[list[slice]] = [[] for _ in times]
        for each, low, high in zip(self._lists, self._cuts, self._cuts[1:], strict=False):
            lists[each.word].append(slice(low, high))
        loud = [
            times[each.word] * self._rarity(runs) if len(lists[each.word]) == 1 else 0.0
            for each, runs in zip(self._lists, self._runs, strict=True)
        ]
        heard = setting.heard(self._owners, frequencies)
        heard *= np.array(loud).repeat(self._runs)
        session: Floats = np.bincount(self._owners, heard, size).astype(float, copy=False)
        for word, held in enumerate(lists):
            if len(held) > 1:  # frequencies are added up before they saturate
                tf = np.zeros(size)
                for own in held:
                    tf[self._owners[own]] += frequencies[own]
                owners = tf.nonzero()[0]
                rarity = times[word] * self._rarity(len(owners))
                session[owners] += rarity * setting.heard(owners, tf.take(owners))
        return session

    def _rarity(self, conversations: int) -> float:
        """The idf of a word over sessions; 0 where nearly all hold it."""
        rarity = inverse_frequency(self._setting.searched.conversations, conversations)
        return rarity if rarity > _TELLING else 0.0


def number(partition: Sequence[str | None]) -> int:
    """The number of a conversation, which is the name of its partition."""
    return int(partition[0] or 0)
