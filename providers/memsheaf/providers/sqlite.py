"""A store in one SQLite file, searched with FTS5."""

from __future__ import annotations

import builtins
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
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
from memsheaf.stack.filters import refusal
from memsheaf.stack.text import clean

from .sqlite_file import Database
from .sqlite_query import indexed
from .sqlite_rows import (
    COLUMNS,
    FILTERED,
    filter_values,
    micros,
    owner_condition,
    read_record,
)
from .sqlite_search import TextSearch

__all__ = ["FACTORY", "SqliteOptions", "SqliteStore"]


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
        self._text = TextSearch()

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
        with self._database.reading() as connection:
            return self._text.best(connection, text, scope, limit, filters)

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
            if self._replace(connection, *held, new):
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
                        (micros(datetime.now(UTC)), held[0]),
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
        values = (
            filter_values(filters) | scope.set_fields() | {"at": micros(moment), "at_id": record_id}
        )
        statement = (
            f"SELECT {COLUMNS} FROM records "
            f"WHERE {owner_condition(scope)} AND {place} AND {FILTERED} ORDER BY {by}"
        )
        with self._database.reading() as connection:
            moment = datetime.now(UTC)
            read = map(read_record, connection.execute(statement, values))
            shown = (r for r in read if refusal(r, scope, filters, moment) is None)
            return builtins.list(islice(shown, limit))

    def _keep(self, connection: sqlite3.Connection, record: MemoryRecord) -> bool:
        """Write a record; True where it replaced another text."""
        held = _held(connection, record.id, Scope.EVERYONE)
        if held is None:
            _index(connection, _write(connection, None, record), record)
            return False
        if held[1].scope != record.scope:
            raise IdUnavailable("this id cannot be used here; leave it out to get a fresh one")
        return held[1].updated_at <= record.updated_at and self._replace(connection, *held, record)

    def _replace(
        self, connection: sqlite3.Connection, row: int, old: MemoryRecord, new: MemoryRecord
    ) -> bool:
        """Write a record over another; True where its text changed."""
        _write(connection, row, new)
        self._database.erase_on_commit()
        if (old.content, old.tags) == (new.content, new.tags):
            return False
        connection.execute("DELETE FROM words WHERE rowid = ?", (row,))
        _index(connection, row, new)
        return True

    def _erase(self, connection: sqlite3.Connection) -> None:
        """Rewrite the text index without the deleted words, which it only marks as deleted."""
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._database.erase_on_commit()


def _held(
    connection: sqlite3.Connection, record_id: str, scope: Scope
) -> tuple[int, MemoryRecord] | None:
    """Row and record of an id that the scope may see."""
    found = connection.execute(
        f"SELECT {COLUMNS} FROM records WHERE id = ?", (clean(record_id),)
    ).fetchone()
    if found is None:
        return None
    record = read_record(found)
    return (found[0], record) if scope.matches(record.scope) else None


def _write(connection: sqlite3.Connection, row: int | None, record: MemoryRecord) -> int:
    owner = dict[str, Any](zip(SCOPE_FIELDS, record.scope.key(), strict=True))
    values = owner | {
        "row": row,
        "id": record.id,
        "kind": record.kind.value,
        "created": micros(record.created_at),
        "updated": micros(record.updated_at),
        "expires": micros(record.expires_at),
        "accessed": micros(record.last_accessed_at),
        "access_count": record.access_count,
        "body": record.to_json(),
    }
    added = connection.execute(_UPSERT, values).lastrowid
    return int(added or 0) if row is None else row


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
