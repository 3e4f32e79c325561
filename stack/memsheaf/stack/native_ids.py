"""Which ids a record has in foreign systems, kept durably."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import StorageFull, StoreCorrupt

__all__ = ["NativeIds"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS native_ids (
    provider TEXT NOT NULL, native_id TEXT NOT NULL, record_id TEXT NOT NULL,
    PRIMARY KEY (provider, native_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS native_ids_by_record ON native_ids (record_id, provider);
"""


class NativeIds:
    """Record id ↔ (provider, native ids), in one SQLite file or in memory.

    Args:
        path: The file; made with mode 0600. None keeps the map in memory.
        timeout: Seconds to wait for another process's lock.

    Raises:
        StoreCorrupt: The file is damaged or not a database.
    """

    def __init__(self, path: Path | None = None, timeout: float = 10.0) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._timeout = timeout
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._used = path is not None and path.exists()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            connection = sqlite3.connect(
                self._path or ":memory:", timeout=self._timeout, check_same_thread=False
            )
            if self._path is not None:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise StoreCorrupt(f"{self._path} cannot be opened: {error}") from error
        self._connection, self._pid, self._used = connection, os.getpid(), True
        return connection

    @property
    def used(self) -> bool:
        """Whether any id may be known; another process may have made the file since."""
        return self._used or (self._path is not None and self._path.exists())

    def add(self, provider: str, record_id: str, native_ids: Sequence[str]) -> None:
        """Remember what a record became in a provider.

        Raises:
            StorageFull: The map cannot be written.
        """
        rows = [(provider, native, record_id) for native in native_ids]
        with self._lock:
            connection = self._connect()
            try:
                with connection:
                    connection.executemany(
                        "INSERT OR REPLACE INTO native_ids VALUES (?, ?, ?)", rows
                    )
            except sqlite3.OperationalError as error:
                raise StorageFull(f"the id map cannot be written: {error}") from error

    def native(self, provider: str, record_id: str) -> tuple[str, ...]:
        """The ids that a record has in a provider."""
        if not self.used:
            return ()
        with self._lock:
            rows = self._connect().execute(
                "SELECT native_id FROM native_ids WHERE record_id = ? AND provider = ? ORDER BY 1",
                (record_id, provider),
            )
            return tuple(row[0] for row in rows)

    def ours(self, provider: str, native_ids: Iterable[str]) -> str | None:
        """Our id of a foreign record, or None."""
        if not self.used:
            return None
        with self._lock:
            for native in native_ids:
                row = (
                    self._connect()
                    .execute(
                        "SELECT record_id FROM native_ids WHERE provider = ? AND native_id = ?",
                        (provider, native),
                    )
                    .fetchone()
                )
                if row is not None:
                    return str(row[0])
        return None

    def drop(self, provider: str, record_id: str) -> None:
        """Forget what a record was in a provider."""
        if not self.used:
            return
        with self._lock, self._connect() as connection:
            connection.execute(
                "DELETE FROM native_ids WHERE record_id = ? AND provider = ?", (record_id, provider)
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None
