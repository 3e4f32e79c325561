"""A statement of a store waits for whoever holds the database, in all the ways SQLite says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.stack.disk import SETTINGS, SharedCache
from memsheaf.stack.sqlite_files import write_ahead


class Held:
    """A connection whose first statements find the database held."""

    def __init__(self, connection: sqlite3.Connection, code: int, times: int) -> None:
        self._connection, self._code, self._times = connection, code, times

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        if self._times:
            self._times -= 1
            error = sqlite3.OperationalError("held")
            error.sqlite_errorcode = self._code
            raise error
        return self._connection.execute(*arguments)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[SharedCache]:
    opened = SharedCache(str(tmp_path), 5.0, **SETTINGS)
    yield opened
    opened.close()


def hold(cache: SharedCache, code: int, times: int) -> None:
    assert cache._shared is not None
    cache._shared = Held(cache._shared, code, times)  # type: ignore[assignment]


@pytest.mark.parametrize(
    "name", ["BUSY", "LOCKED", "BUSY_RECOVERY", "BUSY_SNAPSHOT", "LOCKED_SHAREDCACHE"]
)
def test_a_held_database_is_tried_again(cache: SharedCache, name: str) -> None:
    hold(cache, getattr(sqlite3, f"SQLITE_{name}"), times=3)
    assert cache._sql_retry("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("name", ["FULL", "IOERR_WRITE", "CORRUPT"])
def test_any_other_failure_is_told_at_once(cache: SharedCache, name: str) -> None:
    hold(cache, getattr(sqlite3, f"SQLITE_{name}"), times=1)
    with pytest.raises(sqlite3.OperationalError):
        cache._sql_retry("SELECT 1")
    assert cache._sql_retry("SELECT 1").fetchone() == (1,)


def test_the_wait_ends(cache: SharedCache) -> None:
    cache._patience = 0.01
    hold(cache, sqlite3.SQLITE_BUSY_RECOVERY, times=10**6)
    with pytest.raises(sqlite3.OperationalError):
        cache._sql_retry("SELECT 1")


@pytest.mark.parametrize("name", ["BUSY", "BUSY_RECOVERY", "BUSY_SNAPSHOT"])
def test_the_switch_to_write_ahead_waits_for_another_one(tmp_path: Path, name: str) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    held = Held(connection, getattr(sqlite3, f"SQLITE_{name}"), times=2)
    write_ahead(held, 5.0)  # type: ignore[arg-type]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
