"""The tables of a conversation log, how a file gets them, and the statements on them."""

from __future__ import annotations

import sqlite3

from memsheaf.stack import ProviderUnavailable, StoreCorrupt

__all__ = [
    "ADD_CONVERSATION",
    "ADD_ITEM",
    "CONVERSATIONS",
    "FIND",
    "ITEMS",
    "REFRESH",
    "VERSION",
    "format_of",
    "migrate",
]

# Each entry lifts a file by one version; a released entry is never edited.
# Items only ever go to the end of their table, so that no page with text is copied about.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE conversations (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            user_id TEXT, agent_id TEXT, session_id TEXT, namespace TEXT,
            next_seq INTEGER NOT NULL,
            removed INTEGER NOT NULL,
            created INTEGER NOT NULL,
            updated INTEGER NOT NULL,
            deleted INTEGER,
            erased INTEGER NOT NULL DEFAULT 0,
            title TEXT NOT NULL,
            metadata TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX by_time ON conversations (updated, row) WHERE deleted IS NULL",
        """
        CREATE TABLE items (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation INTEGER NOT NULL REFERENCES conversations (row),
            seq INTEGER NOT NULL,
            type TEXT NOT NULL,
            role TEXT,
            origin TEXT NOT NULL,
            status TEXT NOT NULL,
            response_id TEXT,
            created INTEGER NOT NULL,
            recorded INTEGER NOT NULL,
            deleted INTEGER,
            erased INTEGER NOT NULL DEFAULT 0,
            key BLOB,
            text TEXT NOT NULL,
            data TEXT NOT NULL,
            metadata TEXT NOT NULL
        ) STRICT
        """,
        "CREATE UNIQUE INDEX by_seq ON items (conversation, seq)",
        "CREATE UNIQUE INDEX by_key ON items (conversation, key) WHERE key IS NOT NULL",
        "CREATE TABLE erasures (number INTEGER PRIMARY KEY AUTOINCREMENT) STRICT",
    ),
)
VERSION = len(_MIGRATIONS)
_APPLICATION = 0x4D53434C  # "MSCL", so that a foreign database is recognised

_CONVERSATION = """
    row, id, user_id, agent_id, session_id, namespace,
    title, metadata, created, updated, next_seq, removed, deleted
"""
FIND = f"SELECT {_CONVERSATION} FROM conversations WHERE id = ? AND NOT erased"

_LISTED = f"""
    SELECT {_CONVERSATION} FROM conversations
    WHERE deleted IS NULL
    AND (:user_id IS NULL OR user_id = :user_id)
    AND (:agent_id IS NULL OR agent_id = :agent_id)
    AND (:session_id IS NULL OR session_id = :session_id)
    AND (:namespace IS NULL OR namespace = :namespace)
    AND (:since IS NULL OR updated >= :since)
    AND (:until IS NULL OR updated <= :until)
"""
CONVERSATIONS = {
    "asc": f"{_LISTED} ORDER BY updated, row LIMIT :limit",
    "desc": f"{_LISTED} ORDER BY updated DESC, row DESC LIMIT :limit",
}

_READ = """
    SELECT seq, type, text, role, origin, data, metadata, created, recorded, status, response_id
    FROM items
    WHERE conversation = :conversation AND deleted IS NULL AND seq > :after AND seq < :before
    AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
"""
ITEMS = {
    "asc": f"{_READ} ORDER BY seq LIMIT :limit",
    "desc": f"{_READ} ORDER BY seq DESC LIMIT :limit",
}

ADD_CONVERSATION = """
    INSERT INTO conversations (
        id, user_id, agent_id, session_id, namespace,
        next_seq, removed, created, updated, title, metadata
    ) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, '', '{}')
"""
ADD_ITEM = """
    INSERT INTO items (
        conversation, seq, type, role, origin, status, response_id,
        created, recorded, key, text, data, metadata
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
REFRESH = """
    UPDATE conversations SET removed =
        (SELECT count(*) FROM items WHERE conversation = :row AND deleted IS NOT NULL)
    WHERE row = :row
"""


def format_of(connection: sqlite3.Connection) -> int:
    """The format of a file; 0 for an empty one.

    Raises:
        StoreCorrupt: It is a database of something else.
        ProviderUnavailable: Its format is a later one.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        if version or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise StoreCorrupt("the file is not a conversation log; name another file")
        return 0
    if version > VERSION:
        raise ProviderUnavailable(
            f"the log has format {version} and this Memsheaf knows {VERSION}; upgrade Memsheaf"
        )
    return version


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to the present format, in one transaction; others may try the same."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in _MIGRATIONS[format_of(connection) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION:d}")
        connection.execute(f"PRAGMA user_version = {VERSION:d}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
