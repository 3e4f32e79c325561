"""A store in one SQLite file, searched with FTS5."""

from __future__ import annotations

import builtins
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memsheaf.stack import (
    SCOPE_FIELDS,
    Filter,
    Hit,
    IdUnavailable,
    MemoryRecord,
    Order,
    ProviderContext,
    ProviderFactory,
    Scope,
    StoreCorrupt,
    hookimpl,
    lexical_relevance,
    read_cursor,
)

from .sqlite_query import indexed, match_expression
from .sqlite_schema import Database

__all__ = ["FACTORY", "SqliteOptions", "SqliteStore"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTENT, _TAGS, _TERMS, _SCOPE = 1.0, 1.0, 0.5, 0.0  # weights of bm25(); scope only selects

_COLUMNS = "records.row, records.body, records.access_count, records.accessed"
_OWNED = """
    (:user_id IS NULL OR records.user_id = :user_id)
    AND (:agent_id IS NULL OR records.agent_id = :agent_id)
    AND (:session_id IS NULL OR records.session_id = :session_id)
    AND (:namespace IS NULL OR records.namespace = :namespace)
"""
_FILTERED = """
    (records.expires IS NULL OR records.expires > :now)
    AND (:kinds IS NULL OR records.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:since IS NULL OR records.created >= :since)
    AND (:until IS NULL OR records.created <= :until)
"""
_SEARCH = f"""
    SELECT {_COLUMNS}, bm25(words, {_CONTENT}, {_TAGS}, {_TERMS}, {_SCOPE}) AS worse
    FROM words JOIN records ON records.row = words.rowid
    WHERE words MATCH :match AND {_OWNED} AND {_FILTERED}
    ORDER BY worse, records.updated DESC, records.id
"""
_RECENT = f"""
    SELECT {_COLUMNS}, 0.0 FROM records WHERE {_OWNED} AND {_FILTERED}
    ORDER BY MIN(records.updated, :now) DESC, records.id
"""
_LIST = {
    "newest": f"""
        SELECT {_COLUMNS}, 0.0 FROM records WHERE {_OWNED} AND {_FILTERED}
        AND (:at IS NULL OR (records.created, records.id) < (:at, :at_id))
        ORDER BY records.created DESC, records.id DESC
    """,
    "oldest": f"""
        SELECT {_COLUMNS}, 0.0 FROM records WHERE {_OWNED} AND {_FILTERED}
        AND (:at IS NULL OR (records.created, records.id) > (:at, :at_id))
        ORDER BY records.created, records.id
    """,
}
_UPSERT = """
    INSERT INTO records (row, id, user_id, agent_id, session_id, namespace, kind, created,
                         updated, expires, accessed, access_count, body)
    VALUES (:row, :id, :user_id, :agent_id, :session_id, :namespace, :kind, :created,
            :updated, :expires, :accessed, :access_count, :body)
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, created = excluded.created,
        updated = excluded.updated, expires = excluded.expires, accessed = excluded.accessed,
        access_count = excluded.access_count, body = excluded.body
"""
_TOUCH = f"""
    UPDATE records SET access_count = access_count + 1, accessed = MAX(accessed, :now)
    WHERE id IN (SELECT value FROM json_each(:ids)) AND {_OWNED} AND {_FILTERED}
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
        StoreCorrupt: The file is damaged, of something else, or of a later format.
        ProviderUnavailable: It cannot be opened.

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
        self._left_behind = False

    @hookimpl
    def search(
        self, text: str, scope: Scope, limit: int, filters: Filter | None
    ) -> builtins.list[Hit]:
        """Hits by BM25; the score is its negation, the relevance the share of idf that matches."""
        if limit < 1:
            return []
        values = _values(scope, filters)
        if not text.strip():
            with self._database.reading() as connection:
                found = _take(connection.execute(_RECENT, values), scope, filters, limit)
                return [Hit(record, 0.0, 0.0) for record, _ in found]
        values["match"] = match_expression(text, scope)
        if values["match"] is None:
            return []
        with self._database.reading() as connection:
            found = _take(connection.execute(_SEARCH, values), scope, filters, limit)
        records = [record for record, _ in found]
        relevance = lexical_relevance(text, records)
        return [
            Hit(record, -worse, share)
            for (record, worse), share in zip(found, relevance, strict=True)
        ]

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Keep a record; a copy older than what is held is ignored."""
        with self._database.writing() as connection:
            self._keep(connection, record)

    @hookimpl
    def store_many(self, records: Sequence[MemoryRecord]) -> builtins.list[Exception | None]:
        """Keep several records in one transaction; a refused one does not stop the others."""
        entries: builtins.list[Exception | None] = []
        with self._database.writing() as connection:
            for record in records:
                try:
                    self._keep(connection, record)
                    entries.append(None)
                except IdUnavailable as error:
                    entries.append(error)
        return entries

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete a record; its text has left the file when this returns."""
        with self._database.writing() as connection:
            held = _held(connection, record_id)
            if held is None or not scope.matches(held[1].scope):
                return False
            connection.execute("DELETE FROM words WHERE rowid = ?", (held[0],))
            connection.execute("DELETE FROM records WHERE row = ?", (held[0],))
        self._left_behind = True
        return True

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        """Change fields in one transaction."""
        with self._database.writing() as connection:
            held = _held(connection, record_id)
            if held is None or not scope.matches(held[1].scope):
                return False
            fields = {name: value for name, value in changes.items() if name != "updated_at"}
            self._write(connection, held[0], held[1].changed(fields, at=changes["updated_at"]))
        self._left_behind = True
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record, or None where the scope does not hold it."""
        with self._database.reading() as connection:
            held = _held(connection, record_id)
        if held is None or not scope.matches(held[1].scope) or held[1].is_expired():
            return None
        return held[1]

    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Order, filters: Filter | None
    ) -> builtins.list[MemoryRecord]:
        """Records by ``created_at`` and id, those after the cursor."""
        if limit < 1:
            return []
        values = _values(scope, filters)
        at, at_id = read_cursor(after) if after is not None else (None, None)
        values |= {"at": _micros(at), "at_id": at_id}
        with self._database.reading() as connection:
            rows = connection.execute(_LIST[order], values)
            return [record for record, _ in _take(rows, scope, filters, limit)]

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one recall of each record in one write."""
        values = _values(scope, None) | {"ids": json.dumps(list(record_ids))}
        with self._database.writing() as connection:
            return connection.execute(_TOUCH, values).rowcount

    @hookimpl
    def check(self) -> str:
        """Count the records, and verify the file and its text index."""
        with self._database.reading() as connection:
            state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            count = connection.execute("SELECT count(*) FROM records").fetchone()[0]
            words = connection.execute("SELECT count(*) FROM words").fetchone()[0]
        if state != "ok" or count != words:
            raise StoreCorrupt("the file or its text index is damaged; restore a backup")
        return f"{count} records"

    @hookimpl
    def close(self) -> None:
        """Remove what forgotten and replaced texts left in the file, then close it."""
        if self._left_behind:
            self._database.purge()
            self._left_behind = False
        self._database.close()

    def purge(self) -> None:
        """Remove now what forgotten and replaced texts left in the file."""
        self._database.purge()
        self._left_behind = False

    def _keep(self, connection: sqlite3.Connection, record: MemoryRecord) -> None:
        held = _held(connection, record.id)
        if held is not None:
            row, old = held
            if old.scope != record.scope:
                raise IdUnavailable("this id cannot be used here; leave it out to get a fresh one")
            if old.updated_at > record.updated_at:
                return
            self._left_behind = True
            self._write(connection, row, record)
        else:
            self._write(connection, None, record)

    @staticmethod
    def _write(connection: sqlite3.Connection, row: int | None, record: MemoryRecord) -> None:
        values = {
            "row": row,
            "id": record.id,
            **dict(
                zip(SCOPE_FIELDS, map(record.scope.__getattribute__, SCOPE_FIELDS), strict=True)
            ),
            "kind": record.kind.value,
            "created": _micros(record.created_at),
            "updated": _micros(record.updated_at),
            "expires": _micros(record.expires_at),
            "accessed": _micros(record.last_accessed_at),
            "access_count": record.access_count,
            "body": record.to_json(),
        }
        if row is not None:
            connection.execute("DELETE FROM words WHERE rowid = ?", (row,))
        added = connection.execute(_UPSERT, values).lastrowid
        connection.execute(
            "INSERT INTO words (rowid, content, tags, terms, scope) VALUES (?, ?, ?, ?, ?)",
            (added if row is None else row, *indexed(record)),
        )


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def _values(scope: Scope, filters: Filter | None) -> dict[str, Any]:
    """The parameters of scope and filter."""
    kinds = [kind.value for kind in filters.kinds] if filters else []
    owner: dict[str, Any] = {name: getattr(scope, name) for name in SCOPE_FIELDS}
    return {
        **owner,
        "now": _micros(datetime.now(UTC)),
        "kinds": json.dumps(kinds) if kinds else None,
        "since": _micros(filters.since) if filters else None,
        "until": _micros(filters.until) if filters else None,
    }


def _held(connection: sqlite3.Connection, record_id: str) -> tuple[int, MemoryRecord] | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM records WHERE id = ?", (record_id,)
    ).fetchone()
    return None if row is None else (row[0], _record(row))


def _record(row: Sequence[Any]) -> MemoryRecord:
    record = MemoryRecord.from_json(row[1])
    accessed = _EPOCH + timedelta(microseconds=row[3])
    if row[2] == record.access_count and accessed == record.last_accessed_at:
        return record
    return record.model_copy(update={"access_count": row[2], "last_accessed_at": accessed})


def _take(
    rows: Iterator[Any], scope: Scope, filters: Filter | None, limit: int
) -> builtins.list[tuple[MemoryRecord, float]]:
    """The first rows that scope and filter let by, with their rank value."""
    found: builtins.list[tuple[MemoryRecord, float]] = []
    for row in rows:
        record = _record(row)
        if scope.matches(record.scope) and (filters is None or filters.matches(record)):
            found.append((record, row[4]))
            if len(found) == limit:
                break
    return found


def build(options: SqliteOptions, context: ProviderContext) -> SqliteStore:
    """The store of a configuration; a relative path starts at the provider's folder."""
    path = (options.path or Path("memory.db")).expanduser()
    return SqliteStore(
        path if context.folder is None else context.folder / path, timeout=options.timeout
    )


FACTORY = ProviderFactory(build, SqliteOptions)
