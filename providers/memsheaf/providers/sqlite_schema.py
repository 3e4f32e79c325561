"""The tables of a SQLite store, and how a file gets them."""

from __future__ import annotations

import sqlite3

from memsheaf.stack import ProviderUnavailable, StoreCorrupt
from memsheaf.stack.sqlite_files import write_ahead

__all__ = ["VERSION", "migrate", "version_of"]

# Each entry lifts a file by one version; a released entry is never edited.
_MIGRATIONS = (
    """
    CREATE TABLE records (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user_id TEXT, agent_id TEXT, session_id TEXT, namespace TEXT,
        kind TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        expires INTEGER,
        accessed INTEGER NOT NULL,
        access_count INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX by_user ON records (user_id, created, id) WHERE user_id IS NOT NULL;
    CREATE INDEX by_agent ON records (agent_id, created, id) WHERE agent_id IS NOT NULL;
    CREATE INDEX by_session ON records (session_id, created, id) WHERE session_id IS NOT NULL;
    CREATE INDEX by_namespace ON records (namespace, created, id) WHERE namespace IS NOT NULL;
    CREATE INDEX by_created ON records (created, id);
    CREATE INDEX by_updated ON records (updated, id);
    CREATE VIRTUAL TABLE words USING fts5 (
        content, tags, terms, scope, tokenize = 'porter unicode61 remove_diacritics 2'
    );
    """,
)
VERSION = len(_MIGRATIONS)
_APPLICATION = 0x4D534846  # "MSHF", so that a foreign database is recognised


def version_of(connection: sqlite3.Connection) -> int:
    """The format of a file; 0 for an empty one.

    Raises:
        StoreCorrupt: It is a database of something else, or one that would run what it holds.
        ProviderUnavailable: Its format is a later one.
    """
    version, application, tables, active = _head(connection)
    if active:
        raise StoreCorrupt("the file holds triggers or views, which no store has; do not use it")
    if application != _APPLICATION:
        if version or tables:
            raise StoreCorrupt("the file is a database of something else; name another file")
        return 0
    if version > VERSION:
        raise ProviderUnavailable(
            f"the file has format {version} and this Memsheaf knows {VERSION}; upgrade Memsheaf"
        )
    return version


def _head(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Version, application, whether there are tables, and triggers or views; of one moment."""
    begun = not connection.in_transaction
    if begun:
        connection.execute("BEGIN")  # another process may be making the tables just now
    try:
        return tuple(
            connection.execute(question).fetchone()[0]
            for question in (
                "PRAGMA user_version",
                "PRAGMA application_id",
                "SELECT EXISTS (SELECT 1 FROM sqlite_master)",
                "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view'))",
            )
        )
    finally:
        if begun:
            connection.rollback()


def migrate(connection: sqlite3.Connection, timeout: float) -> None:
    """Bring a file to the present format, in one transaction; others may try the same."""
    write_ahead(connection, timeout)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in _MIGRATIONS[version_of(connection) :]:
            for statement in filter(str.strip, step.split(";\n")):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION:d}")
        connection.execute(f"PRAGMA user_version = {VERSION:d}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
