"""BM25 over documents that come and go."""

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np

from .analysis import Analyzer, TextAnalyzer, get_analyzer
from .ascii_words import AsciiWords
from .batch import Batch, Columns, analyze, take_apart
from .documents import Document, IndexHit, Partition, fill
from .filters import Allow, allowed
from .head import DOCUMENTS, LIMIT
from .matches import Matches
from .queries import Query, prepare
from .search import rate, top
from .segment import build
from .sources import Source
from .storage import read, write
from .store import Store

_CHUNK = 40_000
_FEW = 1_024
"""Allowed documents up to which all are scored."""
_FAN_IN = 64
"""Segments of a bulk before they are merged."""


class BM25Index:
    """An incremental BM25 index: exact, live, safe for threads.

    A text's score is the sum over the query's terms of idf tf (k1 + 1) / (tf + k1 (1 - b + b
    length / mean length)), times the document's weight; idf = ln(1 + (N - df + ½) / (df + ½)).
    Weighted fields add to tf and length by their weight (Robertson, Zaragoza and Taylor 2004).

    Args:
        analyzer: name of a registered analyzer, or one.
        k1: how slowly repeated terms saturate.
        b: how much long documents are held back, in [0, 1].
        field_weights: weight by field name; 1 for all others.
        partition_fields: number of names in a partition.

    >>> index = BM25Index("plain")
    >>> index.add("a", "the quick brown fox")
    >>> [hit.id for hit in index.search("fox")]
    ['a']
    """

    def __init__(
        self,
        analyzer: str | Analyzer = "english",
        *,
        k1: float = 0.9,
        b: float = 0.4,
        field_weights: Mapping[str, float] | None = None,
        partition_fields: int = 4,
    ) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise ValueError(f"k1 must be 0 or more and b within [0, 1], not {k1} and {b}")
        self.analyzer = get_analyzer(analyzer) if isinstance(analyzer, str) else analyzer
        self.k1, self.b = k1, b
        self.field_weights = dict(field_weights or {})
        if any(not 0 < w < np.inf for w in self.field_weights.values()):
            raise ValueError("field weights must be above 0")
        self.partition_fields = partition_fields
        self.sequence = 0
        self._writing = threading.RLock()
        self._store = Store(self.analyzer.expand, partition_fields)

    def __len__(self) -> int:
        return self._store.live

    def __contains__(self, id: object) -> bool:
        with self._store.lock:
            return isinstance(id, str) and self._store.locate(id) is not None

    def ids(self) -> Iterator[str]:
        """Return the ids of all documents, oldest first."""
        with self._store.lock:
            sources = self._store.sources()
        rows: list[tuple[int, str]] = []
        for source in sources:
            docs = source.kept()
            orders = source.part.insertion()[docs].tolist()
            rows.extend(zip(orders, (source.part.ids[d] for d in docs.tolist()), strict=True))
        return iter([id for _, id in sorted(rows)])

    def add(
        self,
        id: str,
        fields: Mapping[str, str] | str,
        *,
        partition: Partition = (),
        weight: float = 1.0,
    ) -> None:
        """Add or replace a document; the next search sees it."""
        document = Document(id, fields, partition, weight)
        batch = self._analyze(take_apart([document], self.partition_fields))
        with self._writing:
            self._store.add(batch)

    def add_many(self, documents: Iterable[Document]) -> None:
        """Add or replace many documents; each chunk of some thousands becomes visible at once."""
        remaining = iter(documents)
        merging, words = False, None
        while columns := take_apart(islice(remaining, _CHUNK), self.partition_fields):
            if len(columns) >= DOCUMENTS and type(self.analyzer) is TextAnalyzer:
                words = words or AsciiWords(self._store.vocabulary, self.analyzer.tokenize)
            batch = self._analyze(columns, words)
            if len(batch) < DOCUMENTS and len(batch.tokens) < LIMIT:
                with self._writing:
                    self._store.add(batch)
                continue
            segment = build(batch, np.arange(len(batch)))
            with self._writing:
                self._store.append(segment)
            merging = True
            if len(self._store.segments) > _FAN_IN:
                self._merge()
        if merging:
            self._merge()

    def _merge(self) -> None:
        """Merge what is due, giving way to other writers."""
        merging = True
        while merging:
            with self._writing:
                merging = self._store.step()
            time.sleep(0)  # else who waits for the lock would hardly get it

    def _analyze(self, columns: Columns, words: AsciiWords | None = None) -> Batch:
        vocabulary, tokenize = self._store.vocabulary, self.analyzer.tokenize
        number = words.number if words else lambda texts: vocabulary.number(map(tokenize, texts))
        return analyze(columns, number, self.field_weights)

    def remove(self, id: str) -> bool:
        """Remove a document; False if there was none."""
        with self._writing:
            return self._store.remove(id)

    def compact(self) -> None:
        """Drop what removed documents left behind; the next save writes nothing of them."""
        with self._writing:
            self._store.compact()

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        where: Partition | None = None,
        allow: Allow | None = None,
        k1: float | None = None,
        b: float | None = None,
        fuzzy: bool = False,
        prefix: bool = False,
        phrase: float = 0.0,
    ) -> list[IndexHit]:
        """Return the best documents, best first; ties by id.

        Args:
            text: any string; its terms are alternatives.
            limit: how many documents at most.
            where: names that a document's partition must have, None matches anything. Statistics
                come from the selected partitions alone.
            allow: ids that may be returned, a mask with an entry per document in the order of
                `ids()`, or a test on an id; statistics are not changed by it.
            k1: instead of the index's own.
            b: instead of the index's own.
            fuzzy: let a word of which no document has any part stand for similar ones.
            prefix: let words also stand for longer ones that begin with them.
            phrase: largest share that a document gains for holding the query's words in sequence.
        """
        every, query = self._prepare(text, where, k1, b, fuzzy, prefix)
        sources = [source for source in every if source.span]
        if limit <= 0 or not query.terms or not sources:
            return []
        weighted = self._store.weighted
        if allow is None or callable(allow):
            best, score, share = top(sources, query, limit, weighted, phrase, allow)
        else:
            chosen = zip(every, allowed(every, allow), strict=True)
            best = [(source, docs) for source, docs in chosen if len(docs)]
            if sum(len(docs) for _, docs in best) <= _FEW:
                score, share = rate(best, query, weighted)
            else:
                for source, docs in best:
                    source.keep(docs)
                sources = [source for source, _ in best]
                best, score, share = top(sources, query, limit, weighted, phrase)
        if phrase and best:
            score *= 1 + phrase * np.concatenate([s.adjacent(d, query.sequence) for s, d in best])
        values = score.tolist()
        least = sorted(values)[-limit] if limit < len(values) else 0.0
        places = [(source.part.ids, doc) for source, docs in best for doc in docs.tolist()]
        rows = [
            (-value, ids[doc], part)
            for value, part, (ids, doc) in zip(values, share.tolist(), places, strict=True)
            if value >= least and value > 0
        ]
        rows.sort()
        return [IndexHit(id, -value, min(1.0, part)) for value, id, part in rows[:limit]]

    def scores(
        self,
        text: str,
        *,
        where: Partition | None = None,
        allow: Allow | None = None,
        k1: float | None = None,
        b: float | None = None,
        fuzzy: bool = False,
        prefix: bool = False,
    ) -> Matches:
        """Score every matching document of the selected partitions, see `search`."""
        sources, query = self._prepare(text, where, k1, b, fuzzy, prefix)
        if allow is not None:
            for source, docs in zip(sources, allowed(sources, allow), strict=True):
                source.keep(docs)
        return Matches([source for source in sources if source.span], query)

    def _prepare(
        self,
        text: str,
        where: Partition | None,
        k1: float | None,
        b: float | None,
        fuzzy: bool,
        prefix: bool,
    ) -> tuple[list[Source], Query]:
        """Take a snapshot and turn the text into numbered terms with their statistics."""
        k1, b = self.k1 if k1 is None else k1, self.b if b is None else b
        if k1 < 0 or not 0 <= b <= 1:
            raise ValueError(f"k1 must be 0 or more and b within [0, 1], not {k1} and {b}")
        wanted = fill(where or (), self.partition_fields)
        return prepare(self._store, self.analyzer, text, wanted, k1, b, fuzzy, prefix)

    def save(self, path: str | os.PathLike[str], *, sequence: int = 0) -> None:
        """Save the index in a folder of its own; parts that are there already are kept.

        Args:
            path: the folder, made if absent.
            sequence: number of the last change of the source that the index contains.
        """
        with self._writing:
            self._store.settle()
            settings = {
                "analyzer": self.analyzer.name,
                "field_weights": self.field_weights,
                "partition_fields": self.partition_fields,
            }
            write(path, self._store, settings, sequence)
            self.sequence = sequence

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        analyzer: str | Analyzer = "english",
        k1: float = 0.9,
        b: float = 0.4,
    ) -> "BM25Index":
        """Map a saved index; its `sequence` says what of the source it contains.

        Arrays are checked when they are first read, so that opening is quick: any later call raises
        SnapshotError where one is damaged, unless `verify` checked them all before.

        Raises:
            SnapshotError: there is none, or it is torn, foreign or of another analyzer.
        """
        own = get_analyzer(analyzer) if isinstance(analyzer, str) else analyzer
        settings, sequence, store = read(path, own)
        index = cls(own, k1=k1, b=b, **settings)
        index._store, index.sequence = store, sequence
        return index

    def verify(self) -> None:
        """Check all that was mapped from files, about 2 GB a second.

        Raises:
            SnapshotError: something is damaged; rebuild the index.
        """
        with self._writing:
            self._store.verify()
