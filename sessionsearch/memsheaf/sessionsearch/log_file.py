"""The file of a conversation log: connections, transactions, forks, and errors of ours."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsheaf.stack import (
    ClosedError,
    ProviderTimeout,
    ProviderUnavailable,
)
from memsheaf.stack.forking import watch_forks
from memsheaf.stack.sqlite_files import told, write_ahead

from .log_schema import VERSION, format_of, migrate

__all__ = ["LogFile"]

_KEPT = 8  # idle connections
_PAUSE = 0.005  # seconds between two tries where SQLite itself does not wait


class LogFile:
    """One SQLite file, safe in threads, processes and over a fork.

    Args:
        path: The file; it and its missing folders are made for their owner only.
        timeout: Seconds to wait for another writer.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = Path(os.path.realpath(path))
        self._timeout = timeout
        self._idle: list[sqlite3.Connection] = []
        self._busy = self.commits = 0
        self._forking = self.closed = False
        self._set_locks()
        with told(self.path):
            self._make()
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
                raise ProviderTimeout(f"{self.path} is being written; try again")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
            finally:
                self._writer.release()
        with self._lock:
            self.commits += 1
            self._committed.notify_all()

    def wait(self, commits: int, seconds: float) -> None:
        """Wait until this process has committed more than `commits` times, or for `seconds`."""
        with self._lock:
            self._committed.wait_for(lambda: self.commits != commits or self.closed, seconds)

    def empty_log(self, seconds: float) -> bool:
        """Truncate the write-ahead log, which holds old pages; False where a reader holds it."""
        until = time.monotonic() + seconds
        with self._borrowed() as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            try:
                while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    if time.monotonic() > until:
                        return False
                    time.sleep(_PAUSE)
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(self._timeout * 1000):d}")
        return True

    def close(self) -> None:
        """Close the connections, each when it is no longer used; again: nothing."""
        with self._lock:
            self.closed = True
            self._close_idle()
            self._committed.notify_all()

    def before_fork(self) -> None:
        """Let running calls end and close the connections, which may not cross a fork."""
        self._lock.acquire()
        self._forking = True
        self._free.wait_for(lambda: not self._busy, self._timeout)
        self._close_idle()

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or the child."""
        self._forking = False
        if child:
            self.closed = self.closed or self._busy > 0
            self._busy = 0
            self._set_locks()
        else:
            self._free.notify_all()
            self._lock.release()

    def _set_locks(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._committed = threading.Condition(self._lock)
        self._writer = threading.Lock()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._free.wait_for(lambda: not self._forking)
            if self.closed:
                raise ClosedError("the conversation log is closed; open it again")
            self._busy += 1
            connection = self._idle.pop() if self._idle else None
        try:
            with told(self.path):
                if connection is None:
                    connection = self._open()
                yield connection
        finally:
            with self._lock:
                self._busy -= 1
                if connection is not None:
                    if self.closed or self._forking or len(self._idle) >= _KEPT:
                        connection.close()
                    else:
                        self._idle.append(connection)
                if self._forking:
                    self._free.notify_all()

    def _make(self) -> None:
        """Make folder and file, for their owner only; refuse what cannot be a log."""
        if self.path.is_dir():
            raise ProviderUnavailable(f"{self.path} is a folder; give the path of a file")
        for ending in ("-wal", "-shm", "-journal"):
            if os.path.islink(f"{self.path}{ending}"):
                raise ProviderUnavailable(f"{self.path}{ending} is a symbolic link; remove it")
        for folder in reversed([f for f in self.path.parents if not f.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN")  # one moment: others may be making the tables just now
            version = format_of(connection)
            connection.rollback()
            if version != VERSION:
                write_ahead(connection, self._timeout)
                migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection
