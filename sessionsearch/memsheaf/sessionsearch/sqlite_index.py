"""The `sqlite` index: FTS5 in the log's own file, for those who want one file.

FTS5 gets the terms of our analyzer, each as one token, so that it finds what the default index
finds; any string is a valid query, as no raw text reaches MATCH. Scope, conversation, role and type
lie beside them as tokens too (a join on the owner was measured 30 times slower).
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from memsheaf.index import content_words, get_analyzer, terms
from memsheaf.index.impacts import inverse_frequency

from .changes import Change, Changes
from .content import content_of, same_text
from .indexes import Candidate, Counts, IndexDamaged, ItemQuery
from .log import ConversationLog
from .log_rows import item_from
from .log_schema import ITEM_FIELDS_AT, drop_words
from .ranking import SessionRanking

__all__ = ["SqliteIndex"]

_log = logging.getLogger(__name__)
_ANALYZER = get_analyzer("english")
_TOKEN = re.compile(r"[a-z0-9]+")
_MOST_TERMS = 64
_SCOPE = ("user_id", "agent_id", "session_id", "namespace")

_CREATE = (
    """
    CREATE VIRTUAL TABLE IF NOT EXISTS session_words
    USING fts5 (terms, marks, tokenize = 'ascii')
    """,
    """
    CREATE TABLE IF NOT EXISTS session_words_state (
        one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL, mark TEXT NOT NULL
    ) STRICT
    """,
)
_TABLES = """
    SELECT count(*) FROM sqlite_master WHERE name IN ('session_words', 'session_words_state')
"""
_STATE = "SELECT sequence, mark FROM session_words_state"
_KEEP = "INSERT OR REPLACE INTO session_words_state (one, sequence, mark) VALUES (1, ?, ?)"
_REMOVE = """
    DELETE FROM session_words
    WHERE rowid = (SELECT position FROM items WHERE conversation = ? AND seq = ?)
"""
_KNOWN = """
    SELECT 1 FROM session_words
    WHERE rowid = (SELECT position FROM items WHERE conversation = ? AND seq = ?)
"""
_ADD = """
    INSERT INTO session_words (rowid, terms, marks)
    SELECT position, ?, ? FROM items WHERE conversation = ? AND seq = ?
"""
_FILTERED = """
    session_words MATCH :match
    AND (:since IS NULL OR items.created >= :since)
    AND (:until IS NULL OR items.created <= :until)
    AND (:project IS NULL OR items.conversation IN (
        SELECT conversations.row FROM conversations
        JOIN notes ON notes.position = conversations.note
        WHERE NOT conversations.erased AND (
            json_extract(notes.metadata, '$.project') = :project
            OR substr(json_extract(notes.metadata, '$.project'), 1, length(:below)) = :below)))
"""
_JOINED = "session_words JOIN items ON items.position = session_words.rowid"
_BEST = f"""
    SELECT items.position, bm25(session_words, 1.0, 0.0) AS worse FROM {_JOINED}
    WHERE {_FILTERED} ORDER BY worse, items.position LIMIT :limit
"""
_EVERY = f"SELECT items.position, items.created FROM {_JOINED} WHERE {_FILTERED}"
_COUNT = f"SELECT count(*) FROM {_JOINED} WHERE {_FILTERED}"
_HOLDERS = "SELECT rowid FROM session_words WHERE session_words MATCH ?"
_AMONG = f"{_HOLDERS} AND rowid IN (SELECT value FROM json_each(?))"
_FREQUENCY = "SELECT count(*) FROM session_words WHERE session_words MATCH ?"
_CONVERSATIONS = f"""
    SELECT count(DISTINCT items.conversation) FROM {_JOINED} WHERE session_words MATCH ?
"""


class SqliteIndex:
    """An index of a log in the log's own file; BM25 as FTS5 has it, of single items.

    Args:
        log: What is indexed.
        ranking: Not used: FTS5 has its own.
    """

    name = "sqlite"

    def __init__(self, log: ConversationLog, ranking: SessionRanking | None = None) -> None:
        self._log = log
        self.rebuilt: str | None = None
        with log.file.writing() as connection:
            whole = connection.execute(_TABLES).fetchone()[0] != 1
            for statement in _CREATE if whole else ():
                connection.execute(statement)
            found = connection.execute(_STATE).fetchone() if whole else None
        if not whole:
            self.reset("one of its tables is gone")
        elif found is not None and found[1] != log.mark(found[0]):
            self.reset("it was made of another log, or of one that went on")

    @property
    def sequence(self) -> int:
        """The number of the latest change of the log that it contains; 0 where it was dropped."""
        with self._log.file.reading() as connection:
            try:
                found = connection.execute(_STATE).fetchone()
            except sqlite3.OperationalError:  # an erasure dropped the tables
                return 0
        return 0 if found is None else int(found[0])

    def reset(self, reason: str) -> None:
        """Begin anew."""
        _log.warning("%s: the index of sessions is rebuilt: %s", self._log.path, reason)
        self.rebuilt = reason
        with self._log.file.writing() as connection:
            drop_words(connection)
            for statement in _CREATE:
                connection.execute(statement)

    def apply(self, changes: Changes) -> int:
        """Take in a part of the log's feed, all or nothing; doing it twice changes nothing."""
        mark = self._log.mark(changes.sequence) or ""
        added = 0
        with self._using(writing=True) as connection:
            for statement in _CREATE:
                connection.execute(statement)
            for change in changes.changes:
                connection.executemany(_REMOVE, ((change.row, seq) for seq in change.removed))
                added += _add(connection, change)
            connection.execute(_KEEP, (changes.sequence, mark))
        return added

    def search(self, query: ItemQuery, limit: int) -> list[Candidate]:
        """The best items by FTS5's BM25, all filters applied before the limit."""
        asked = _asked(query.text)
        if not asked:
            return []
        with self._using(writing=False) as connection:
            match = _match(query, " OR ".join(_term(token) for token in asked))
            values = _values(query) | {"match": match, "limit": limit}
            if query.sort == "relevance":
                ranked = connection.execute(_BEST, values).fetchall()
                places = [place for place, _ in ranked]
                shares = _shares(connection, query, asked, places)
                scores = [-worse for _, worse in ranked]
            else:
                places, shares = _by_time(connection, query, asked, values, limit)
                scores = [shares[place] for place in places]
            return [
                _candidate(connection, place, score, shares[place])
                for place, score in zip(places, scores, strict=True)
            ]

    def counts(self, query: ItemQuery) -> Counts:
        """What the query looked at."""
        asked = _asked(query.text)
        anywhere = ItemQuery(query.text, query.scope)
        with self._using(writing=False) as connection:
            every = _match(anywhere, "")
            held = connection.execute(_FREQUENCY, (every,)).fetchone()[0]
            many = connection.execute(_CONVERSATIONS, (every,)).fetchone()[0]
            words = " OR ".join(_term(token) for token in asked)
            removed: dict[str, int] = {}
            fields: dict[str, Any] = {}
            left = matched = _count(connection, anywhere, words)
            for name, field in _FILTERS:
                value = getattr(query, field)
                if value is not None:
                    fields[field] = value
                    now = _count(connection, ItemQuery(query.text, query.scope, **fields), words)
                    removed[name] = left - now
                    left = now
        return Counts(many, held, matched, removed)

    def save(self) -> None:
        """Nothing: it is kept with each change."""

    def close(self) -> None:
        """Nothing: the log has the file."""

    @contextmanager
    def _using(self, *, writing: bool) -> Iterator[sqlite3.Connection]:
        """A transaction whose error is `IndexDamaged` where our tables are."""
        opened = self._log.file.writing() if writing else self._log.file.reading()
        with opened as connection:
            try:
                yield connection
            except sqlite3.DatabaseError as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
                    raise IndexDamaged(f"SQLite code {code} in the tables of words") from error
                raise


_FILTERS = (
    ("conversation", "conversations"),
    ("project", "project"),
    ("roles", "roles"),
    ("types", "types"),
    ("since", "since"),
    ("until", "until"),
)


def _add(connection: sqlite3.Connection, change: Change) -> int:
    added = 0
    owner = [
        _hashed("s", f"{name}={value}")
        for name, value in zip(_SCOPE, change.conversation.scope.key(), strict=True)
        if value is not None
    ]
    for item in change.items:
        text = content_of(item)
        place = change.row, item.seq
        if text.strip() and connection.execute(_KNOWN, place).fetchone() is None:
            words = " ".join(_token(term) for term in terms(_ANALYZER, text))
            marks = [*owner, "every", f"c{change.row}", _hashed("t", item.type)]
            if item.role is not None:
                marks.append(_hashed("r", item.role))
            connection.execute(_ADD, (words, " ".join(marks), *place))
            added += 1
    return added


def _asked(text: str) -> list[str]:
    """The distinct tokens of a query."""
    words = (_token(term) for term in terms(_ANALYZER, content_words(text)))
    return list(dict.fromkeys(words))[:_MOST_TERMS]


def _match(query: ItemQuery, words: str) -> str:
    """An expression of constants and of tokens that we made."""
    parts = [f"({words})"] if words else []
    groups: list[Iterable[str]] = [
        [_hashed("s", f"{name}={value}")]
        for name, value in zip(_SCOPE, query.scope.key(), strict=True)
        if value is not None
    ]
    if not groups:
        groups.append(["every" if query.scope.is_everyone else "nobody"])
    if query.conversations is not None:
        groups.append([f"c{number}" for number in query.conversations] or ["nobody"])
    if query.roles is not None:
        groups.append([_hashed("r", role) for role in query.roles] or ["nobody"])
    if query.types is not None:
        groups.append([_hashed("t", name) for name in query.types] or ["nobody"])
    for group in groups:
        parts.append("(" + " OR ".join(f'marks : "{mark}"' for mark in group) + ")")
    return " AND ".join(parts)


def _term(token: str) -> str:
    return f'terms : "{token}"'


def _values(query: ItemQuery) -> dict[str, Any]:
    below = None if query.project is None else f"{query.project.rstrip('/')}/"
    return {
        "since": query.since,
        "until": query.until,
        "project": query.project,
        "below": below,
    }


def _count(connection: sqlite3.Connection, query: ItemQuery, words: str) -> int:
    if not words:
        return 0
    values = _values(query) | {"match": _match(query, words)}
    return int(connection.execute(_COUNT, values).fetchone()[0])


def _idfs(connection: sqlite3.Connection, query: ItemQuery, asked: Sequence[str]) -> list[float]:
    """The idf of each token, by the statistics of the scope."""
    scope = ItemQuery("", query.scope)
    size = connection.execute(_FREQUENCY, (_match(scope, ""),)).fetchone()[0]
    counts = [
        connection.execute(_FREQUENCY, (_match(scope, _term(token)),)).fetchone()[0]
        for token in asked
    ]
    return [inverse_frequency(size, count) for count in counts]


def _shares(
    connection: sqlite3.Connection, query: ItemQuery, asked: Sequence[str], places: Sequence[int]
) -> dict[int, float]:
    """The share of the query's idf that each of the rows holds."""
    idfs = _idfs(connection, query, asked)
    whole = sum(idfs)
    shares = dict.fromkeys(places, 0.0)
    wanted = json.dumps(list(places))
    for token, idf in zip(asked, idfs, strict=True):
        for (place,) in connection.execute(_AMONG, (_term(token), wanted)):
            shares[place] = min(1.0, shares[place] + idf / whole)
    return shares


def _by_time(
    connection: sqlite3.Connection,
    query: ItemQuery,
    asked: Sequence[str],
    values: dict[str, Any],
    limit: int,
) -> tuple[list[int], dict[int, float]]:
    """The newest or oldest rows among those that hold half as much as the best."""
    times = dict(connection.execute(_EVERY, values).fetchall())
    shares = _shares(connection, query, asked, list(times))
    least = max(shares.values(), default=0.0) / 2
    well = [place for place, share in shares.items() if share >= least]
    newest = query.sort == "newest"
    well.sort(key=lambda place: (times[place], place), reverse=newest)
    return well[:limit], shares


def _candidate(connection: sqlite3.Connection, place: int, score: float, share: float) -> Candidate:
    row, *columns = connection.execute(ITEM_FIELDS_AT, (place,)).fetchone()
    item = item_from("", columns)
    return Candidate(row, item.seq, score, share, same_text(item), place)


def _token(term: str) -> str:
    """A term as one token of FTS5."""
    return f"w{term}" if _TOKEN.fullmatch(term) else _hashed("x", term)


def _hashed(kind: str, text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
    return f"{kind}{digest}"
