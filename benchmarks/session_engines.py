# ruff: noqa: D102  (the protocol documents the methods)
"""The engines of the session benchmark, behind one small interface; each in its own process."""

import sqlite3
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from benchmarks.session_corpus import Turn

LIMIT = 10
BATCH = 500


class SessionEngine(Protocol):
    """Stores items and finds them; an answer is the text of the ten best."""

    def build(self, turns: Iterable[Turn]) -> None:
        """Store and index; all is on the disk and can be found at the end."""

    def search(self, text: str) -> list[str]:
        """Return the texts of the best items."""

    def append(self, number: int, text: str) -> None:
        """Store one more item; the next search finds it."""

    def close(self) -> None:
        """Close it."""


class Memsheaf:
    """`open_sessions` with its defaults: a log and the index beside it."""

    index: str | None = None

    def __init__(self, folder: Path) -> None:
        from memsheaf.sessionsearch import NewItem, open_sessions
        from memsheaf.stack import Scope

        self._item, self._scope = NewItem, Scope(user_id="bench")
        self._sessions = open_sessions(folder / "data" / "sessions", index=self.index)

    def build(self, turns: Iterable[Turn]) -> None:
        batch: list[Any] = []
        name = ""
        for turn in turns:
            if batch and (turn.conversation != name or len(batch) == BATCH):
                self._sessions.log.append(name, batch, self._scope)
                batch = []
            name = turn.conversation
            batch.append(self._item(turn.type, turn.text, role=turn.role))
        self._sessions.log.append(name, batch, self._scope)
        self._sessions.catch_up()
        self._sessions.save()

    def search(self, text: str) -> list[str]:
        return [hit.item.text for hit in self._sessions.search(text, LIMIT, scope=self._scope)]

    def append(self, number: int, text: str) -> None:
        self._sessions.log.append(f"new-{number % 5}", self._item("message", text), self._scope)

    def close(self) -> None:
        self._sessions.close()


class MemsheafSqlite(Memsheaf):
    """The same with the `sqlite` index."""

    index = "sqlite"


class Fts5:
    """SQLite's FTS5, one table; any word may match, ordered by its BM25."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "fts.db")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS items USING fts5("
            "text, conversation UNINDEXED, type UNINDEXED, role UNINDEXED, "
            "tokenize = 'porter unicode61')"
        )

    def build(self, turns: Iterable[Turn]) -> None:
        rows = iter(turns)
        statement = "INSERT INTO items (text, conversation, type, role) VALUES (?, ?, ?, ?)"
        while batch := list(islice(rows, 10_000)):
            with self._db:
                self._db.executemany(
                    statement, ((t.text, t.conversation, t.type, t.role) for t in batch)
                )

    def search(self, text: str) -> list[str]:
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in text.split())
        found = self._db.execute(
            "SELECT text FROM items WHERE items MATCH ? ORDER BY rank LIMIT ?", (match, LIMIT)
        )
        return [row[0] for row in found]

    def append(self, number: int, text: str) -> None:
        with self._db:
            self._db.execute(
                "INSERT INTO items (text, conversation, type, role) VALUES (?, ?, ?, ?)",
                (text, f"new-{number % 5}", "message", "user"),
            )

    def close(self) -> None:
        self._db.close()


class Tantivy:
    """tantivy-py with its English stemmer, the text stored."""

    def __init__(self, folder: Path) -> None:
        tantivy = import_module("tantivy")
        builder = tantivy.SchemaBuilder()
        for name in ("conversation", "type", "role"):
            builder.add_text_field(name, stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
        (folder / "tantivy").mkdir(exist_ok=True)
        self._document = tantivy.Document
        self._index = tantivy.Index(builder.build(), path=str(folder / "tantivy"))
        self._searcher = self._index.searcher()

    def build(self, turns: Iterable[Turn]) -> None:
        writer = self._index.writer(heap_size=256_000_000)
        for turn in turns:
            writer.add_document(self._document(**turn._asdict()))
        writer.commit()
        writer.wait_merging_threads()
        self._reload()

    def search(self, text: str) -> list[str]:
        query = self._index.parse_query(text, ["text"])
        hits = self._searcher.search(query, LIMIT).hits
        return [self._searcher.doc(address)["text"][0] for _, address in hits]

    def append(self, number: int, text: str) -> None:
        writer = self._index.writer(heap_size=32_000_000, num_threads=1)
        turn = Turn(f"new-{number % 5}", "message", "user", text)
        writer.add_document(self._document(**turn._asdict()))
        writer.commit()
        self._reload()

    def close(self) -> None:
        """Nothing is open."""

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()


ENGINES: dict[str, Callable[[Path], SessionEngine]] = {
    "memsheaf": Memsheaf,
    "memsheaf-sqlite": MemsheafSqlite,
    "fts5": Fts5,
    "tantivy": Tantivy,
}
DEFAULT = ("memsheaf", "fts5", "tantivy")
