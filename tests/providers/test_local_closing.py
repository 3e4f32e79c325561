"""A local store that is closed while other threads use it: nothing is opened again."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.providers.oplog import DiskLog
from memsheaf.stack import ClosedError, Filter, MemoryRecord, Scope

MIRA = Scope(user_id="mira")
LONG = "tea " * 2_000  # longer than what is kept at hand


def open_files(folder: Path) -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue  # that of the listing itself
    return [name for name in found if name.startswith(str(folder))]


def test_a_search_that_is_under_way_opens_nothing_again(note: Any, tmp_path: Path) -> None:
    reached, closed = threading.Event(), threading.Event()

    class Waits(Filter):
        """Refuses all, the first one once the store is closed."""

        def matches(self, record: MemoryRecord) -> bool:
            reached.set()
            assert closed.wait(20)
            return False

    errors: list[Exception] = []

    def search() -> None:
        try:
            store.search("tea", MIRA, 1, Waits())
        except Exception as error:
            errors.append(error)

    store = LocalStore(tmp_path)
    store.store_many([note(LONG, id=name) for name in "abc"])
    thread = threading.Thread(target=search)
    thread.start()
    assert reached.wait(20)
    store.close()
    closed.set()
    thread.join()
    assert [type(error) for error in errors] == [ClosedError]
    assert open_files(tmp_path) == []


def test_threads_that_go_on_are_told_and_nothing_stays_open(note: Any, tmp_path: Path) -> None:
    calls: list[Callable[[LocalStore], object]] = [
        lambda store: store.search("tea", MIRA, 3, None),
        lambda store: store.search("", MIRA, 3, None),
        lambda store: store.get("a", MIRA),
        lambda store: store.list(MIRA, 3, None, "newest", None),
        lambda store: store.store(note("green tea")),
        lambda store: store.store_many([note("black tea")]),
        lambda store: store.touch(["a"], MIRA),
        lambda store: store.update("b", MIRA, {"importance": 0.7}),
        lambda store: store.forget("never", MIRA),
    ]
    errors: list[Exception] = []

    def ask(call: Callable[[LocalStore], object], store: LocalStore) -> None:
        going.wait()
        try:
            while True:
                call(store)
        except Exception as error:
            errors.append(error)

    for number in range(4):
        folder = tmp_path / str(number)
        store = LocalStore(folder)
        store.store_many([note(LONG, id=name) for name in "ab"])
        going = threading.Barrier(len(calls) + 1)
        threads = [threading.Thread(target=ask, args=(call, store)) for call in calls]
        for thread in threads:
            thread.start()
        going.wait()
        store.close()
        for thread in threads:
            thread.join()
        assert {type(error) for error in errors} == {ClosedError}
        assert open_files(folder) == []
        for call in calls:
            with pytest.raises(ClosedError):
                call(store)


def test_what_was_deleted_last_is_overwritten_when_the_log_closes(tmp_path: Path) -> None:
    log = DiskLog(tmp_path, 5.0)
    with log.writing() as writer:
        writer.push("a", '"secret oolong"', None)
    other = sqlite3.connect(tmp_path / "cache.db")  # keeps the write-ahead log in place
    assert other.execute("SELECT count(*) FROM Cache").fetchone() == (1,)
    with log.writing() as writer:
        writer.push("a", None, writer.find("a"))
    log.close()
    log.close()
    assert all(b"oolong" not in path.read_bytes() for path in tmp_path.iterdir())
    other.close()
    for call in (log.last, lambda: log.find(["a"]), lambda: next(log.tail(0)), log.cache):
        with pytest.raises(ClosedError):
            call()
    with pytest.raises(ClosedError), log.writing():
        pass
    assert open_files(tmp_path) == []
