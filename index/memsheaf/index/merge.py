"""Merging segments a little at a time: each step is a range of documents, postings or ids."""

from collections.abc import Generator, Iterator, Sequence
from heapq import merge as in_order
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .documents import Partition
from .segment import Array, Segment, sort_key
from .strings import Ints, Strings, spread

DOCUMENTS = 4_096
"""Documents, or ids, of a source per step; some milliseconds."""
POSTINGS = 65_536
"""Postings per step; a longer list is cut at ranges of documents."""
PARTITIONS = 2_000
"""Partitions per step."""

Mask = npt.NDArray[np.bool_]
Merged = tuple[Segment, list[Ints]]


def merge(sources: Sequence[Segment], version: int) -> Iterator[Merged | None]:
    """Merge segments without what is dead at `version`.

    Yields:
        None while there is more to do; at last the segment, and per source the new place of each
        document (-1 where it is gone).
    """
    alive = [np.ones(len(s), bool) if s.died is None else s.died > version for s in sources]
    yield None
    partitions, numbers = yield from _partitions(sources)
    held = np.zeros(len(partitions), np.int64)
    for s, a, own in zip(sources, alive, numbers, strict=True):
        before = np.zeros(len(a) + 1, np.int64)
        np.cumsum(a, out=before[1:])
        held[own] += np.diff(before[s.first])
        yield None
    documents = _Documents(sources, alive, numbers)
    yield from documents.steps()
    targets = documents.targets
    hashes, places = yield from _hashes(sources, targets, documents.count)
    postings = yield from _postings(sources, targets, documents)
    ids: dict[str, Array] = {"hashes": hashes, "places": places}
    ids |= {"blob": documents.blob, "offset": documents.offset}
    used = np.flatnonzero(held)
    first = np.append(0, np.cumsum(held[used]))
    kept = [partitions[i] for i in used.tolist()]
    longest, fractional, smallest = zip(*(s.rounding for s in sources), strict=True)
    rounding = max(longest), any(fractional), min(smallest)
    merged = Segment({**postings, **documents.arrays}, Strings(ids), kept, first, rounding)
    yield from merged.make_columns()
    yield merged, targets


def _partitions(
    sources: Sequence[Segment],
) -> Generator[None, None, tuple[list[Partition], list[Ints]]]:
    """Return the distinct partitions in order, and per source the number of each of its own."""
    numbers = [np.zeros(len(s.partitions), np.int64) for s in sources]

    def rows(n: int) -> Iterator[tuple[tuple[str, ...], int, int]]:
        for i, partition in enumerate(sources[n].partitions):
            yield sort_key(partition), n, i

    distinct: list[Partition] = []
    last = None
    for count, (key, n, i) in enumerate(in_order(*map(rows, range(len(sources))))):
        if key != last:
            distinct.append(sources[n].partitions[i])
            last = key
        numbers[n][i] = len(distinct) - 1
        if count % PARTITIONS == 0:
            yield None
    return distinct, numbers


class _Documents:
    """The columns of the merged documents, in order of partition and insertion.

    Attributes:
        count: number of live documents.
        arrays: all but the postings and the ids.
        blob, offset: the ids.
        targets: per source the new place of each document, -1 where it is dead.
        cuts: per source its documents at the edges of the steps.
    """

    def __init__(
        self, sources: Sequence[Segment], alive: Sequence[Mask], numbers: Sequence[Ints]
    ) -> None:
        self._sources, self._alive, self._numbers = sources, alive, numbers
        self.count = sum(int(np.count_nonzero(a)) for a in alive)
        self.targets = [np.full(len(s), -1, np.int64) for s in sources]
        self.cuts: list[Ints] = []
        size = sum(len(s.arrays["tokens"]) for s in sources)
        self.arrays: dict[str, Array] = {
            "tokens": np.empty(size, np.int32),
            "token_start": np.zeros(self.count + 1, np.int64),
            "lengths": np.empty(self.count),
            "weights": np.empty(self.count),
            "order": np.empty(self.count, np.int64),
        }
        self.blob = np.empty(sum(len(s.ids.arrays["blob"]) for s in sources), np.uint8)
        self.offset = np.zeros(self.count + 1, np.int64)

    def steps(self) -> Iterator[None]:
        """Fill the columns."""
        keys: list[Ints] = []
        for s, own in zip(self._sources, self._numbers, strict=True):
            key = np.repeat(own << 40, np.diff(s.first))
            key |= s.arrays["order"]
            keys.append(key)
            yield None
        edges = np.sort(np.concatenate([key[::DOCUMENTS] for key in keys]))
        self.cuts = [np.append(key.searchsorted(edges), len(key)) for key in keys]
        base = 0
        for step in range(len(edges)):
            base = self._fill(keys, step, base)
            yield None
        self.arrays["tokens"] = self.arrays["tokens"][: self.arrays["token_start"][-1]]
        self.blob = self.blob[: self.offset[-1]]

    def _fill(self, keys: Sequence[Ints], step: int, base: int) -> int:
        """Put the documents between two edges in order behind the first `base`."""
        rows = []
        for n, cut in enumerate(self.cuts):
            lo, hi = cut[step : step + 2].tolist()
            if lo < hi:
                rows.append((n, np.flatnonzero(self._alive[n][lo:hi]) + lo))
        if not rows:
            return base
        by_key = np.argsort(np.concatenate([keys[n][docs] for n, docs in rows]))
        end = base + len(by_key)
        place = np.empty(len(by_key), np.int64)
        place[by_key] = np.arange(base, end)
        for name in ("lengths", "weights", "order"):
            joined = np.concatenate([self._sources[n].arrays[name][docs] for n, docs in rows])
            self.arrays[name][base:end] = joined[by_key]
        places = np.split(place, np.cumsum([len(docs) for _, docs in rows])[:-1])
        for (n, docs), into in zip(rows, places, strict=True):
            self.targets[n][docs] = into
        starts = [(self._sources[n].arrays["token_start"], docs) for n, docs in rows]
        offsets = [(self._sources[n].ids.arrays["offset"], docs) for n, docs in rows]
        _extend(self.arrays["token_start"], starts, by_key, base)
        _extend(self.offset, offsets, by_key, base)
        for (n, docs), into in zip(rows, places, strict=True):
            own, ids = self._sources[n].arrays, self._sources[n].ids.arrays
            _copy(own["tokens"], own["token_start"], docs, self.arrays["tokens"],
                  self.arrays["token_start"], into)  # fmt: skip
            _copy(ids["blob"], ids["offset"], docs, self.blob, self.offset, into)
        return end


def _extend(start: Ints, sources: Sequence[tuple[Ints, Ints]], by_key: Ints, base: int) -> None:
    """Continue the starts of runs behind the first `base` with the sources' runs."""
    sizes = np.concatenate([own[docs + 1] - own[docs] for own, docs in sources])[by_key]
    start[base + 1 : base + 1 + len(sizes)] = start[base] + np.cumsum(sizes)


def _copy(source: Array, start: Ints, rows: Ints, target: Array, into: Ints, places: Ints) -> None:
    """Copy runs, at once where they are neighbours on both sides."""
    if not len(rows):
        return
    if rows[-1] - rows[0] == places[-1] - places[0] == len(rows) - 1:
        begin, end = start[rows[0]], start[rows[-1] + 1]
        target[into[places[0]] : into[places[-1] + 1]] = source[begin:end]
        return
    sizes = start[rows + 1] - start[rows]
    target[spread(into[places], sizes)] = source[spread(start[rows], sizes)]


def _hashes(
    sources: Sequence[Segment], targets: Sequence[Ints], count: int
) -> Generator[None, None, tuple[Array, Array]]:
    """Return the sorted hashes of the ids and the place of each."""
    hashes, places, at = np.empty(count, np.uint64), np.empty(count, np.int32), 0
    parts = 1 + count // (2 * DOCUMENTS)
    edges = np.arange(1, parts, dtype=np.uint64) * np.uint64((2**64 - 1) // parts)
    own = [s.ids.arrays["hashes"] for s in sources]
    cuts = [[0, *h.searchsorted(edges).tolist(), len(h)] for h in own]
    for step in range(parts):
        rows = [(n, c[step], c[step + 1]) for n, c in enumerate(cuts) if c[step] < c[step + 1]]
        if not rows:
            continue
        place = np.concatenate(
            [targets[n][sources[n].ids.arrays["places"][lo:hi]] for n, lo, hi in rows]
        )
        value = np.concatenate([own[n][lo:hi] for n, lo, hi in rows])[place >= 0]
        by_value = np.argsort(value)
        end = at + len(value)
        hashes[at:end], places[at:end] = value[by_value], place[place >= 0][by_value]
        at = end
        yield None
    return hashes, places


def _postings(
    sources: Sequence[Segment], targets: Sequence[Ints], documents: _Documents
) -> Generator[None, None, dict[str, Array]]:
    """Return the merged postings: terms, start, docs, codes and the odd frequencies."""
    counts = np.zeros(1 + max(int(s.arrays["terms"].max(initial=-1)) for s in sources), np.int64)
    for s in sources:
        counts[s.arrays["terms"]] += np.diff(s.arrays["start"])
        yield None
    terms = np.flatnonzero(counts)
    dense = np.cumsum(counts > 0) - 1
    live = np.zeros(len(terms), np.int64)
    bits = max(1, documents.count).bit_length()
    docs = np.empty(int(counts.sum()), np.int32)
    codes = np.empty(len(docs), np.uint16)
    odd_at, odd, at = [np.zeros(0, np.int64)], [np.zeros(0)], 0
    for lo, windows in _windows(sources, counts[terms], terms, documents.cuts):
        yield None
        keys, odd_keys, odds = [], [], []
        for s, target, (b, e) in zip(sources, targets, windows, strict=True):
            if b == e:
                continue
            key = _keys(s, dense, lo, b, e) << bits | target[s.arrays["docs"][b:e]]
            key <<= 16  # negative where the document is dead
            key |= s.arrays["codes"][b:e]
            keys.append(key)
            x, y = s.arrays["odd_at"].searchsorted([b, e]).tolist()
            if x < y:
                odd_keys.append(key[s.arrays["odd_at"][x:y] - b] >> 16)
                odds.append(s.arrays["odd"][x:y])
        joined = np.concatenate(keys)
        joined.sort()
        joined = joined[int(joined.searchsorted(0)) :]
        end = at + len(joined)
        codes[at:end] = joined.astype(np.uint16)  # the lowest bits
        joined >>= 16
        docs[at:end] = joined & ((1 << bits) - 1)
        if odds:
            key, value = np.concatenate(odd_keys), np.concatenate(odds)
            by_key = np.argsort(key)
            by_key = by_key[int(key[by_key].searchsorted(0)) :]
            odd_at.append(joined.searchsorted(key[by_key]) + at)
            odd.append(value[by_key])
        joined >>= bits
        found = np.bincount(joined)
        live[lo : lo + len(found)] += found
        at = end
    held = live > 0
    return {
        "terms": terms[held].astype(np.int32),
        "start": np.append(0, np.cumsum(live[held])),
        "docs": docs[:at],
        "codes": codes[:at],
        "odd_at": np.concatenate(odd_at),
        "odd": np.concatenate(odd),
    }


def _windows(
    sources: Sequence[Segment], counts: Ints, terms: Ints, cuts: Sequence[Ints]
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield ranges of the keys (term, document): the first term's place, and postings per source.

    A term with many postings is by itself, and has a range for every few steps of the documents.
    """
    long = np.flatnonzero(counts > POSTINGS)
    bucket = (np.cumsum(counts) - counts) // POSTINGS
    fresh = np.flatnonzero(np.diff(bucket, prepend=-1))
    edges = np.unique(np.concatenate([fresh, long, long + 1, [len(terms)]]))
    at = [s.arrays["start"][_places(s, terms, edges)] for s in sources]
    for n, (lo, _) in enumerate(pairwise(edges.tolist())):
        bounds = [tuple(own[n : n + 2].tolist()) for own in at]
        if counts[lo] <= POSTINGS:
            yield lo, bounds
            continue
        stride = max(1, POSTINGS // DOCUMENTS)
        inner = [
            [*(b + s.arrays["docs"][b:e].searchsorted(cut[:-1:stride].astype(np.int32))), e]
            for s, cut, (b, e) in zip(sources, cuts, bounds, strict=True)
        ]
        for step in range(len(inner[0]) - 1):
            ranges = [(own[step], own[step + 1]) for own in inner]
            if any(b < e for b, e in ranges):
                yield lo, ranges


def _places(source: Segment, terms: Ints, edges: Ints) -> Ints:
    """Return where the terms at the edges are among the source's, or would be."""
    own = source.arrays["terms"]
    inner = own.searchsorted(terms[edges[:-1]].astype(np.int32))
    return np.append(inner, len(own))


def _keys(source: Segment, dense: Ints, lo: int, b: int, e: int) -> Ints:
    """Return the place of each posting's term, counted from `lo`."""
    start = source.arrays["start"]
    i, j = int(start.searchsorted(b, "right")) - 1, int(start.searchsorted(e))
    ends = np.clip(start[i : j + 1], b, e)
    numbers: Ints = np.repeat(dense[source.arrays["terms"][i:j]] - lo, np.diff(ends))
    return numbers
