"""Rows in a diskcache folder: by key, in key order, and by tag in the order of their writing."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from memsheaf.stack import ClosedError, StoreCorrupt
from memsheaf.stack.disk import SETTINGS, SharedCache, TextDisk, our_errors
from memsheaf.stack.disk_files import make_cache, open_reader
from memsheaf.stack.forking import watch_forks

__all__ = ["Reader", "Row", "RowStore", "Writer"]

_FORMAT = 1
_COLUMNS = "SELECT rowid, key, mode, filename, value FROM Cache "
_BY_KEY = _COLUMNS + "WHERE key = ? AND raw = 1"
_TAG = "SELECT tag FROM Cache WHERE key = ? AND raw = 1"
_BY_RANGE = _COLUMNS + "WHERE key >= ? AND key < ? AND raw = 1 ORDER BY key LIMIT ?"
_BY_TAG = _COLUMNS + "WHERE tag = ? AND rowid > ? ORDER BY rowid LIMIT ?"
_PUT = (
    "INSERT INTO Cache (key, raw, store_time, expire_time, access_time, access_count, tag, size,"
    " mode, filename, value) VALUES (?, 1, ?, NULL, ?, 0, ?, ?, ?, ?, ?)"
    " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, tag = excluded.tag,"
    " value = excluded.value"
)
_ERASE_SECONDS = 2.0
_OWED = "erasure"


class Row(NamedTuple):
    """A row; among rows of one tag the number grows in the order of their writing."""

    number: int
    key: str
    value: str


class Reader:
    """What was committed, as one connection sees it."""

    def __init__(self, connection: sqlite3.Connection, disk: TextDisk) -> None:
        self._connection, self._disk = connection, disk

    def get(self, key: str) -> str | None:
        """The value of a key."""
        found = self._rows(_BY_KEY, (key,))
        return found[0].value if found else None

    def tag(self, key: str) -> str | None:
        """The tag of a key's row, found without reading its value."""
        found: tuple[str | None] | None = self._connection.execute(_TAG, (key,)).fetchone()
        return None if found is None else found[0]

    def between(self, start: str, end: str, limit: int = -1) -> list[Row]:
        """Rows whose key is at least `start` and below `end`, in the order of keys."""
        return self._rows(_BY_RANGE, (start, end, limit))

    def under(self, prefix: str, limit: int = -1) -> list[Row]:
        """Rows whose key starts with a prefix that ends in a slash."""
        return self.between(prefix, prefix[:-1] + chr(ord("/") + 1), limit)

    def tagged(self, tag: str, limit: int = -1, after: int = 0) -> list[Row]:
        """Rows of a tag, oldest first."""
        return self._rows(_BY_TAG, (tag, after, limit))

    def _rows(self, query: str, values: tuple[str | int, ...]) -> list[Row]:
        return [
            Row(number, key, self._disk.fetch(mode, filename, value, False))
            for number, key, mode, filename, value in self._connection.execute(query, values)
        ]


class Writer(Reader):
    """What a transaction may do."""

    def put(self, key: str, value: str, tag: str | None = None) -> None:
        """Write a row; one that is there keeps its number."""
        now = time.time()
        self._connection.execute(_PUT, (key, now, now, tag, *self._disk.store(value, False)))

    def delete(self, key: str) -> None:
        """Delete a row, if it is there."""
        self._connection.execute("DELETE FROM Cache WHERE key = ? AND raw = 1", (key,))


class RowStore:
    """A folder of rows that threads and processes share.

    One connection writes and one reads, each under its own lock, so that reading never waits for
    another process that writes.

    Args:
        folder: Made with mode 0700 where it is missing.
        timeout: Seconds to wait for another writer.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder, self._timeout = folder, timeout
        self._write_lock, self._read_lock = threading.RLock(), threading.RLock()
        self._cache: SharedCache | None = None
        self._reader: sqlite3.Connection | None = None
        self._closed = False
        self._secret = b""
        self._disk = TextDisk(str(folder))
        with our_errors(f"opening {folder}"):
            make_cache(folder, timeout, memsheaf_users=_FORMAT, memsheaf_secret=uuid.uuid4().hex)
            try:
                self._verify()
            except BaseException:
                self.close()
                raise
        watch_forks(self)

    def digest(self, text: str) -> str:
        """A name for a text from which the text cannot be told without this store."""
        return blake2b(text.encode(), digest_size=16, key=self._secret).hexdigest()

    def before_fork(self) -> None:
        """Let go of the files: SQLite may not be open across a fork."""
        self._write_lock.acquire()
        self._read_lock.acquire()
        self._let_go()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the files are opened when they are needed."""
        self._read_lock.release()
        self._write_lock.release()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Read what was committed."""
        with self._read_lock, our_errors(f"reading {self.folder}"):
            if self._reader is None:
                self._reader = self._connect()
            yield Reader(self._reader, self._disk)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """A transaction: all of it is committed, or nothing."""
        with self._write_lock, our_errors(f"writing to {self.folder}"):
            cache = self._opened()
            with cache.transaction():
                yield Writer(cache._con, self._disk)

    def owe_erasure(self, rows: Writer) -> None:
        """Note, in the transaction that deletes, that its bytes are to be overwritten."""
        rows.put(_OWED, "")

    def erase(self) -> bool:
        """Overwrite what is owed; False where a reader of another process is in the way."""
        with self.reading() as rows:
            if rows.get(_OWED) is None:
                return True
        until = time.monotonic() + min(self._timeout, _ERASE_SECONDS)
        while not self._truncated():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        with self.writing() as rows:
            rows.delete(_OWED)
        return True

    def _truncated(self) -> bool:
        with self._write_lock, our_errors(f"erasing in {self.folder}"):
            return self._opened().truncate()

    def close(self) -> None:
        """Close both connections; later calls raise `ClosedError`."""
        with self._write_lock, self._read_lock:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    def _opened(self) -> SharedCache:
        if self._closed:
            raise ClosedError("the user model is closed; open a new one")
        if self._cache is None:
            self._cache = SharedCache(str(self.folder), self._timeout, **SETTINGS)
        return self._cache

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise ClosedError("the user model is closed; open a new one")
        return open_reader(self.folder, self._timeout)

    def _verify(self) -> None:
        """Refuse a database that is not a user model, or newer than this code."""
        with self._read_lock:
            self._reader = self._connect()
            found = dict(self._reader.execute("SELECT key, value FROM Settings").fetchall())
        wanted = {**SETTINGS, "memsheaf_users": _FORMAT}
        if any(found.get(name) != value for name, value in wanted.items()):
            raise StoreCorrupt(
                f"{self.folder} holds no user model of this version of Memsheaf; name another "
                "folder"
            )
        self._secret = str(found["memsheaf_secret"]).encode()
