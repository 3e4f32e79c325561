"""One SQLite file: a pool of connections, transactions, forks, and errors of ours."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsheaf.stack import (
    ClosedError,
    ProviderTimeout,
    ProviderUnavailable,
    StorageFull,
)
from memsheaf.stack.forking import watch_forks
from memsheaf.stack.sqlite_files import told

from .sqlite_schema import VERSION, migrate, version_of

__all__ = ["Database"]

_KEPT = 8  # idle connections
_SIBLINGS = ("-wal", "-shm", "-journal")


class Database:
    """A file and connections to it, safe in threads, processes and over a fork.

    Args:
        path: The file; None keeps the database in memory, on one connection.
        timeout: Seconds to wait for another writer.
    """

    def __init__(self, path: Path | None, timeout: float) -> None:
        self._path = None if path is None else Path(os.path.realpath(path))
        self._timeout = timeout
        self._gate = threading.Condition()
        self._writer = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._busy = 0
        self._forking = self._closed = False
        self._unclean = False
        self.read_only = False
        self._idle.append(self._open())
        watch_forks(self)

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
            if not self._writer.acquire(timeout=self._timeout):  # fairer than SQLite's polling
                raise ProviderTimeout(f"{self._path} is being written; try again")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
                if self._unclean:
                    self._empty_log(connection)
            finally:
                self._writer.release()

    def erase_on_commit(self) -> None:
        """Within `writing`: after the commit, empty the write-ahead log, which holds old pages."""
        self._unclean = True

    def close(self) -> None:
        """Close the connections, each when it is no longer used; again: nothing."""
        with self._gate:
            if not self._closed and self._unclean and self._idle:
                with told(self._path):
                    self._empty_log(self._idle[-1])
            self._closed = True
            self._close_idle()

    def before_fork(self) -> None:
        """Let running calls end and close the connections, which may not cross a fork."""
        self._gate.acquire()
        self._forking = True
        self._gate.wait_for(lambda: not self._busy, self._timeout)
        if self._path is not None:
            self._close_idle()

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or the child."""
        self._forking = False
        if child:
            stuck, self._busy = self._busy > 0, 0
            self._gate, self._writer = threading.Condition(), threading.Lock()
            self._closed = self._closed or stuck
        else:
            self._gate.notify_all()
            self._gate.release()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        with self._gate:
            self._gate.wait_for(
                lambda: not self._forking and (self._path is not None or not self._busy)
            )
            if self._closed:
                raise ClosedError("the store is closed; open it again")
            self._busy += 1
            connection = self._idle.pop() if self._idle else None
        try:
            with told(self._path):
                if connection is None:
                    connection = self._open()
                yield connection
        finally:
            with self._gate:
                self._busy -= 1
                kept = not self._closed and (self._path is None or len(self._idle) < _KEPT)
                if connection is not None and kept:
                    self._idle.append(connection)
                elif connection is not None:
                    connection.close()
                self._gate.notify_all()

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """Truncate the write-ahead log; one that a reader holds on to is left for the next time."""
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self._unclean = bool(busy)

    def _open(self) -> sqlite3.Connection:
        with told(self._path):
            if self._path is None:
                return self._prepared(":memory:")
            path = self._path
            self._make(path)
            uri = path.as_uri()
            if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
                return self._prepared(f"{uri}?mode=rw")
            self.read_only = True
            try:
                return self._prepared(f"{uri}?mode=ro")
            except sqlite3.OperationalError:
                log = Path(f"{path}-wal")
                if log.exists() and log.stat().st_size:
                    raise
                return self._prepared(f"{uri}?immutable=1")  # no log can be made beside the file

    def _make(self, path: Path) -> None:
        """Make folder and file, for their owner only; refuse what cannot be a store."""
        if path.is_dir():
            raise ProviderUnavailable(f"{path} is a folder; give the path of a file")
        for sibling in _SIBLINGS:
            if os.path.islink(f"{path}{sibling}"):
                raise ProviderUnavailable(f"{path}{sibling} is a symbolic link; remove it")
        if not path.exists():
            missing = [parent for parent in path.parents if not parent.exists()]
            for parent in reversed(missing):
                parent.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))

    def _prepared(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            name, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")  # the file may be anybody's
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            if version_of(connection) != VERSION:
                if self.read_only:
                    raise StorageFull(f"{self._path} is read-only and not of the present format")
                migrate(connection, self._timeout)
        except BaseException:
            connection.close()
            raise
        return connection
