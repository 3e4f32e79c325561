"""An immutable part of the index: postings in CSR, documents sorted by partition."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .documents import Partition
from .impacts import FREQUENCIES, encode
from .strings import Strings

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Selection = slice | npt.NDArray[np.bool_]

MERGE_STEP = 100_000
"""Postings per step of a merge: a few milliseconds."""


def sort_key(partition: Partition) -> tuple[str, ...]:
    """Order partitions; absent names come first."""
    return tuple(name or "" for name in partition)


@dataclass(eq=False, slots=True)
class Segment:
    """Documents in order of partition, then of insertion; postings in order of term, then document.

    Attributes:
        arrays: `terms` (int32, distinct), `start` (int64), `docs` (int32), `codes` (uint16) are the
            postings; `odd_at`, `odd` the exact frequencies that codes cannot hold; `tokens` (int32)
            and `token_start` the term sequence per document, -1 between fields; `lengths`,
            `weights` (float64) and `order` (int64, insertion) per document.
        ids: the key per document.
        partitions: the distinct partitions in order, with their first documents in `first`.
        died: per document the version that removed it (int64), or None while all live.
    """

    arrays: dict[str, Array]
    ids: Strings
    partitions: list[Partition]
    first: Ints
    died: Ints | None = None
    name: str = ""
    _rounding: tuple[float, bool, float] | None = None
    peaks: dict[tuple[int, tuple[float, float, int]], float] = field(default_factory=dict)
    selections: dict[Partition, Selection] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.arrays["lengths"])

    @property
    def count(self) -> int:
        """Number of documents, dead ones included."""
        return len(self)

    @property
    def size(self) -> int:
        """Number of postings."""
        return len(self.arrays["docs"])

    @property
    def rounding(self) -> tuple[float, bool, float]:
        """The longest length, whether lengths or frequencies are fractions, the least frequency."""
        if self._rounding is None:
            lengths, odd = self.arrays["lengths"], self.arrays["odd"]
            fractional = bool((lengths % 1).any() or (odd % 1).any())
            smallest = min(1.0, float(odd.min())) if len(odd) else 1.0
            self._rounding = float(lengths.max()), fractional, smallest
        return self._rounding

    def sequence(self, doc: int) -> npt.NDArray[np.int32]:
        """Return the term sequence of a document, -1 between fields."""
        b, e = self.arrays["token_start"][doc : doc + 2].tolist()
        return self.arrays["tokens"][b:e]

    def length(self, doc: int) -> float:
        """Return the weighted length of a document."""
        return float(self.arrays["lengths"][doc])

    def insertion(self) -> Ints:
        """Return the insertion number per document."""
        return self.arrays["order"]

    def ranges(self, terms: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
        """Return where the postings of each term begin and end."""
        own, start = self.arrays["terms"], self.arrays["start"]
        if not len(own):
            return [(0, 0)] * len(terms)
        places = np.minimum(own.searchsorted(terms), len(own) - 1)
        begins = start.take(places)
        ends = np.where(own.take(places) == terms, start.take(places + 1), begins)
        return list(zip(begins.tolist(), ends.tolist(), strict=True))

    def frequencies(self, at: Ints) -> npt.NDArray[np.float64]:
        """Return the exact term frequencies of postings."""
        result: npt.NDArray[np.float64] = FREQUENCIES[self.arrays["codes"][at] >> 8]
        odd_at, odd = self.arrays["odd_at"], self.arrays["odd"]
        if len(odd_at):
            place = np.minimum(odd_at.searchsorted(at), len(odd_at) - 1)
            hit = odd_at[place] == at
            result[hit] = odd[place[hit]]
        return result

    def select(self, where: Partition) -> Selection:
        """Return the documents of the partitions that `where` matches: a range or a mask."""
        found = self.selections.get(where)
        if found is None:
            if len(self.selections) >= 256:
                self.selections.clear()
            found = self.selections[where] = self._select(where)
        return found

    def _select(self, where: Partition) -> Selection:
        set_fields = [i for i, name in enumerate(where) if name is not None]
        if set_fields == list(range(len(set_fields))):
            lead = tuple(name or "" for name in where[: len(set_fields)])
            lo = bisect_left(self.partitions, lead, key=sort_key)
            hi = bisect_left(self.partitions, (*lead[:-1], lead[-1] + "\0"), key=sort_key)
            return slice(int(self.first[lo]), int(self.first[hi]))
        chosen = np.array([all(p[i] == where[i] for i in set_fields) for p in self.partitions])
        return np.repeat(chosen.astype(bool), np.diff(self.first))

    def partition(self, docs: Ints) -> Ints:
        """Return the index of each document's partition."""
        return self.first.searchsorted(docs, "right") - 1

    def kill(self, doc: int, version: int) -> None:
        """Mark a document as removed from `version` on."""
        if self.died is None:
            died = np.full(len(self), np.iinfo(np.int64).max)
            died[doc] = version
            self.died = died
        else:
            self.died[doc] = version


def build(
    ids: Sequence[str],
    partitions: Sequence[Partition],
    lengths: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    order: Ints,
    sizes: Ints,
    tokens: npt.NDArray[np.int32],
    factors: npt.NDArray[np.float64] | None,
) -> Segment:
    """Build a segment from token sequences.

    Args:
        ids: key per document.
        partitions: partition per document.
        lengths: weighted length per document.
        weights: score factor per document.
        order: insertion number per document.
        sizes: number of tokens per document.
        tokens: term ids of all documents, -1 between fields.
        factors: weight per token, None where all are 1.
    """
    distinct = sorted(set(partitions), key=sort_key)
    number = {partition: i for i, partition in enumerate(distinct)}
    group = np.fromiter((number[p] for p in partitions), np.int64, len(ids))
    rank = np.lexsort((order, group))
    place = np.empty(len(ids), np.int64)
    place[rank] = np.arange(len(ids))
    start = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    doc = np.repeat(place, sizes)
    one = len(distinct) == 1
    sorted_tokens = tokens if one else tokens[_spread(start[:-1][rank], sizes[rank])]
    real = tokens >= 0
    key = (tokens.astype(np.int64) << 32 | doc)[real]
    if factors is None:
        key.sort()
        edge = np.flatnonzero(np.append(True, key[1:] != key[:-1]) if len(key) else key)
        tf = np.diff(np.append(edge, len(key))).astype(np.float64)
    else:
        by_key = np.argsort(key, kind="stable")
        key = key[by_key]
        edge = np.flatnonzero(np.append(True, key[1:] != key[:-1]) if len(key) else key)
        tf = np.add.reduceat(factors[real][by_key], edge) if len(edge) else np.zeros(0)
    key = key[edge]
    docs = (key & 0xFFFFFFFF).astype(np.int32)
    token_start = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(sizes[rank], out=token_start[1:])
    codes = encode(tf, lengths[rank][docs])
    odd_at = np.flatnonzero(FREQUENCIES[codes >> 8] != tf)
    term = (key >> 32).astype(np.int32)
    edge = np.flatnonzero(np.append(True, term[1:] != term[:-1]) if len(term) else term)
    arrays: dict[str, Array] = {
        "terms": term[edge],
        "start": np.append(edge, len(term)),
        "docs": docs,
        "codes": codes,
        "odd_at": odd_at,
        "odd": tf[odd_at],
        "tokens": sorted_tokens,
        "token_start": token_start,
        "lengths": lengths[rank],
        "weights": weights[rank],
        "order": order[rank],
    }
    first = np.append(np.searchsorted(group[rank], np.arange(len(distinct))), len(ids))
    return Segment(arrays, Strings.pack([ids[i] for i in rank.tolist()]), distinct, first)


def _spread(start: Ints, sizes: Ints) -> Ints:
    """Return start[0], start[0] + 1, … for each run."""
    ends = np.cumsum(sizes)
    return np.repeat(start - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


def merge(sources: Sequence[Segment], version: int) -> Iterator[tuple[Segment, list[Ints]] | None]:
    """Merge segments without what is dead at `version`, a little at each step.

    Yields:
        None while there is more to do; at last the segment, and per source the new place of each
        document (-1 where it is gone).
    """
    alive = [np.ones(len(s), bool) if s.died is None else s.died > version for s in sources]
    distinct = sorted({p for s in sources for p in s.partitions}, key=sort_key)
    number = {partition: i for i, partition in enumerate(distinct)}
    group = np.concatenate(
        [
            np.repeat(np.array([number[p] for p in s.partitions], np.int64), np.diff(s.first))[a]
            for s, a in zip(sources, alive, strict=True)
        ]
    )
    old = [np.flatnonzero(a) for a in alive]
    yield None
    order = np.concatenate([s.arrays["order"][o] for s, o in zip(sources, old, strict=True)])
    rank = np.lexsort((order, group))
    place = np.empty(len(rank), np.int64)
    place[rank] = np.arange(len(rank))
    yield None
    maps, base = [], 0
    for s, o in zip(sources, old, strict=True):
        target = np.full(len(s), -1, np.int64)
        target[o] = place[base : base + len(o)]
        maps.append(target)
        base += len(o)
    columns = {
        name: np.concatenate([s.arrays[name][o] for s, o in zip(sources, old, strict=True)])[rank]
        for name in ("lengths", "weights")
    }
    yield None
    ids = sources[0].ids.select(old[0])
    for s, o in zip(sources[1:], old[1:], strict=True):
        yield None
        ids = Strings.concatenate(ids, s.ids.select(o))
    yield None
    ids = ids.select(rank)
    sizes = np.concatenate(
        [np.diff(s.arrays["token_start"])[o] for s, o in zip(sources, old, strict=True)]
    )
    token_start = np.zeros(len(rank) + 1, np.int64)
    np.cumsum(sizes[rank], out=token_start[1:])
    tokens = np.empty(int(token_start[-1]), np.int32)
    for s, o, target in zip(sources, old, maps, strict=True):
        for lo in range(0, len(o), 5_000):
            yield None
            some = o[lo : lo + 5_000]
            size = np.diff(s.arrays["token_start"])[some]
            into = _spread(token_start[target[some]], size)
            tokens[into] = s.arrays["tokens"][_spread(s.arrays["token_start"][some], size)]
    parts = []
    starts = [s.arrays["terms"] for s in sources]
    vocabulary = np.unique(np.concatenate(starts))
    counts = np.zeros(len(vocabulary), np.int64)
    for s in sources:
        counts[vocabulary.searchsorted(s.arrays["terms"])] += np.diff(s.arrays["start"])
    bounds = np.flatnonzero(np.diff(np.cumsum(counts) // MERGE_STEP, prepend=-1))
    edges = [*vocabulary[bounds].tolist(), 1 << 31]
    for lo, hi in pairwise(edges):
        yield None
        parts.append(_merge_terms(sources, maps, lo, hi))
    yield None
    keys, codes, odd_key, odd = (
        (np.concatenate(column) for column in zip(*parts, strict=True))
        if parts
        else (np.zeros(0, np.int64), np.zeros(0, np.uint16), np.zeros(0, np.int64), np.zeros(0))
    )
    yield None
    term = (keys >> 32).astype(np.int32)
    edge = np.flatnonzero(np.append(True, term[1:] != term[:-1]) if len(term) else term)
    yield None
    arrays: dict[str, Array] = {
        "terms": term[edge],
        "start": np.append(edge, len(term)),
        "docs": (keys & 0xFFFFFFFF).astype(np.int32),
        "codes": codes,
        "odd_at": keys.searchsorted(odd_key),
        "odd": odd,
        "tokens": tokens,
        "token_start": token_start,
        "order": order[rank],
        **columns,
    }
    used, index = np.unique(group[rank], return_index=True)
    first = np.append(index, len(rank))
    yield Segment(arrays, ids, [distinct[i] for i in used.tolist()], first), maps


def _merge_terms(
    sources: Sequence[Segment], maps: Sequence[Ints], lo: int, hi: int
) -> tuple[Array, Array, Array, Array]:
    """Return the merged postings of the terms in [lo, hi): keys, codes, odd keys, odd values."""
    keys, codes, odd_keys, odds = [], [], [], []
    for s, target in zip(sources, maps, strict=True):
        terms, start = s.arrays["terms"], s.arrays["start"]
        one = int(terms.searchsorted(np.int32(lo)))
        two = int(terms.searchsorted(np.int32(hi))) if hi < 1 << 31 else len(terms)
        b, e = int(start[one]), int(start[two])
        doc = target[s.arrays["docs"][b:e]]
        keep = doc >= 0
        term = np.repeat(terms[one:two].astype(np.int64), np.diff(start[one : two + 1]))
        key = term << 32 | doc
        keys.append(key[keep])
        codes.append(s.arrays["codes"][b:e][keep])
        x, y = s.arrays["odd_at"].searchsorted([b, e]).tolist()
        some = s.arrays["odd_at"][x:y] - b
        some_kept = keep[some]
        odd_keys.append(key[some[some_kept]])
        odds.append(s.arrays["odd"][x:y][some_kept])
    key, odd_key = np.concatenate(keys), np.concatenate(odd_keys)
    by_key, by_odd = np.argsort(key, kind="stable"), np.argsort(odd_key)
    code, odd = np.concatenate(codes), np.concatenate(odds)
    return key[by_key], code[by_key], odd_key[by_odd], odd[by_odd]
