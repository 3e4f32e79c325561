"""A store in one SQLite file, searched with FTS5."""

from __future__ import annotations

import builtins
import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memsheaf.stack import (
    SCOPE_FIELDS,
    Filter,
    Hit,
    IdUnavailable,
    InvalidQuery,
    MemoryRecord,
    Order,
    ProviderContext,
    ProviderFactory,
    Scope,
    StoreCorrupt,
    hookimpl,
    read_cursor,
)
from memsheaf.stack.text import clean

from .sqlite_file import Database
from .sqlite_query import indexed, owned_by, query_units
from .sqlite_schema import COLUMNS, owner_condition

__all__ = ["FACTORY", "SqliteOptions", "SqliteStore"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARGIN = 50  # rows beyond the limit that are asked for at first, as some may be refused

_FILTERED = """
    (:kinds IS NULL OR records.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:since IS NULL OR records.created >= :since)
    AND (:until IS NULL OR records.created <= :until)
    AND (:tags_any IS NULL OR EXISTS (
        SELECT 1 FROM json_each(records.body, '$.tags')
        WHERE value IN (SELECT value FROM json_each(:tags_any))))
    AND (:tags_all IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:tags_all) AS wanted WHERE wanted.value NOT IN (
            SELECT value FROM json_each(records.body, '$.tags'))))
"""
_RANK = "bm25(words, 1.0, 1.0, 0.5, 0.0)"  # content, tags, terms; the scope only selects
_SEARCH = f"""
    SELECT rowid, {_RANK} AS worse FROM words WHERE words MATCH :match
    ORDER BY worse, rowid DESC LIMIT :asked
"""
_SEARCH_FILTERED = f"""
    SELECT words.rowid, {_RANK} AS worse FROM words JOIN records ON records.row = words.rowid
    WHERE words MATCH :match AND {_FILTERED}
    ORDER BY worse, words.rowid DESC LIMIT :asked
"""
_MATCHED = """
    SELECT count(*), json_group_array(rowid) FILTER (
        WHERE rowid IN (SELECT value FROM json_each(:rows)))
    FROM words WHERE words MATCH :match
"""
_ORDERS = {
    "recent": ("TRUE", "records.updated DESC, records.id"),
    "newest": (
        "(:at IS NULL OR (records.created, records.id) < (:at, :at_id))",
        "records.created DESC, records.id DESC",
    ),
    "oldest": (
        "(:at IS NULL OR (records.created, records.id) > (:at, :at_id))",
        "records.created, records.id",
    ),
}
_UPSERT = """
    INSERT INTO records (row, id, user_id, agent_id, session_id, namespace, kind, created,
                         updated, expires, accessed, access_count, body)
    VALUES (:row, :id, :user_id, :agent_id, :session_id, :namespace, :kind, :created,
            :updated, :expires, :accessed, :access_count, :body)
    ON CONFLICT (row) DO UPDATE SET kind = excluded.kind, created = excluded.created,
        updated = excluded.updated, expires = excluded.expires, accessed = excluded.accessed,
        access_count = excluded.access_count, body = excluded.body
"""


class SqliteOptions(BaseModel):
    """Settings of a SQLite store in a configuration.

    Attributes:
        path: The file; ``memory.db`` in the provider's folder where not given.
        timeout: Seconds to wait for another process that writes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None
    timeout: float = Field(default=5.0, gt=0, allow_inf_nan=False)


class SqliteStore:
    """A memory store in one SQLite file; threads and processes may share it.

    Args:
        path: The file, made where it is absent; None keeps everything in memory.
        timeout: Seconds to wait for another process that writes.

    Raises:
        StoreCorrupt: The file is damaged or of something else.
        ProviderUnavailable: It cannot be opened, or is of a later format.

    >>> store = SqliteStore()
    >>> mira = Scope(user_id="mira")
    >>> store.store(MemoryRecord(content="Mira plays the cello", scope=mira))
    >>> [hit.record.content for hit in store.search("cello", mira, 10, None)]
    ['Mira plays the cello']
    >>> store.close()
    """

    name = "sqlite"
    scope_fields = SCOPE_FIELDS
    filters_natively = True

    def __init__(self, path: str | Path | None = None, *, timeout: float = 5.0) -> None:
        self._database = Database(Path(path) if path is not None else None, timeout)

    @hookimpl
    def search(
        self, text: str, scope: Scope, limit: int, filters: Filter | None
    ) -> builtins.list[Hit]:
        """Hits by BM25; the score is its negation, the relevance the share of idf that matches."""
        scope.require_readable()
        if limit < 1:
            return []
        if not text.strip():
            records = self._ordered("recent", scope, filters, limit, None)
            return [Hit(record, 0.0, 0.0) for record in records]
        units = query_units(text)
        if not units:
            return []
        with self._database.reading() as connection:
            found = _best(connection, owned_by(scope, " OR ".join(units)), scope, filters, limit)
            shares = _shares(connection, units, scope, [row for row, _, _ in found])
        return [Hit(record, -worse, shares[row]) for row, worse, record in found]

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Keep a record; a copy older than what is held is ignored."""
        record.scope.require_writable()
        with self._database.writing() as connection:
            if self._keep(connection, record):
                self._erase(connection)

    @hookimpl
    def store_many(self, records: Sequence[MemoryRecord]) -> builtins.list[Exception | None]:
        """Keep several records in one transaction; a refused one does not stop the others."""
        entries: builtins.list[Exception | None] = []
        replaced = False
        with self._database.writing() as connection:
            for record in records:
                try:
                    replaced |= self._keep(connection, record)
                    entries.append(None)
                except IdUnavailable as error:
                    entries.append(error)
            if replaced:
                self._erase(connection)
        return entries

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete a record; its text has left the files when this returns."""
        with self._database.writing() as connection:
            held = _held(connection, record_id, scope)
            if held is None:
                return False
            connection.execute("DELETE FROM words WHERE rowid = ?", (held[0],))
            connection.execute("DELETE FROM records WHERE row = ?", (held[0],))
            self._erase(connection)
        return True

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        """Change fields in one transaction."""
        fields = {name: value for name, value in changes.items() if name != "updated_at"}
        with self._database.writing() as connection:
            held = _held(connection, record_id, scope)
            if held is None:
                return False
            new = held[1].changed(fields, at=changes.get("updated_at"))
            if _replace(connection, *held, new):
                self._erase(connection)
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record, or None where the scope does not hold it."""
        with self._database.reading() as connection:
            held = _held(connection, record_id, scope)
        return None if held is None or held[1].is_expired() else held[1]

    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Order, filters: Filter | None
    ) -> builtins.list[MemoryRecord]:
        """Records by ``created_at`` and id, those after the cursor."""
        scope.require_readable()
        if order not in ("newest", "oldest"):
            raise InvalidQuery("order: use newest or oldest")
        place = read_cursor(after) if after is not None else None
        return self._ordered(order, scope, filters, limit, place) if limit > 0 else []

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one recall of each record in one write."""
        touched = 0
        with self._database.writing() as connection:
            for record_id in dict.fromkeys(record_ids):
                held = _held(connection, record_id, scope)
                if held is not None:
                    connection.execute(
                        "UPDATE records SET access_count = access_count + 1, "
                        "accessed = MAX(accessed, ?) WHERE row = ?",
                        (_micros(datetime.now(UTC)), held[0]),
                    )
                    touched += 1
        return touched

    @hookimpl
    def check(self) -> str:
        """Raise where the file cannot be read; tells how many records it holds."""
        with self._database.reading() as connection:
            count = connection.execute("SELECT count(*) FROM records").fetchone()[0]
            words = connection.execute("SELECT count(*) FROM words_docsize").fetchone()[0]
        if count != words:
            raise StoreCorrupt("the text index does not fit the records; restore a backup")
        return f"{count} records" + (", read-only" if self._database.read_only else "")

    @hookimpl
    def close(self) -> None:
        """Let go of the file; calling it again does nothing."""
        self._database.close()

    def _ordered(
        self,
        order: str,
        scope: Scope,
        filters: Filter | None,
        limit: int,
        after: tuple[datetime, str] | None,
    ) -> builtins.list[MemoryRecord]:
        place, by = _ORDERS[order]
        moment, record_id = after or (None, None)
        values = _values(filters) | scope.set_fields() | {"at": _micros(moment), "at_id": record_id}
        statement = (
            f"SELECT {COLUMNS} FROM records "
            f"WHERE {owner_condition(scope)} AND {place} AND {_FILTERED} ORDER BY {by}"
        )
        with self._database.reading() as connection:
            moment = datetime.now(UTC)
            read = map(_record, connection.execute(statement, values))
            return builtins.list(
                islice((r for r in read if _shown(r, scope, filters, moment)), limit)
            )

    def _keep(self, connection: sqlite3.Connection, record: MemoryRecord) -> bool:
        """Write a record; True where it replaced another text."""
        held = _held(connection, record.id, Scope.EVERYONE)
        if held is None:
            _index(connection, _write(connection, None, record), record)
            return False
        if held[1].scope != record.scope:
            raise IdUnavailable("this id cannot be used here; leave it out to get a fresh one")
        return held[1].updated_at <= record.updated_at and _replace(connection, *held, record)

    def _erase(self, connection: sqlite3.Connection) -> None:
        """Rewrite the text index without the deleted words, which it only marks as deleted."""
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._database.erase_on_commit()


def _best(
    connection: sqlite3.Connection,
    match: str,
    scope: Scope,
    filters: Filter | None,
    limit: int,
) -> builtins.list[tuple[int, float, MemoryRecord]]:
    """Row, rank and record of the best that scope and filter let by."""
    statement = _SEARCH if filters is None else _SEARCH_FILTERED
    asked = limit + _MARGIN
    while True:
        values = _values(filters) | {"match": match, "asked": asked}
        ranked = connection.execute(statement, values).fetchall()
        moment = datetime.now(UTC)
        read = ((row, worse, _by_row(connection, row)) for row, worse in ranked)
        found = list(islice((r for r in read if _shown(r[2], scope, filters, moment)), limit))
        if len(found) == limit or len(ranked) < asked:
            return found
        asked *= 8


def _shares(
    connection: sqlite3.Connection, units: Sequence[str], scope: Scope, rows: Sequence[int]
) -> dict[int, float]:
    """For each row the share of the query's idf that it matches, by the statistics of the scope.

    idf is ln(1 + (N - df + ½) / (df + ½)), as in BM25 (Robertson and Zaragoza 2009).
    """
    if not rows:
        return {}
    size = _count(connection, scope)
    matched: dict[int, float] = dict.fromkeys(rows, 0.0)
    whole = 0.0
    for unit in units:
        values = {"match": owned_by(scope, unit), "rows": json.dumps(rows)}
        frequency, holders = connection.execute(_MATCHED, values).fetchone()
        idf = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
        whole += idf
        for row in json.loads(holders):
            matched[row] += idf
    return {row: min(1.0, value / whole) for row, value in matched.items()}


def _count(connection: sqlite3.Connection, scope: Scope) -> int:
    if scope.is_everyone:
        row = connection.execute("SELECT count(*) FROM words_docsize").fetchone()
    else:
        match = owned_by(scope, "")
        row = connection.execute(
            "SELECT count(*) FROM words WHERE words MATCH ?", (match,)
        ).fetchone()
    return int(row[0])


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def _values(filters: Filter | None) -> dict[str, Any]:
    """The parameters of a filter."""
    given = filters or Filter()
    return {
        "kinds": json.dumps(given.kinds) if given.kinds else None,
        "tags_any": json.dumps(given.tags_any) if given.tags_any else None,
        "tags_all": json.dumps(given.tags_all) if given.tags_all else None,
        "since": _micros(given.since),
        "until": _micros(given.until),
    }


def _shown(record: MemoryRecord, scope: Scope, filters: Filter | None, moment: datetime) -> bool:
    return (
        scope.matches(record.scope)
        and not record.is_expired(moment)
        and (filters is None or filters.matches(record))
    )


def _held(
    connection: sqlite3.Connection, record_id: str, scope: Scope
) -> tuple[int, MemoryRecord] | None:
    """Row and record of an id that the scope may see."""
    found = connection.execute(
        f"SELECT {COLUMNS} FROM records WHERE id = ?", (clean(record_id),)
    ).fetchone()
    if found is None:
        return None
    record = _record(found)
    return (found[0], record) if scope.matches(record.scope) else None


def _by_row(connection: sqlite3.Connection, row: int) -> MemoryRecord:
    found = connection.execute(f"SELECT {COLUMNS} FROM records WHERE row = ?", (row,)).fetchone()
    if found is None:
        raise StoreCorrupt("the text index does not fit the records; restore a backup")
    return _record(found)


def _record(found: Sequence[Any]) -> MemoryRecord:
    """A record from `COLUMNS`; what `touch` counts lies beside the body."""
    record = MemoryRecord.from_json(found[1])
    touched = {
        "access_count": found[2],
        "last_accessed_at": _EPOCH + timedelta(microseconds=found[3]),
    }
    return record.model_copy(update=touched)


def _write(connection: sqlite3.Connection, row: int | None, record: MemoryRecord) -> int:
    owner = dict[str, Any](zip(SCOPE_FIELDS, record.scope.key(), strict=True))
    values = owner | {
        "row": row,
        "id": record.id,
        "kind": record.kind.value,
        "created": _micros(record.created_at),
        "updated": _micros(record.updated_at),
        "expires": _micros(record.expires_at),
        "accessed": _micros(record.last_accessed_at),
        "access_count": record.access_count,
        "body": record.to_json(),
    }
    added = connection.execute(_UPSERT, values).lastrowid
    return int(added or 0) if row is None else row


def _replace(
    connection: sqlite3.Connection, row: int, old: MemoryRecord, new: MemoryRecord
) -> bool:
    """Write a record over another; True where its text changed."""
    _write(connection, row, new)
    if (old.content, old.tags) == (new.content, new.tags):
        return old.metadata != new.metadata
    connection.execute("DELETE FROM words WHERE rowid = ?", (row,))
    _index(connection, row, new)
    return True


def _index(connection: sqlite3.Connection, row: int, record: MemoryRecord) -> None:
    connection.execute(
        "INSERT INTO words (rowid, content, tags, terms, scope) VALUES (?, ?, ?, ?, ?)",
        (row, *indexed(record)),
    )


def build(options: SqliteOptions, context: ProviderContext) -> SqliteStore:
    """The store of a configuration; a relative path starts at the provider's folder."""
    path = (options.path or Path("memory.db")).expanduser()
    if context.folder is not None:
        path = context.folder / path
    return SqliteStore(path, timeout=min(options.timeout, context.timeout))


FACTORY = ProviderFactory(build, SqliteOptions)
