"""An immutable part of the index: postings in CSR, documents sorted by partition."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .batch import Batch
from .columns import Column, column
from .documents import Partition
from .impacts import FREQUENCIES, encode
from .strings import Ints as Ints
from .strings import Strings, spread

LARGE = 4_096
"""Documents from which terms may be looked up for a few instead of adding their lists ..."""
SHARE = 12
"""... those that at least one in so many documents holds."""
COLUMNS = 1 << 27
"""Bytes of the columns that a segment keeps."""
SPANS = 1 << 16
"""Terms whose lists a segment remembers."""
Array = npt.NDArray[Any]
Rounding = tuple[float, bool, float]
"""The longest length, whether lengths or frequencies are fractions, the least frequency up to 1."""
Selection = slice | npt.NDArray[np.bool_]


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
        rounding: bounds on the documents' lengths and frequencies.
        died: per document the version that removed it (int64), or None while all live.
        gone: number of removed documents.
        count: number of documents, dead ones included.
        name: its file, once it is saved.
    """

    arrays: dict[str, Array]
    ids: Strings
    partitions: list[Partition]
    first: Ints
    rounding: Rounding
    died: Ints | None = None
    gone: int = 0
    name: str = ""
    count: int = field(init=False)
    _heaviest: float | None = None
    columns: dict[int, Column] = field(default_factory=dict)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    selections: dict[Partition, Selection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.count = int(self.first[-1])

    def __len__(self) -> int:
        return self.count

    @property
    def size(self) -> int:
        """Number of postings."""
        return len(self.docs)

    @property
    def docs(self) -> npt.NDArray[np.int32]:
        """The document of each posting."""
        return self.arrays["docs"]

    @property
    def codes(self) -> npt.NDArray[np.uint16]:
        """The code of each posting."""
        return self.arrays["codes"]

    @property
    def lengths(self) -> npt.NDArray[np.float64]:
        """The weighted length per document."""
        return self.arrays["lengths"]

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """The weight per document."""
        return self.arrays["weights"]

    @property
    def odd(self) -> bool:
        """Whether codes do not tell all frequencies."""
        return len(self.arrays["odd"]) > 0

    @property
    def heaviest(self) -> float:
        """The largest weight of a document."""
        if self._heaviest is None:
            self._heaviest = float(self.arrays["weights"].max())
        return self._heaviest

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

    def ranges(self, terms: Sequence[int]) -> list[tuple[int, int]]:
        """Return where the postings of each term begin and end."""
        return [self.spans.get(term) or self._range(term) for term in terms]

    def _range(self, term: int) -> tuple[int, int]:
        own, start = self.arrays["terms"], self.arrays["start"]
        at = term  # as long as it is the only segment, it holds all terms
        if at >= len(own) or own.item(at) != term:
            at = int(own.searchsorted(np.int32(term)))
        held = at < len(own) and own.item(at) == term
        if len(self.spans) >= SPANS:
            self.spans.clear()
        found = self.spans[term] = (start.item(at), start.item(at + 1)) if held else (0, 0)
        return found

    def present(self, terms: npt.NDArray[np.int32], where: Partition) -> npt.NDArray[np.bool_]:
        """Return which terms the selected partitions may have; for sure, where these are a range.

        All lists are searched for the first document of the range at once.
        """
        chosen = self.select(where)
        if isinstance(chosen, slice) and chosen.start == chosen.stop:
            return np.zeros(len(terms), bool)
        own, start, docs = (self.arrays[name] for name in ("terms", "start", "docs"))
        at = np.minimum(own.searchsorted(terms), len(own) - 1)
        low = start[at]
        end = np.where(own[at] == terms, start[at + 1], low)
        if not isinstance(chosen, slice):
            held: npt.NDArray[np.bool_] = low < end
            return held
        high = end
        for _ in range(int((end - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            before = (docs.take(middle, mode="clip") < chosen.start) & (middle < high)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        inside: npt.NDArray[np.bool_] = docs.take(low, mode="clip") < chosen.stop
        return inside & (low < end)

    def make_columns(self) -> Iterator[None]:
        """Make the columns of the terms that many documents hold, one at a step."""
        if self.count >= LARGE:
            start = self.arrays["start"]
            often = (np.diff(start) * SHARE >= self.count).nonzero()[0]
            for begin, end in zip(start[often].tolist(), start[often + 1].tolist(), strict=True):
                self.column(begin, end)
                yield

    def column(self, begin: int, end: int) -> Column | None:
        """Return the postings between two places as a column, if there is room."""
        found = self.columns.get(begin)
        if found is None and 2 * len(self) * (len(self.columns) + 1) <= COLUMNS:
            docs, codes = self.arrays["docs"][begin:end], self.arrays["codes"][begin:end]
            found = self.columns[begin] = column(len(self), docs, codes)
        return found

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

    def kill(self, docs: int | Ints, version: int | Ints) -> None:
        """Mark live documents as removed from `version` on."""
        died = np.full(len(self), np.iinfo(np.int64).max) if self.died is None else self.died
        died[docs] = version
        self.died, self.gone = died, self.gone + np.size(docs)


def build(batch: Batch, order: Ints) -> Segment:
    """Build a segment from analysed documents.

    Args:
        batch: the documents.
        order: insertion number per document.
    """
    distinct = sorted(set(batch.partitions), key=sort_key)
    number = {partition: i for i, partition in enumerate(distinct)}
    group = np.array([number[p] for p in batch.partitions], np.int64)[batch.groups]
    rank = np.lexsort((order, group))
    place = np.empty(len(batch), np.int64)
    place[rank] = np.arange(len(batch))
    sizes, tokens = batch.sizes[rank], batch.tokens
    token_start = np.zeros(len(batch) + 1, np.int64)
    np.cumsum(sizes, out=token_start[1:])
    key, tf = invert(tokens, np.repeat(place, batch.sizes), batch.factors)
    docs = key.astype(np.int32)  # the lower half
    key >>= 32
    edge = _edges(key)
    if len(distinct) > 1:
        begin = np.cumsum(batch.sizes) - batch.sizes
        tokens = tokens[spread(begin[rank], sizes)]
    lengths = batch.lengths[rank]
    low = encode(np.ones(len(lengths)), lengths) & np.uint16(0xFF)
    codes = encode_each(tf, low.take(docs))
    odd_at = np.flatnonzero(FREQUENCIES[codes >> 8] != tf)
    arrays: dict[str, Array] = {
        "terms": key[edge].astype(np.int32),
        "start": np.append(edge, len(key)),
        "docs": docs,
        "codes": codes,
        "odd_at": odd_at,
        "odd": tf[odd_at].astype(np.float64),
        "tokens": tokens,
        "token_start": token_start,
        "lengths": lengths,
        "weights": batch.weights[rank],
        "order": order[rank],
    }
    first = np.append(np.searchsorted(group[rank], np.arange(len(distinct))), len(batch))
    ids = Strings.pack([batch.ids[i] for i in rank.tolist()])
    fractional = batch.factors is not None and bool((lengths % 1).any() or (tf % 1).any())
    rounding = float(lengths.max()), fractional, min(1.0, float(tf.min(initial=1)))
    return Segment(arrays, ids, distinct, first, rounding)


def invert(
    tokens: npt.NDArray[np.int32], docs: Ints, factors: npt.NDArray[np.float64] | None
) -> tuple[Ints, Array]:
    """Return the distinct pairs term << 32 | document in order, and their frequencies.

    Frequencies are whole numbers of type int64 where there are no factors.
    """
    key = tokens.astype(np.int64)
    key <<= 32
    key |= docs
    return _distinct(key, factors)


def count(
    tokens: npt.NDArray[np.int32], factors: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[np.int32], Array]:
    """Return the distinct terms of one document in order, and their frequencies."""
    terms: tuple[npt.NDArray[np.int32], Array] = _distinct(tokens.copy(), factors)
    return terms


def _distinct(key: Array, factors: npt.NDArray[np.float64] | None) -> tuple[Array, Array]:
    """Return the distinct keys from 0 on, and how often each occurs; breaks are below 0."""
    if factors is None:
        key.sort()
    else:
        by_key = np.argsort(key, kind="stable")
        key, factors = key[by_key], factors[by_key]
    real = int(key.searchsorted(key.dtype.type(0)))
    key = key[real:]
    edge = _edges(key)
    if factors is not None:
        return key[edge], np.add.reduceat(factors[real:], edge) if len(edge) else np.zeros(0)
    times = np.empty_like(edge)
    times[:-1] = edge[1:]
    times[-1:] = len(key)
    times -= edge
    return key[edge], times


def _edges(values: Array) -> Ints:
    """Return where each run of equal values begins."""
    fresh = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    return fresh.nonzero()[0]


_WHOLE = encode(np.arange(1024.0), np.float64(0))


def encode_each(tf: Array, low: Array | np.uint16) -> npt.NDArray[np.uint16]:
    """Return the codes of postings whose lengths are encoded already."""
    if tf.dtype == np.int64 and tf.max(initial=0) < len(_WHOLE):
        codes = _WHOLE.take(tf)
    else:
        codes = encode(tf.astype(np.float64), np.float64(0))
    codes |= low
    return codes
