"""The rows of Hermes' `state.db`, which is opened read-only and never changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .source import Problem

__all__ = ["SIGNATURE", "Row", "is_state", "rows"]

SIGNATURE = b"SQLite format 3\x00"
_OVERHEAD = 1 << 20  # bytes of a row beside its largest field


def is_state(path: Path) -> bool:
    """Whether a database has the tables of Hermes."""
    try:
        with closing(_open(path)) as connection:
            connection.execute("SELECT id, source, started_at FROM sessions LIMIT 1")
            connection.execute("SELECT session_id, role, content FROM messages LIMIT 1")
    except sqlite3.Error:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Row:
    """A message, its session, and which share of all messages is done with it."""

    session: dict[str, Any]
    message: dict[str, Any]
    share: float


def rows(path: Path, limit: int) -> Iterator[Row | Problem]:
    """Each message with its session, session by session, in the order of writing.

    Args:
        path: The database; another program may be writing it.
        limit: Bytes of a row that may be read.

    Raises:
        OSError: It cannot be read, or another program holds it.
    """
    try:
        with closing(_open(path)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit + _OVERHEAD)
            connection.row_factory = sqlite3.Row
            yield from _rows(connection)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "an error of SQLite")
        raise OSError(0, f"the database cannot be read: {code}") from error


def _rows(connection: sqlite3.Connection) -> Iterator[Row | Problem]:
    total = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    session: dict[str, Any] = {}
    places = connection.execute("SELECT session_id, rowid FROM messages ORDER BY session_id, rowid")
    for number, (name, place) in enumerate(places, 1):
        if session.get("id") != name:
            found = connection.execute("SELECT * FROM sessions WHERE id = ?", (name,)).fetchone()
            session = {"id": name} if found is None else dict(found)
        try:
            row = connection.execute("SELECT * FROM messages WHERE rowid = ?", (place,)).fetchone()
        except sqlite3.DataError:
            yield Problem(None, "a message is too long")
            continue
        if row is not None:
            yield Row(session, dict(row), number / max(total, number))


def _open(path: Path) -> sqlite3.Connection:
    """Open without leaving a file beside it: where no log is there, nobody is writing."""
    quiet = not os.path.exists(f"{path}-wal")
    mode = "mode=ro&immutable=1" if quiet else "mode=ro"
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=5)
    connection.text_factory = _text
    return connection


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
