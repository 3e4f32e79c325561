"""How stores keep rows in diskcache: text only, and errors of ours."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import diskcache
from diskcache.core import DBNAME, MODE_RAW, UNKNOWN

from .errors import (
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    StorageFull,
    StoreCorrupt,
)

__all__ = ["DBNAME", "SETTINGS", "SharedCache", "TextDisk", "our_errors"]

SETTINGS: dict[str, int | str] = {
    "eviction_policy": "none",
    "size_limit": 2**62,
    "cull_limit": 0,
    "statistics": 0,
    "tag_index": 1,
    "disk_min_file_size": 2**30,
    "sqlite_secure_delete": 1,
    "memsheaf_format": 1,
}
"""Nothing is evicted, no value becomes a file, deleted text is overwritten."""

_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache is untyped
    """Rows with a text key and a text value; anything else is refused, pickles above all."""

    def put(self, key: Any) -> tuple[str, bool]:
        """Take a key to the database."""
        if not isinstance(key, str):
            raise TypeError("keys must be text")
        return key, True

    def get(self, key: Any, raw: bool) -> str:
        """Take a key from the database."""
        if not raw or not isinstance(key, str):
            raise StoreCorrupt("the store holds a key that is not text; restore a backup")
        return key

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> tuple[int, int, None, str]:
        """Take a value to the database."""
        if read or not isinstance(value, str):
            raise TypeError("values must be text")
        return 0, MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        """Take a value from the database."""
        if mode != MODE_RAW or filename is not None or not isinstance(value, str):
            raise StoreCorrupt("the store holds a row that is not text; restore a backup")
        return value


class SharedCache(diskcache.Cache):  # type: ignore[misc]
    """A cache with one connection for all threads; whoever uses it holds a lock around it.

    diskcache keeps a connection per thread, which nobody closes when the thread ends.
    """

    def __init__(self, folder: str, timeout: float, **settings: int | str) -> None:
        self._patience = timeout
        self._shared: sqlite3.Connection | None = None
        try:
            super().__init__(folder, timeout=timeout, disk=TextDisk, **settings)
        except BaseException:
            self.close()
            raise

    @property
    def _con(self) -> sqlite3.Connection:
        if self._shared is None:
            self._shared = sqlite3.connect(
                os.path.join(self._directory, DBNAME),
                timeout=self._timeout,
                isolation_level=None,
                check_same_thread=False,
            )
            for pragma in ("synchronous = 1", "secure_delete = 1", "cache_size = 8192"):
                self._shared.execute(f"PRAGMA {pragma}")
        return self._shared

    @property
    def _sql_retry(self) -> Callable[..., sqlite3.Cursor]:
        """Statements outside a transaction, tried for our own timeout, not for a minute."""

        def run(statement: str, *arguments: Any) -> sqlite3.Cursor:
            until = time.monotonic() + self._patience
            while True:
                try:
                    return self._con.execute(statement, *arguments)
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > until:
                        raise
                    time.sleep(0.002)

        return run

    def transaction(self) -> AbstractContextManager[None]:
        """One transaction; a commit that fails is rolled back, which `transact` does not do."""
        return _Transaction(self._con)

    def find(self, tag: str) -> tuple[str, str] | None:
        """Key and value of the row with a tag, as this connection sees it."""
        row = self._con.execute(
            "SELECT key, raw, mode, filename, value FROM Cache WHERE tag = ?", (tag,)
        ).fetchone()
        if row is None:
            return None
        return self._disk.get(row[0], row[1]), self._disk.fetch(row[2], row[3], row[4], False)

    def append(self, prefix: str, value: str, tag: str) -> None:
        """`push` inside a transaction, without its own one: a row under the next number."""
        last = self._con.execute(
            "SELECT key FROM Cache WHERE key > ? AND key < ? AND raw = 1 ORDER BY key DESC LIMIT 1",
            (f"{prefix}-{0:015d}", f"{prefix}-{10**15 - 1}"),
        ).fetchone()
        number = 1 if last is None else int(last[0].rpartition("-")[2]) + 1
        columns = (None, tag, *self._disk.store(value, False))
        self._row_insert(f"{prefix}-{number:015d}", True, time.time(), columns)

    def drop(self, key: str) -> None:
        """Delete a row inside a transaction."""
        self._con.execute("DELETE FROM Cache WHERE key = ? AND raw = 1", (key,))

    def truncate(self) -> bool:
        """Empty the write-ahead log into the database; False where a reader holds it."""
        busy: int = self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not busy

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        connection, self._shared = self._shared, None
        if connection is not None:
            connection.close()


class _Transaction(AbstractContextManager[None]):
    """A write transaction; a class, because a generator would cost a tenth of a write."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


class _OurErrors(AbstractContextManager[None]):
    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, ProviderError):
            return
        if isinstance(error, diskcache.Timeout):
            raise ProviderTimeout(
                f"{self._doing}: another process holds the store; try again"
            ) from error
        if isinstance(error, sqlite3.Error):
            raise _translated(self._doing, error) from error
        if isinstance(error, OSError):
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG):
                raise StorageFull(
                    f"{self._doing}: {error.strerror}; free space and try again"
                ) from error
            raise ProviderUnavailable(f"{self._doing}: {error.strerror}; check the path") from error


def our_errors(doing: str) -> AbstractContextManager[None]:
    """Turn what SQLite, diskcache and the system raise into provider errors; ours pass."""
    return _OurErrors(doing)


def _translated(doing: str, error: sqlite3.Error) -> ProviderError:
    code = getattr(error, "sqlite_errorcode", None)
    base = None if code is None else code & 0xFF
    if base in _BUSY:
        return ProviderTimeout(f"{doing}: another process holds the store; try again")
    if base in _FULL or code == sqlite3.SQLITE_IOERR_WRITE:
        return StorageFull(f"{doing}: the disk is full or read-only; nothing was changed")
    if base in _CORRUPT:
        return StoreCorrupt(f"{doing}: damaged or not a Memsheaf store; restore a backup")
    return ProviderUnavailable(f"{doing}: the database cannot be used ({error})")
