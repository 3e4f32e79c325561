"""The SQLite file: opening, migrations, a pool of connections, and errors of ours."""

from __future__ import annotations

import os
import queue
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsheaf.stack import (
    ClosedError,
    ProviderError,
    ProviderUnavailable,
    StorageFull,
    StoreCorrupt,
)

__all__ = ["Database"]

# Each entry lifts the file by one version; a released entry is never edited.
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
    CREATE INDEX records_by_user ON records (user_id, created, id);
    CREATE INDEX records_by_agent ON records (agent_id, created, id);
    CREATE INDEX records_by_created ON records (created, id);
    CREATE INDEX records_by_updated ON records (updated);
    CREATE VIRTUAL TABLE words USING fts5 (
        content, tags, terms, scope, tokenize = 'porter unicode61 remove_diacritics 2'
    );
    """,
)
_VERSION = len(_MIGRATIONS)
_APPLICATION = 0x4D534846  # "MSHF", so that a foreign database is recognised


class Database:
    """One file and a pool of connections to it, safe in threads, processes and after a fork.

    Args:
        path: The file; None keeps the database in memory.
        timeout: Seconds to wait for another writer.
    """

    def __init__(self, path: Path | None, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._pid = os.getpid()
        self._free: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._closed = False
        self.read_only = False
        self._free.put(self._open())

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one read transaction: a snapshot."""
        with self._borrowed() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one write transaction: all of it is kept, or nothing."""
        with self._borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    def purge(self) -> None:
        """Remove what deleted rows left behind in the text index and the write-ahead log."""
        if self.read_only:
            return
        with self._borrowed() as connection:
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close every connection that is not in use; calling it again does nothing."""
        self._closed = True
        while True:
            try:
                self._free.get_nowait().close()
            except queue.Empty:
                return

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid():  # the parent's connections must not be used or closed here
            self._inherited = self._free
            self._free, self._pid = queue.LifoQueue(), os.getpid()
        if self._closed:
            raise ClosedError("the store is closed; open it again")
        with self._told():
            try:
                connection = self._free.get(block=self._path is None)
            except queue.Empty:
                connection = self._open()
            try:
                yield connection
            finally:
                if self._closed:
                    connection.close()
                else:
                    self._free.put(connection)

    def _open(self) -> sqlite3.Connection:
        with self._told():
            connection = self._connect()
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _connect(self) -> sqlite3.Connection:
        if self._path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        path = self._path
        if path.is_dir():
            raise ProviderUnavailable(f"{path} is a folder; give the path of a file")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        mode = "rw"
        if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
            self.read_only = True
            alone = not Path(f"{path}-wal").exists()
            mode = "ro&immutable=1" if alone else "ro"
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Settings, and migrations where the file is behind; an up-to-date file is not written."""
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        if self._version(connection) == _VERSION:
            return
        if self.read_only:
            raise StorageFull(f"{self._path} is read-only and has to be made or migrated first")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in _MIGRATIONS[self._version(connection) :]:
                for statement in filter(str.strip, step.split(";\n")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION:d}")
            connection.execute(f"PRAGMA user_version = {_VERSION:d}")
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

    def _version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        application = int(connection.execute("PRAGMA application_id").fetchone()[0])
        empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if empty and version == 0:
            return 0
        if application != _APPLICATION:
            raise StoreCorrupt(f"{self._path} is a database of something else; name another file")
        if version > _VERSION:
            raise StoreCorrupt(f"{self._path} has format {version}; this Memsheaf knows {_VERSION}")
        return version

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise _ours(error, self._path) from error
        except OSError as error:
            raise ProviderUnavailable(f"{self._path} cannot be opened: {error.strerror}") from error


def _ours(error: sqlite3.Error, path: Path | None) -> ProviderError:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return StoreCorrupt(f"{path} is damaged or not a database; restore a backup")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR):
        return StorageFull(f"{path} cannot be written: the disk is full or read-only")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ProviderUnavailable(f"{path} is locked by another writer; try again")
    if code == sqlite3.SQLITE_CANTOPEN:
        return ProviderUnavailable(f"{path} cannot be opened; check folder and permissions")
    return ProviderError(f"{path}: SQLite refused ({type(error).__name__}, code {code})")
