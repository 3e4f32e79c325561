# ruff: noqa: D102  (the protocol documents the methods)
"""The engines that are measured, behind one small interface: text in, ids and scores out."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from benchmarks.corpus import Record

Hits = list[tuple[str, float]]


class Engine(Protocol):
    """One engine on one folder; each import happens in the engine's own process."""

    incremental: bool
    persistent: bool

    def build(self, records: Sequence[Record]) -> None:
        """Index the records, from text to searchable."""

    def search(self, text: str, limit: int) -> Hits:
        """Return ids and scores."""

    def add(self, record: Record) -> None:
        """Add a record so that the next search sees it."""

    def remove(self, id: str) -> None:
        """Remove a record so that the next search does not see it."""

    def settle(self) -> None:
        """Let background work that goes on anyway come to its end; force nothing."""

    def save(self) -> None:
        """Write to the folder."""

    def open(self) -> None:
        """Open what the folder holds."""


class _Static:
    """What an engine lacks that only builds and searches."""

    incremental = False
    persistent = True

    def add(self, record: Record) -> None:
        raise NotImplementedError("this engine has no incremental add")

    def remove(self, id: str) -> None:
        raise NotImplementedError("this engine has no removal")

    def settle(self) -> None:
        """Nothing runs in the background."""


class Memsheaf(_Static):
    """`memsheaf.index`, with the tags as a field of their own."""

    incremental = True

    def __init__(self, folder: Path) -> None:
        from memsheaf.index import BM25Index, Document

        self._folder, self._document, self._class = folder / "index", Document, BM25Index
        self._index = BM25Index("english")

    def build(self, records: Sequence[Record]) -> None:
        make = self._document
        self._index.add_many(make(id, {"text": text, "tags": tags}) for id, text, tags in records)

    def search(self, text: str, limit: int) -> Hits:
        return [(hit.id, hit.score) for hit in self._index.search(text, limit)]

    def add(self, record: Record) -> None:
        self._index.add(record.id, {"text": record.text, "tags": record.tags})

    def remove(self, id: str) -> None:
        self._index.remove(id)

    def save(self) -> None:
        self._index.save(self._folder, sequence=1)

    def open(self) -> None:
        self._index = self._class.load(self._folder, analyzer="english")


class RankBM25(_Static):
    """rank-bm25's Okapi over the words of our own analyzer."""

    persistent = False

    def __init__(self, folder: Path) -> None:
        from rank_bm25 import BM25Okapi

        from memsheaf.index import get_analyzer, terms

        self._class, self._analyzer, self._terms = BM25Okapi, get_analyzer("english"), terms

    def build(self, records: Sequence[Record]) -> None:
        self._ids = [record.id for record in records]
        words = [self._terms(self._analyzer, f"{text} {tags}") for _, text, tags in records]
        self._index = self._class(words, k1=0.9, b=0.4)

    def search(self, text: str, limit: int) -> Hits:
        import numpy as np

        scores = self._index.get_scores(self._terms(self._analyzer, text))
        best = np.argpartition(scores, -limit)[-limit:] if limit < len(scores) else slice(None)
        found = [(self._ids[row], float(scores[row])) for row in np.arange(len(scores))[best]]
        return sorted((hit for hit in found if hit[1] > 0), key=lambda hit: -hit[1])

    def save(self) -> None:
        raise NotImplementedError("rank-bm25 has no files")

    def open(self) -> None:
        raise NotImplementedError("rank-bm25 has no files")


class BM25S(_Static):
    """bm25s with its own tokenizer and PyStemmer."""

    def __init__(self, folder: Path, backend: str = "numpy") -> None:
        self._bm25s = import_module("bm25s")
        self._stemmer = import_module("Stemmer").Stemmer("english")
        self._folder, self._backend = folder / "bm25s", backend

    def _tokens(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(
            texts, stopwords=None, stemmer=self._stemmer, show_progress=False
        )

    def build(self, records: Sequence[Record]) -> None:
        self._ids = [record.id for record in records]
        self._index = self._bm25s.BM25(k1=0.9, b=0.4, backend=self._backend)
        tokens = self._tokens([f"{text} {tags}" for _, text, tags in records])
        self._index.index(tokens, show_progress=False)

    def search(self, text: str, limit: int) -> Hits:
        rows, scores = self._index.retrieve(
            self._tokens([text]), k=min(limit, len(self._ids)), show_progress=False
        )
        pairs = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._ids[row], score) for row, score in pairs if score > 0]

    def save(self) -> None:
        self._index.save(str(self._folder), show_progress=False)
        (self._folder / "ids.json").write_text(json.dumps(self._ids))

    def open(self) -> None:
        self._index = self._bm25s.BM25.load(str(self._folder), mmap=True, show_progress=False)
        self._ids = json.loads((self._folder / "ids.json").read_text())


def bm25s_numba(folder: Path) -> Engine:
    """Return bm25s with its compiled back end."""
    return BM25S(folder, backend="numba")


class Tantivy(_Static):
    """tantivy on disk: stemmed text and tags, frequencies without positions."""

    incremental = True

    def __init__(self, folder: Path, count: bool = True) -> None:
        self._tantivy, self._folder = import_module("tantivy"), folder / "tantivy"
        self._count = count
        builder = self._tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        for field in ("text", "tags"):
            builder.add_text_field(field, tokenizer_name="en_stem", index_option="freq")
        self._schema = builder.build()
        self._writer: Any = None

    def _document(self, record: Record) -> Any:
        return self._tantivy.Document(id=record.id, text=record.text, tags=record.tags)

    def _commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def build(self, records: Sequence[Record]) -> None:
        self._folder.mkdir(parents=True)
        self._index = self._tantivy.Index(self._schema, path=str(self._folder))
        self._writer = self._index.writer(512_000_000, 2)
        for record in records:
            self._writer.add_document(self._document(record))
        self._commit()

    def search(self, text: str, limit: int) -> Hits:
        query = self._index.parse_query(text, ["text", "tags"])
        found = self._searcher.search(query, limit, self._count).hits
        return [(self._searcher.doc(address)["id"][0], score) for score, address in found]

    def add(self, record: Record) -> None:
        self._writer.add_document(self._document(record))
        self._commit()

    def remove(self, id: str) -> None:
        self._writer.delete_documents("id", id)
        self._commit()

    def settle(self) -> None:
        self._writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def save(self) -> None:
        """Every commit is on disk."""

    def open(self) -> None:
        self._index = self._tantivy.Index.open(str(self._folder))
        self._searcher = self._index.searcher()


def tantivy_uncounted(folder: Path) -> Engine:
    """Return tantivy without its count of all matches, which lets it skip postings."""
    return Tantivy(folder, count=False)


class FTS5(_Static):
    """SQLite FTS5 on disk, porter over unicode61, `ORDER BY rank`."""

    incremental = True

    def __init__(self, folder: Path) -> None:
        self._path = folder / "fts5.db"

    def build(self, records: Sequence[Record]) -> None:
        self.open()
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(
            "CREATE VIRTUAL TABLE t USING "
            "fts5(id UNINDEXED, text, tags, tokenize='porter unicode61')"
        )
        self._database.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, row INTEGER) WITHOUT ROWID")
        with self._database:
            self._database.executemany("INSERT INTO t VALUES (?, ?, ?)", records)
            self._database.execute("INSERT INTO rows SELECT id, rowid FROM t")

    def search(self, text: str, limit: int) -> Hits:
        words = " OR ".join(f'"{word}"' for word in text.split())
        rows = self._database.execute(
            "SELECT id, -rank FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (words, limit)
        )
        return rows.fetchall()

    def add(self, record: Record) -> None:
        with self._database:
            row = self._database.execute("INSERT INTO t VALUES (?, ?, ?)", record).lastrowid
            self._database.execute("INSERT INTO rows VALUES (?, ?)", (record.id, row))

    def remove(self, id: str) -> None:
        with self._database:
            self._database.execute(
                "DELETE FROM t WHERE rowid = (SELECT row FROM rows WHERE id = ?)", (id,)
            )

    def save(self) -> None:
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def open(self) -> None:
        self._database = sqlite3.connect(self._path)


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "memsheaf": Memsheaf,
    "rank-bm25": RankBM25,
    "bm25s": BM25S,
    "bm25s-numba": bm25s_numba,
    "tantivy": Tantivy,
    "tantivy-uncounted": tantivy_uncounted,
    "fts5": FTS5,
}
