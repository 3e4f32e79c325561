"""Which ids a record has in foreign systems, kept durably."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import ProviderUnavailable, StorageFull, StoreCorrupt

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
    """

    def __init__(self, path: Path | None = None, timeout: float = 10.0) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._timeout = timeout
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._used = path is not None and os.path.exists(path)  # False where it may not be seen
        _MAPS.add(self)

    def after_fork(self) -> None:
        """In the child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=self._timeout, check_same_thread=False
        )
        try:
            if self._path is not None:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid, self._used = connection, os.getpid(), True
        return connection

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; what fails is told in errors of ours."""
        with self._lock:
            try:
                yield self._connect()
            except sqlite3.OperationalError as error:
                raise StorageFull(f"the id map {self._path} cannot be used: {error}") from error
            except sqlite3.DatabaseError as error:
                raise StoreCorrupt(
                    f"the id map {self._path} is damaged: {error}; restore or remove it"
                ) from error
            except OSError as error:
                raise ProviderUnavailable(
                    f"the id map {self._path} cannot be opened: {error.strerror}"
                ) from error
            finally:
                if self._closed:
                    self._let_go()

    @property
    def used(self) -> bool:
        """Whether any id may be known; another process may have made the file since."""
        return self._used or (self._path is not None and os.path.exists(self._path))

    def add(self, provider: str, record_id: str, native_ids: Sequence[str]) -> None:
        """Remember what a record became in a provider.

        Raises:
            ProviderError: The map cannot be read or written; so do the other methods.
        """
        rows = [(provider, native, record_id) for native in native_ids]
        with self._connected() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO native_ids VALUES (?, ?, ?)", rows)

    def native(self, provider: str, record_id: str) -> tuple[str, ...]:
        """The ids that a record has in a provider."""
        if not self.used:
            return ()
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT native_id FROM native_ids WHERE record_id = ? AND provider = ? ORDER BY 1",
                (record_id, provider),
            )
            return tuple(row[0] for row in rows)

    def ours(self, provider: str, native_ids: Iterable[str]) -> str | None:
        """Our id of a foreign record, or None."""
        if not self.used:
            return None
        with self._connected() as connection:
            for native in native_ids:
                row = connection.execute(
                    "SELECT record_id FROM native_ids WHERE provider = ? AND native_id = ?",
                    (provider, native),
                ).fetchone()
                if row is not None:
                    return str(row[0])
        return None

    def drop(self, provider: str, record_id: str) -> None:
        """Forget what a record was in a provider."""
        if not self.used:
            return
        with self._connected() as connection, connection:
            connection.execute(
                "DELETE FROM native_ids WHERE record_id = ? AND provider = ?", (record_id, provider)
            )

    def close(self) -> None:
        """Close the file; a write that ends later opens it for as long as that takes."""
        with self._lock:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = None


_MAPS: weakref.WeakSet[NativeIds] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for each in list(_MAPS):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
