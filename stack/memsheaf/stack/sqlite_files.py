"""What every SQLite file of ours shares: write-ahead logging, and errors in our words."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import (
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    StorageFull,
    StoreCorrupt,
)

__all__ = ["told", "write_ahead"]

_PAUSE = 0.005  # seconds between two tries where SQLite itself does not wait


def write_ahead(connection: sqlite3.Connection, timeout: float) -> None:
    """Switch to WAL; SQLite does not wait by itself where another process does the same.

    Args:
        connection: Outside of any transaction.
        timeout: Seconds to wait for the other.
    """
    until = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF  # busy in any of its ways
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


@contextmanager
def told(path: Path | None) -> Iterator[None]:
    """Turn what SQLite and the system raise about a file into errors of ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise _ours(error, path) from error
    except OSError as error:
        raise ProviderUnavailable(f"{path} cannot be opened: {error.strerror}") from error


def _ours(error: sqlite3.Error, path: Path | None) -> ProviderError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return StoreCorrupt(f"{path} is damaged or not a database; restore a backup")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
        return StorageFull(f"{path} cannot be written: the disk is full or read-only")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ProviderTimeout(f"{path} is being written by another process; try again")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR):
        return ProviderUnavailable(f"{path} cannot be read; check folder, disk and permissions")
    kind = type(error).__name__
    return ProviderUnavailable(
        f"{path} cannot be used (SQLite {kind}, code {code}); check disk and rights"
    )
