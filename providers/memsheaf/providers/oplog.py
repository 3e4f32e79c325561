"""The log under the local store: each write is a row, the newest row of an id is the record."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol

from memsheaf.stack import ClosedError, StoreCorrupt
from memsheaf.stack.disk import DBNAME, SETTINGS, SharedCache, TextDisk, our_errors
from memsheaf.stack.disk_files import make_cache, open_reader

__all__ = ["DiskLog", "Log", "Row", "Writer"]

TOMBSTONE = "null"
_PREFIX = "log"
_BATCH = 2_000
_BY_TAGS = (
    "SELECT key, tag, mode, filename, value FROM Cache"
    " WHERE tag IN (SELECT value FROM json_each(?))"
)


class Row(NamedTuple):
    """One entry: its number, the record's id, and its JSON or None where it was forgotten."""

    sequence: int
    id: str
    text: str | None


class Writer(Protocol):
    """What a transaction may do."""

    def find(self, record_id: str) -> Row | None:
        """The newest row of an id."""

    def push(self, record_id: str, text: str | None, old: Row | None) -> None:
        """Write a row under the next number and delete the one that it replaces."""


class Log(Protocol):
    """Rows in order. `find` and `tail` see what was committed, by any process."""

    identity: str

    def last(self) -> int:
        """The newest number, 0 for an empty log."""

    def tail(self, after: int) -> Iterator[list[Row]]:
        """The rows after a number, in batches."""

    def find(self, record_ids: Sequence[str]) -> dict[str, Row]:
        """The newest row of each id that has one."""

    def writing(self) -> AbstractContextManager[Writer]:
        """A transaction."""

    def erase(self) -> bool:
        """Overwrite what was deleted; False where another process is reading: later."""

    def close(self) -> None:
        """Overwrite what was deleted and let go of the files; later calls may raise."""

    def quiesce(self) -> None:
        """Before a fork: take the locks and let go of the connections."""

    def resume(self) -> None:
        """After a fork, in parent and child."""


class DiskLog:
    """The log in a diskcache folder, shared by threads and processes.

    One connection writes and one reads, each under its own lock. Reading never takes the
    database's write lock, so that a search works while another process writes, and in a folder
    that cannot be written.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder, self._timeout = folder, timeout
        self.identity = ""
        self._write_lock, self._read_lock = threading.RLock(), threading.RLock()
        self._cache: SharedCache | None = None
        self._reader: sqlite3.Connection | None = None
        self._closed = False
        self._disk = TextDisk(str(folder))
        with our_errors(f"opening {folder}"):
            make_cache(folder, timeout, memsheaf_store=uuid.uuid4().hex)
            try:
                self._verify()
            except BaseException:
                self.close()
                raise

    def last(self) -> int:
        """The newest number, 0 for an empty log."""
        with self._reading() as read:
            row = read.execute(
                "SELECT key FROM Cache WHERE key > ? AND key < ? AND raw = 1"
                " ORDER BY key DESC LIMIT 1",
                _key_range(0),
            ).fetchone()
        return 0 if row is None else _sequence(row[0])

    def tail(self, after: int) -> Iterator[list[Row]]:
        """The rows after a number, in batches."""
        while True:
            with self._reading() as read:
                found = read.execute(
                    "SELECT key, tag, mode, filename, value FROM Cache"
                    " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key LIMIT ?",
                    (*_key_range(after), _BATCH),
                ).fetchall()
            rows = [self._row(*values) for values in found]
            if rows:
                yield rows
                after = rows[-1].sequence
            if len(rows) < _BATCH:
                return

    def find(self, record_ids: Sequence[str]) -> dict[str, Row]:
        """The newest row of each id that has one."""
        with self._reading() as read:
            found = read.execute(_BY_TAGS, (json.dumps(record_ids),)).fetchall()
        rows = [self._row(*values) for values in found]
        return {row.id: row for row in rows}

    def writing(self) -> AbstractContextManager[Writer]:
        """A transaction."""
        return _Writing(self, self._write_lock)

    def cache(self) -> SharedCache:
        """The cache that writes; whoever uses it holds the lock."""
        self._require_open()
        if self._cache is None:
            self._cache = SharedCache(str(self.folder), self._timeout, **SETTINGS)
        return self._cache

    def erase(self) -> bool:
        """Overwrite what was deleted; False where another process is reading: later."""
        with self._write_lock, our_errors(f"erasing in {self.folder}"):
            return self._cache is None or self._cache.truncate()

    def close(self) -> None:
        """Overwrite what was deleted and close for good; later calls raise `ClosedError`."""
        with self._write_lock, self._read_lock:
            self._closed = True
            try:
                self.erase()
            finally:
                self._let_go()

    def quiesce(self) -> None:
        """Before a fork: SQLite may not be open across it."""
        self._write_lock.acquire()
        self._read_lock.acquire()
        self._let_go()

    def resume(self) -> None:
        """After a fork, in parent and child: connections are opened when they are needed."""
        self._read_lock.release()
        self._write_lock.release()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the local store is closed; open a new one")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock, our_errors(f"reading {self.folder}"):
            self._require_open()
            if self._reader is None:
                self._reader = self._open_reader()
            yield self._reader

    def _open_reader(self) -> sqlite3.Connection:
        """Open for reading only; in a folder that cannot be written, as an immutable file."""
        try:
            return open_reader(self.folder, self._timeout)
        except sqlite3.OperationalError:
            log = self.folder / f"{DBNAME}-wal"
            if os.access(self.folder, os.W_OK) or (log.exists() and log.stat().st_size):
                raise
            return open_reader(self.folder, self._timeout, "mode=ro&immutable=1")

    def _verify(self) -> None:
        """Refuse a database that is not a store of ours, or newer than this code."""
        with self._reading() as read:
            settings = dict(read.execute("SELECT key, value FROM Settings").fetchall())
        wrong = [name for name, value in SETTINGS.items() if settings.get(name) != value]
        if wrong or not isinstance(settings.get("memsheaf_store"), str):
            raise StoreCorrupt(
                f"{self.folder} holds a diskcache that is not a store of this version of Memsheaf; "
                "name another folder"
            )
        self.identity = settings["memsheaf_store"]

    def _row(self, key: str, tag: str, mode: int, filename: str | None, value: object) -> Row:
        text = self._disk.fetch(mode, filename, value, False)
        return Row(_sequence(key), tag, None if text == TOMBSTONE else text)


class _Writing(AbstractContextManager[Writer]):
    """A transaction under the lock; a class, because generators would cost a tenth of a write."""

    def __init__(self, log: DiskLog, lock: threading.RLock) -> None:
        self._log, self._lock = log, lock

    def __enter__(self) -> Writer:
        self._lock.acquire()
        try:
            cache = self._log.cache()
            self._transaction = cache.transaction()
            self._transaction.__enter__()
        except BaseException:
            self._lock.release()
            with our_errors(f"writing to {self._log.folder}"):
                raise
        return _DiskWriter(cache)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._transaction.__exit__(kind, error, trace)
        except BaseException as another:
            error = another
        finally:
            self._lock.release()
        if error is not None:
            with our_errors(f"writing to {self._log.folder}"):
                raise error


class _DiskWriter:
    def __init__(self, cache: SharedCache) -> None:
        self._cache = cache

    def find(self, record_id: str) -> Row | None:
        found = self._cache.find(record_id)
        if found is None:
            return None
        key, text = found
        return Row(_sequence(key), record_id, None if text == TOMBSTONE else text)

    def push(self, record_id: str, text: str | None, old: Row | None) -> None:
        # the old row goes last: the newest number is never free to be given again
        self._cache.append(_PREFIX, TOMBSTONE if text is None else text, record_id)
        if old is not None:
            self._cache.drop(_key(old.sequence))


def _key(sequence: int) -> str:
    return f"{_PREFIX}-{sequence:015d}"


def _key_range(after: int) -> tuple[str, str]:
    return _key(after), f"{_PREFIX}-999999999999999"


def _sequence(key: str) -> int:
    return int(key.rpartition("-")[2])
