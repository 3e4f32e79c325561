"""The file of a ledger, or its place in memory, for threads, processes and forks."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsheaf.stack import ClosedError, ProviderUnavailable, StoreCorrupt
from memsheaf.stack.disk import our_errors
from memsheaf.stack.forking import watch_forks
from memsheaf.stack.sqlite_files import write_ahead

__all__ = ["LedgerFile"]

_SCHEMA = """
    CREATE TABLE sent (
        number INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        conversation TEXT NOT NULL,
        turn TEXT NOT NULL,
        block_id TEXT NOT NULL,
        text TEXT NOT NULL,
        mark TEXT NOT NULL DEFAULT '',
        UNIQUE (owner, conversation, turn)
    );
    CREATE TABLE held (
        record_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (record_id, number)
    ) WITHOUT ROWID;
    CREATE TABLE issued (number INTEGER PRIMARY KEY, block_id TEXT NOT NULL UNIQUE);
    CREATE TABLE dropped (number INTEGER PRIMARY KEY, record_id TEXT NOT NULL);
"""
_FROM_VERSION_1 = """
    ALTER TABLE sent ADD COLUMN mark TEXT NOT NULL DEFAULT '';
    CREATE TABLE dropped (number INTEGER PRIMARY KEY, record_id TEXT NOT NULL);
"""
_VERSION = 2


class LedgerFile:
    """A SQLite database with the tables of a ledger.

    Attributes:
        lock: Held by whoever uses the connection.
        opened: How often it was opened: before and after a fork it is not the same connection.

    Args:
        path: The file, for its owner only; None is memory.
        timeout: Seconds to wait for another process that writes.
    """

    def __init__(self, path: Path | None, timeout: float) -> None:
        self._path, self._timeout = path, timeout
        self.lock = threading.RLock()
        self.opened = 0
        self._connection: sqlite3.Connection | None = None
        self._closed = self._owed = False
        with self.using():
            pass  # what is wrong with the file is said at once
        watch_forks(self)

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """The connection, under the lock."""
        with self.lock, our_errors(f"the ledger {self._path or 'in memory'}"):
            if self._closed:
                raise ClosedError("the ledger is closed; open it again")
            if self._connection is None:
                self._connection = self._connect()
                self.opened += 1
                # One that lives in memory is often not closed by anybody.
                self._finalizer = weakref.finalize(self, self._connection.close)
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a write transaction: all of it is kept, or nothing."""
        with self.using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if self._owed:
                self._empty_log(connection)

    def overwrite(self) -> None:
        """Empty the write-ahead log, which holds deleted text.

        Where another reader holds it up, the next write, or closing, does it.
        """
        with self.using() as connection:
            self._owed = True
            self._empty_log(connection)

    def close(self) -> None:
        """Let go of the file; calling it again does nothing."""
        with self.lock:
            if self._owed and self._connection is not None:
                self._empty_log(self._connection)
            self._closed = True
            self._disconnect()

    def before_fork(self) -> None:
        """Let go of the file, which may not be open across a fork."""
        self.lock.acquire()
        if self._path is not None:
            self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the file is opened when it is needed."""
        self.lock.release()

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:  # another process is at it; it stays owed
            return
        self._owed = bool(busy)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._finalizer()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None:
            _make(self._path)
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            write_ahead(connection, self._timeout)
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _make(path: Path) -> None:
    """Make folder and file for their owner only; a link could lead anywhere."""
    for ending in ("", "-wal", "-shm"):
        if os.path.islink(f"{path}{ending}"):
            raise ProviderUnavailable(f"{path}{ending} is a symbolic link; remove it")
    for folder in reversed([f for f in path.absolute().parents if not f.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (version == 0 and tables == 0) or version == 1:
        for statement in (_FROM_VERSION_1 if version else _SCHEMA).split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    elif version != _VERSION:
        raise StoreCorrupt("it is no ledger of this version of Memsheaf; name another file")
    connection.execute("COMMIT")
