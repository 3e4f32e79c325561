"""The segments and the head together: writes, merges and snapshots."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .documents import Partition
from .head import Head
from .segment import Ints, Segment, build, merge
from .sources import Source
from .vocabulary import Neighbours, Vocabulary

BULK = 4_096
"""Documents from which a batch becomes a segment by itself."""
RATIO = 4
"""A segment is merged into the one before it when that is less than so many times larger."""
FEW = 200_000
"""Documents below which there are at most two segments."""
_PACE = 16
_NEVER = np.iinfo(np.int64).max


class Store:
    """What a BM25 index holds. Writers take turns outside; readers take snapshots under `lock`.

    Attributes:
        lock: held for moments only, never while a segment is made.
        live: number of documents.
        total: sum of their lengths.
        df: number of live documents per term.
        weighted: whether any document has a weight other than 1.
    """

    def __init__(self, expand: Callable[[str], tuple[str, ...]], fields: int) -> None:
        self.lock = threading.Lock()
        self.vocabulary = Vocabulary(expand)
        self.segments: list[Segment] = []
        self.live, self.total, self.weighted = 0, 0.0, False
        self.df = np.zeros(1024, np.int64)
        self.version = self.inserted = 0
        self._names: dict[str, int] = {}
        self._fields = fields
        self.head = Head(self._names, fields)
        self._places: dict[str, int] = {}
        self._merge: Iterator[tuple[Segment, list[Ints]] | None] | None = None
        self._merging: list[Segment] = []
        self._merge_version = self._adds = 0
        self._neighbours: Neighbours | None = None

    def locate(self, id: str) -> tuple[Segment | Head, int] | None:
        """Return the part and the place of a live document."""
        place = self._places.get(id)
        if place is not None:
            return self.head, place
        for segment in reversed(self.segments):
            for doc in segment.ids.find(id):
                if segment.died is None or segment.died[doc] == _NEVER:
                    return segment, doc
        return None

    @staticmethod
    def find(sources: Sequence[Source], id: str) -> tuple[int, int] | None:
        """Return the source and the place of a document that is live in a snapshot."""
        for n, source in enumerate(sources):
            for doc in source.places(id):
                alive = source.alive(np.array([doc]))
                if alive is None or alive[0]:
                    return n, doc
        return None

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add analysed documents: (id, partition, weight, [(field weight, raw tokens), …])."""
        last = {row[0]: row for row in rows}
        if len(last) < len(rows):
            for row in rows:  # the last of an id wins, at its own place in the order
                last[row[0]] = last.pop(row[0])
            rows = list(last.values())
        numbered = [self._number(row) for row in rows]
        if len(rows) >= BULK:
            self._add_segment(numbered)
            return
        for row in numbered:
            self._add_one(*row)
            self._adds += 1
            if self.head.full:
                self._seal()
            if self._adds % _PACE == 0:
                self.step()

    def _number(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        id, partition, weight, cut = row
        tokens: list[int] = []
        factors: list[float] | None = None
        if len(cut) > 1 or (cut and cut[0][0] != 1.0):
            factors = []
        get = self.vocabulary.__getitem__
        length = 0.0
        for n, (factor, raw) in enumerate(cut):
            before = len(tokens)
            if n:
                tokens.append(-1)
            for numbers in map(get, raw):
                tokens += numbers
            length += factor * (len(tokens) - before - (n > 0))
            if factors is not None:
                factors += [factor] * (len(tokens) - before)
        array = np.array(tokens, np.int32)
        weights = None if factors is None else np.array(factors)
        if weights is not None and (weights == 1.0).all():
            weights = None
        return id, partition, weight, array, weights, length

    def _add_one(
        self,
        id: str,
        partition: Partition,
        weight: float,
        tokens: npt.NDArray[np.int32],
        factors: npt.NDArray[np.float64] | None,
        length: float,
    ) -> None:
        real = tokens >= 0
        terms, inverse = np.unique(tokens[real], return_inverse=True)
        tf = np.bincount(inverse, None if factors is None else factors[real]).astype(np.float64)
        with self.lock:
            self.version += 1
            self._kill(id)
            place = self.head.add(
                id, partition, weight, self.inserted, tokens, factors, terms, tf, length
            )
            self._places[id] = place
            self._count(terms, 1, length)
            self.weighted = self.weighted or weight != 1.0
            self.inserted += 1

    def _add_segment(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._seal()
        ids, partitions, weights, tokens, factors, lengths = zip(*rows, strict=True)
        each = None
        if any(f is not None for f in factors):
            pairs = zip(factors, tokens, strict=True)
            each = np.concatenate([np.ones(len(t)) if f is None else f for f, t in pairs])
        n = len(rows)
        segment = build(
            ids,
            partitions,
            np.array(lengths, np.float64),
            np.array(weights, np.float64),
            np.arange(self.inserted, self.inserted + n),
            np.fromiter(map(len, tokens), np.int64, n),
            np.concatenate(tokens),
            each,
        )
        with self.lock:
            self.version += 1
            if self.live:
                for id in ids:
                    self._kill(id)
            self.segments = [*self.segments, segment]
            self.inserted += n
            self.live += n
            self.total += float(segment.arrays["lengths"].sum())
            self._grow()
            self.df[segment.arrays["terms"]] += np.diff(segment.arrays["start"])
            self.weighted = self.weighted or any(w != 1.0 for w in weights)

    def remove(self, id: str) -> bool:
        """Remove a document; False if there was none."""
        with self.lock:
            self.version += 1
            return self._kill(id)

    def _kill(self, id: str) -> bool:
        found = self.locate(id)
        if found is None:
            return False
        part, doc = found
        if isinstance(part, Head):
            part.died[doc] = self.version
            del self._places[id]
        else:
            part.kill(doc, self.version)
        tokens = part.sequence(doc)
        self._count(np.unique(tokens[tokens >= 0]), -1, -float(part.length(doc)))
        return True

    def _count(self, terms: npt.NDArray[np.int32], sign: int, length: float) -> None:
        self._grow()
        self.df[terms] += sign
        self.live += sign
        self.total = self.total + length if self.live else 0.0

    def _grow(self) -> None:
        if self.vocabulary.count > len(self.df):
            spare = np.zeros(self.vocabulary.count, np.int64)
            self.df = np.concatenate([self.df, spare])

    def _seal(self) -> None:
        """Make the head a segment."""
        if not self.head.count:
            return
        segment, _ = self.head.seal()
        with self.lock:
            if len(segment):
                self.segments = [*self.segments, segment]
            self.head = Head(self._names, self._fields)
            self._places = {}

    def _due(self) -> list[Segment]:
        """Return the segments that should become one: a tail of the list."""
        segments = self.segments
        first = len(segments)
        size = 0
        for at in range(len(segments) - 1, -1, -1):
            if first < len(segments) and len(segments[at]) >= RATIO * size:
                break
            size += len(segments[at])
            first = at
        due = segments[first:]
        if len(due) > 1:
            return due
        if len(segments) > 2 and self.live < FEW:
            return segments[-2:]
        for segment in segments:
            died = segment.died
            if died is not None and np.count_nonzero(died != _NEVER) * 4 > len(segment):
                return [segment]
        return []

    def step(self) -> bool:
        """Do a few milliseconds of merging; False when there is nothing to do."""
        if self._merge is None:
            self._merging = self._due()
            if not self._merging:
                return False
            self._merge_version = self.version
            self._merge = merge(self._merging, self.version)
        done = next(self._merge)
        if done is not None:
            self._replace(*done)
        return True

    def _replace(self, segment: Segment, maps: list[Ints]) -> None:
        """Put the merged segment in place of its sources, with what died meanwhile."""
        with self.lock:
            for source, target in zip(self._merging, maps, strict=True):
                if source.died is not None:
                    late = (source.died > self._merge_version) & (source.died != _NEVER)
                    for doc in np.flatnonzero(late).tolist():
                        segment.kill(int(target[doc]), int(source.died[doc]))
            at = self.segments.index(self._merging[0])
            after = self.segments[at + len(self._merging) :]
            kept = [segment] if len(segment) else []
            self.segments = [*self.segments[:at], *kept, *after]
        self._merge, self._merging = None, []

    def settle(self) -> None:
        """Make the head a segment and finish the merges that are due."""
        self._seal()
        while self.step():
            pass

    def compact(self) -> None:
        """Rewrite every segment that holds removed documents."""
        self.settle()
        for segment in self.segments:
            if segment.died is not None and (segment.died != _NEVER).any():
                self._merging, self._merge_version = [segment], self.version
                self._merge = merge([segment], self.version)
                while self._merge is not None:
                    self.step()

    def neighbours(self) -> Neighbours:
        """Return the look-up of similar terms."""
        near = self._neighbours
        if near is None or near.count != self.vocabulary.count:
            near = self._neighbours = Neighbours(self.vocabulary)
        return near

    def sources(self) -> list[Source]:
        """Return what a reader searches, as it is now; call it under the lock."""
        parts: list[Segment | Head] = [*self.segments, self.head]
        version = self.version
        return [Source(p, p.count, p.size, version) for p in parts if p.count]

    def snapshot(
        self, terms: npt.NDArray[np.int32], where: Partition
    ) -> tuple[list[Source], int, float, Ints]:
        """Return the sources with postings, and N, total length and df of what is searched."""
        with self.lock:
            self._grow()
            sources = self.sources()
            count, total, df = self.live, self.total, self.df[terms]
        for source in sources:
            source.gather(terms)
        if any(where):
            for source in sources:
                source.restrict(where)
            kept = [source.kept() for source in sources]
            count = sum(map(len, kept))
            total = float(sum(s.lengths[k].sum() for s, k in zip(sources, kept, strict=True)))
            df = sum((s.sizes() for s in sources), np.zeros(len(terms), np.int64))
        return sources, count, total, df
