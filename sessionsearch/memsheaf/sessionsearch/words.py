"""The words of a query, as the conversations that are searched hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index
from memsheaf.index.impacts import inverse_frequency
from memsheaf.index.postings import Runs, RunsCache, Term, look_up

from .setting import Setting

__all__ = ["Words"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_TELLING = 0.05
"""idf below which a word tells nothing of a session: nearly all of them hold it."""
_NONE = np.zeros(0, np.int64)


class _List(NamedTuple):
    """The postings of a word, by its number among the query's, in one part of the index."""

    word: int
    part: int
    place: int
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
        self._parts, asked = look_up(index, text, cache, _number)
        self._lists = lists = self._held(asked)
        runs = [each.runs for each in lists]
        columns: tuple[Ints, Ints, Ints, Floats, Floats, Ints] = (
            np.concatenate([_NONE, *[each.groups for each in runs]]),
            np.concatenate([_NONE, *[each.starts for each in runs]]),
            np.concatenate([_NONE, *[each.counts for each in runs]]),
            np.concatenate([_NONE, *[each.peaks(setting.table) for each in runs]]),
            np.concatenate([_NONE, *[each.frequencies for each in runs]]),
            np.arange(len(runs)).repeat([len(each.groups) for each in runs]),
        )
        self.sizes = [each.size for each in runs]
        if not searched.whole:
            chosen = searched.mask.take(columns[0]).nonzero()[0]
            columns = tuple([column.take(chosen) for column in columns])  # type: ignore[assignment]
            held = np.bincount(columns[-1], columns[2], len(runs))
            self.sizes = [int(size) for size in held.tolist()]
        self._owners, self._starts, self._counts, peaks, frequencies, number = columns
        self._cuts = number.searchsorted(np.arange(len(lists) + 1))
        sizes = [0] * len(asked)
        for each, size in zip(lists, self.sizes, strict=True):
            sizes[each.word] += size
        idf = [inverse_frequency(searched.items, size) for size in sizes]
        self.idf = sum(idf)
        self._idf = np.array([idf[each.word] for each in lists])
        self._weight = np.array([asked[each.word].times * idf[each.word] for each in lists])
        self._peak = peaks * self._weight.take(number)
        self._near = self._peak * setting.near(self._owners, self._counts)
        self.peak, self.reach = self.rest(0)
        self.session = self._session(asked, frequencies)

    def rest(self, depth: int) -> tuple[Floats, Floats]:
        """`peak` and `reach` by the lists after the first ones alone."""
        first, size = self._cuts.item(depth), self._setting.size
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
        at = among.take(self._owners[: cuts.item(-1)]).nonzero()[0]
        counts = self._counts.take(at)
        ends = np.zeros(len(at) + 1, np.int64)
        counts.cumsum(out=ends[1:])
        places = (self._starts.take(at) - ends[:-1]).repeat(counts)
        places += np.arange(len(places))
        bounds = ends.take(at.searchsorted(cuts))
        sizes = bounds[1:] - bounds[:-1]
        low = 0
        for each, high in zip(lists, bounds[1:].tolist(), strict=True):
            self._parts[each.part].locate(each.place, each.runs, places[low:high])
            low = high
        rows, codes = self._items(lists, places, sizes)
        gain = self._setting.table.take(codes)
        gain *= self._weight[: len(lists)].repeat(sizes)
        return rows, gain, self._idf[: len(lists)].repeat(sizes)

    def _items(
        self, lists: Sequence[_List], places: Ints, sizes: Ints
    ) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """The row and code of each posting."""
        if len(self._parts) == 1:
            return self._parts[0].items(places)
        of_part = np.array([each.part for each in lists], np.int64).repeat(sizes)
        rows, codes = np.empty(len(places), np.int64), np.empty(len(places), np.uint16)
        for number, part in enumerate(self._parts):
            own = (of_part == number).nonzero()[0]
            rows[own], codes[own] = part.items(places.take(own))
        return rows, codes

    def _held(self, asked: Sequence[Term]) -> list[_List]:
        """The lists of all words, short ones first."""
        lists = []
        for number, part in enumerate(self._parts):
            for word, term in enumerate(asked):
                if term.place is not None:
                    runs = part.runs(term.place)
                    if runs.size:
                        lists.append(_List(word, number, term.place, runs))
        lists.sort(key=lambda each: each.runs.size)
        return lists

    def _session(self, asked: Sequence[Term], frequencies: Floats) -> Floats:
        """What the words are worth to each conversation, but those that nearly all hold."""
        setting, cuts = self._setting, self._cuts.tolist()
        session = np.zeros(setting.size)
        for word, term in enumerate(asked):
            held = [
                (self._owners[cuts[i] : cuts[i + 1]], frequencies[cuts[i] : cuts[i + 1]])
                for i, each in enumerate(self._lists)
                if each.word == word
            ]
            if len(held) == 1:
                [(owners, tf)] = held
            else:
                tf = np.zeros(setting.size)
                for owners, more in held:
                    tf[owners] += more
                owners = tf.nonzero()[0]
                tf = tf.take(owners)
            rarity = inverse_frequency(setting.searched.conversations, len(owners))
            if rarity > _TELLING:
                session[owners] += setting.heard(owners, tf) * (term.times * rarity)
        return session


def _number(partition: Sequence[str | None]) -> int:
    """The number of a conversation, which is the name of its partition."""
    return int(partition[0] or 0)
