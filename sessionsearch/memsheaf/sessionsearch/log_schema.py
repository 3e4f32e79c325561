"""The tables of a conversation log, how a file gets them, and the statements on them."""

from __future__ import annotations

import sqlite3

from memsheaf.stack import ProviderUnavailable, StoreCorrupt

__all__ = [
    "ADD_CHANGE",
    "ADD_CONVERSATION",
    "ADD_ITEM",
    "CHANGED",
    "CHANGED_ITEMS",
    "CHANGES",
    "CONVERSATIONS",
    "CONVERSATIONS_AT",
    "ERASE_ITEMS",
    "ERASE_NOTE",
    "FIND",
    "FIND_ROW",
    "GROW",
    "ITEMS",
    "ITEMS_AT",
    "ITEM_FIELDS_AT",
    "KEYS",
    "MARK",
    "REFRESH",
    "VERSION",
    "drop_words",
    "format_of",
    "migrate",
]

# Each entry lifts a file by one version; a released entry is never edited.
# Text lies in `items` and `notes` alone. Rows there are added at the end and overwritten in place,
# by as many bytes: SQLite moves no cell then, and leaves no copy that an erasure would miss.
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
            deleted INTEGER NOT NULL DEFAULT 0,
            erased INTEGER NOT NULL DEFAULT 0,
            note INTEGER REFERENCES notes (position)
        ) STRICT
        """,
        "CREATE INDEX by_time ON conversations (updated, row) WHERE NOT deleted",
        """
        CREATE TABLE notes (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            metadata TEXT NOT NULL
        ) STRICT
        """,
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
            deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
            erased INTEGER NOT NULL DEFAULT 0 CHECK (erased IN (0, 1)),
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
    (  # what an index has to look at again: the items `low` to `high`, none where high < low
        """
        CREATE TABLE changes (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation INTEGER NOT NULL REFERENCES conversations (row),
            low INTEGER NOT NULL,
            high INTEGER NOT NULL,
            erased INTEGER NOT NULL,
            mark BLOB NOT NULL
        ) STRICT
        """,
        """
        INSERT INTO changes (conversation, low, high, erased, mark)
        SELECT row, 0, next_seq - 1, erased, randomblob(8) FROM conversations ORDER BY row
        """,
    ),
)
VERSION = len(_MIGRATIONS)
_APPLICATION = 0x4D53434C  # "MSCL", so that a foreign database is recognised

_CONVERSATION = """
    row, conversations.id, user_id, agent_id, session_id, namespace,
    iif(erased, '', coalesce(title, '')), iif(erased, '{}', coalesce(metadata, '{}')),
    created, updated, next_seq, removed, deleted, note
"""
_NOTED = "conversations LEFT JOIN notes ON notes.position = conversations.note"
FIND = f"SELECT {_CONVERSATION} FROM {_NOTED} WHERE id = ? AND NOT erased"

FIND_ROW = f"SELECT {_CONVERSATION} FROM {_NOTED} WHERE row = ?"

_LISTED = f"""
    SELECT {_CONVERSATION} FROM {_NOTED}
    WHERE NOT deleted
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

_ITEM = (
    "seq, items.type, text, role, origin, data, metadata, created, recorded, status, response_id"
)
_READ = f"""
    SELECT {_ITEM} FROM items
    WHERE conversation = :conversation AND NOT deleted AND seq > :after AND seq < :before
    AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
"""
ITEMS = {
    "asc": f"{_READ} ORDER BY seq LIMIT :limit",
    "desc": f"{_READ} ORDER BY seq DESC LIMIT :limit",
}

ITEMS_AT = f"""
    SELECT conversation, position, {_ITEM} FROM json_each(?) AS place
    CROSS JOIN items ON position = place.value WHERE NOT deleted
"""
CONVERSATIONS_AT = f"""
    SELECT {_CONVERSATION} FROM json_each(?) AS place
    CROSS JOIN conversations ON row = place.value
    LEFT JOIN notes ON notes.position = conversations.note
"""

KEYS = """
    SELECT seq, key FROM items
    WHERE conversation = :conversation AND seq > :after AND seq < :before AND key IS NOT NULL
"""
ITEM_FIELDS_AT = f"SELECT conversation, {_ITEM} FROM items WHERE position = ?"
ADD_CHANGE = """
    INSERT INTO changes (conversation, low, high, erased, mark) VALUES (?, ?, ?, ?, randomblob(8))
"""
CHANGES = "SELECT coalesce(max(number), 0) FROM changes"
MARK = "SELECT hex(mark) FROM changes WHERE number = ?"
CHANGED = """
    SELECT number, conversation, low, high, erased FROM changes
    WHERE number > ? ORDER BY number LIMIT ?
"""
CHANGED_ITEMS = f"""
    SELECT deleted, position, {_ITEM} FROM items
    WHERE conversation = ? AND seq BETWEEN ? AND ? ORDER BY seq
"""

ADD_CONVERSATION = """
    INSERT INTO conversations (
        id, user_id, agent_id, session_id, namespace,
        next_seq, removed, created, updated
    ) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?)
"""
ADD_ITEM = """
    INSERT INTO items (
        conversation, seq, type, role, origin, status, response_id,
        created, recorded, key, text, data, metadata
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
GROW = """
    UPDATE conversations SET next_seq = ?, created = min(created, ?), updated = max(updated, ?)
    WHERE row = ?
"""
REFRESH = """
    UPDATE conversations SET removed =
        (SELECT count(*) FROM items WHERE conversation = :row AND deleted)
    WHERE row = :row
"""


def _blanked(*columns: str) -> str:
    """Assignments that overwrite text columns by as many bytes of filler."""
    filler = "{0} = replace(hex(zeroblob(length(CAST({0} AS BLOB)))), '00', 'x')"
    return ", ".join(filler.format(column) for column in columns)


ERASE_ITEMS = f"""
    UPDATE items SET deleted = 1, erased = 1,
    {_blanked("text", "data", "metadata", "type", "role", "status", "response_id")}
    WHERE conversation = :row AND (:seq IS NULL OR seq = :seq) AND NOT erased
"""
ERASE_NOTE = f"UPDATE notes SET {_blanked('title', 'metadata')} WHERE position = :note"


def drop_words(connection: sqlite3.Connection) -> None:
    """Drop what the `sqlite` index keeps in the file of the log, damaged or not."""
    connection.execute("DROP TABLE IF EXISTS session_words_state")
    try:
        connection.execute("DROP TABLE IF EXISTS session_words")
    except sqlite3.DatabaseError:  # FTS5 cannot open its own tables; take them one by one
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'session_words'")
        connection.execute("PRAGMA writable_schema = RESET")
        for part in ("data", "idx", "content", "docsize", "config"):
            connection.execute(f"DROP TABLE IF EXISTS session_words_{part}")


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
