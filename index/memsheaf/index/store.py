"""The segments and the head together: writes, merges and snapshots."""

import threading
from collections.abc import Callable, Iterator, Sequence
from operator import add

import numpy as np
import numpy.typing as npt

from .array_file import ArrayFile
from .batch import Batch
from .documents import Partition
from .head import Head
from .merge import merge
from .neighbours import Neighbours
from .segment import Segment, count, invert
from .sources import Source
from .strings import Ints, digest, spread
from .vocabulary import Vocabulary

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
        self._merge_version = self._changes = 0
        self._neighbours = Neighbours()

    def locate(self, id: str) -> tuple[Segment | Head, int] | None:
        """Return the part and the place of a live document."""
        place = self._places.get(id)
        if place is not None:
            return self.head, place
        value = digest(id)
        for segment in reversed(self.segments):
            for doc in segment.ids.find(id, value):
                if segment.died is None or segment.died[doc] == _NEVER:
                    return segment, doc
        return None

    def add(self, batch: Batch) -> None:
        """Add analysed documents one by one; each replaces the one of its id."""
        end = 0
        for n, (id, group, size) in enumerate(
            zip(batch.ids, batch.groups.tolist(), batch.sizes.tolist(), strict=True)
        ):
            begin, end = end, end + size
            factors = None if batch.factors is None else batch.factors[begin:end]
            tokens, weight = batch.tokens[begin:end], float(batch.weights[n])
            terms, tf = count(tokens, factors)
            length = float(batch.lengths[n])
            with self.lock:
                self.version += 1
                self._kill(id)
                self._places[id] = self.head.add(
                    id, batch.partitions[group], weight, self.inserted, tokens, factors,
                    terms, tf, length,
                )  # fmt: skip
                self._count(terms, 1, length)
                self.weighted = self.weighted or weight != 1.0
                self.inserted += 1
            if self.head.full:
                self._seal()
            self._go_on()

    def append(self, segment: Segment) -> None:
        """Add a segment, whose insertion numbers begin at 0; it replaces the documents of its ids.

        It is merged later: `step` until that returns False.
        """
        self._seal()
        arrays = segment.arrays
        replaced = [(s, s.ids.shared(segment.ids)) for s in self.segments if self.live]
        arrays["order"] += self.inserted
        with self.lock:
            self.version += 1
            for old, places in replaced:
                self._drop(old, places)
            self.segments = [*self.segments, segment]
            self.inserted += len(segment)
            self.live += len(segment)
            self.total += float(arrays["lengths"].sum())
            self._grow()
            self.df[arrays["terms"]] += np.diff(arrays["start"])
            self.weighted = self.weighted or bool((arrays["weights"] != 1.0).any())

    def remove(self, id: str) -> bool:
        """Remove a document; False if there was none."""
        with self.lock:
            self.version += 1
            found = self._kill(id)
        self._go_on()
        return found

    def _go_on(self) -> None:
        """Do a step of merging at every few changes."""
        self._changes += 1
        if self._changes % _PACE == 0:
            self.step()

    def _kill(self, id: str) -> bool:
        found = self.locate(id)
        if found is None:
            return False
        part, doc = found
        if isinstance(part, Head):
            part.died[doc] = self.version
            del self._places[id]
            self._count(count(part.sequence(doc), None)[0], -1, -part.length(doc))
        else:
            self._drop(part, np.array([doc]))
        return True

    def _drop(self, segment: Segment, docs: Ints) -> None:
        """Remove those of the documents that live."""
        if segment.died is not None:
            docs = docs[segment.died[docs] == _NEVER]
        if not len(docs):
            return
        segment.kill(docs, self.version)
        start = segment.arrays["token_start"]
        sizes = start[docs + 1] - start[docs]
        tokens = segment.arrays["tokens"][spread(start[docs], sizes)]
        self._grow()
        terms = invert(tokens, np.repeat(docs, sizes), None)[0] >> 32
        np.subtract.at(self.df, terms, 1)
        self.live -= len(docs)
        self.total = self.total - float(segment.arrays["lengths"][docs].sum()) if self.live else 0.0

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
        segment = self.head.seal()
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
            if segment.gone * 4 > len(segment):
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
                    if late.any():
                        segment.kill(target[late], source.died[late])
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
            if segment.gone:
                self._merging, self._merge_version = [segment], self.version
                self._merge = merge([segment], self.version)
                while self._merge is not None:
                    self.step()

    def verify(self) -> None:
        """Check what was mapped from files."""
        for arrays in (self.vocabulary.frozen.arrays, *(s.arrays for s in self.segments)):
            if isinstance(arrays, ArrayFile):
                arrays.verify()

    def neighbours(self) -> Neighbours:
        """Return the look-up of similar terms."""
        self._neighbours.update(self.vocabulary)
        return self._neighbours

    def present(self, terms: Sequence[int], where: Partition) -> set[int]:
        """Return those of the terms that the selected partitions may hold."""
        wanted = np.array(terms, np.int32)
        with self.lock:
            parts: list[Segment | Head] = [*self.segments, self.head]
        found = np.zeros(len(wanted), bool)
        for part in parts:
            if part.size:
                found |= part.present(wanted, where)
        return set(wanted[found].tolist())

    def sources(self) -> list[Source]:
        """Return what a reader searches, as it is now; call it under the lock."""
        parts: list[Segment | Head] = [*self.segments, self.head]
        version = self.version
        return [Source(part, version) for part in parts if part.count]

    def snapshot(
        self, terms: Sequence[int], where: Partition
    ) -> tuple[list[Source], int, float, list[int]]:
        """Return the sources with postings, and N, total length and df of what is searched."""
        with self.lock:
            self._grow()
            sources = self.sources()
            count, total, df = (
                self.live,
                self.total,
                self.df.take(np.array(terms, np.int32)).tolist(),
            )
        if not any(where):
            for source in sources:
                source.gather(terms)
            return sources, count, total, df
        count, total, df = 0, 0.0, [0] * len(terms)
        for source in sources:
            if not source.holds(where):
                source.leave_out(len(terms))
                continue
            source.gather(terms)
            source.restrict(where)
            own_count, own_total, own_df = source.statistics()
            count, total = count + own_count, total + own_total
            df = list(map(add, df, own_df))
        return sources, count, total, df
