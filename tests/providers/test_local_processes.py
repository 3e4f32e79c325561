"""Threads, processes and forks on one folder of a local store, and kills at any moment."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.stack import ProviderTimeout, Scope

Forked = Callable[[Callable[[], None]], None]
MIRA = Scope(user_id="mira")

WRITER = """
import sys
from memsheaf.providers.local import LocalStore
from memsheaf.providers.oplog import Row
from memsheaf.stack import MemoryRecord, Scope
store, name = LocalStore(sys.argv[1], timeout=30), sys.argv[2]
scope = Scope(user_id="mira")
for n in range(int(sys.argv[3])):
    id = f"{name}-{n}"
    store.store(MemoryRecord(id=id, content=f"tea {id}", scope=scope))
    print("+" + id, flush=True)
    if n % 5 == 4:
        store.forget(id, scope)
        print("-" + id, flush=True)
if len(sys.argv) > 4:
    store.touch(["shared"] , scope)
store.close()
"""


def start(folder: Path, name: str, count: int, *extra: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count), *extra],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_kill_nine_loses_nothing_that_was_acknowledged(ids: Any, tmp_path: Path) -> None:
    children = [start(tmp_path, name, 100_000) for name in "abc"]
    complete: list[str] = []
    for child in children:
        assert child.stdout is not None
        complete += [child.stdout.readline().strip() for _ in range(10)]
    for child in children:
        child.send_signal(signal.SIGKILL)
    for child in children:
        complete += [line for line in child.communicate()[0].splitlines() if line.strip()]
    stored = {line[1:] for line in complete if line[0] == "+"}
    forgotten = {line[1:] for line in complete if line[0] == "-"}
    assert len(stored) > 20
    with LocalStore(tmp_path) as store:
        held = ids(store)
        assert ids(store, "tea") == held
    in_flight = {id for id in stored if id.endswith(("4", "9"))} - forgotten
    assert stored - forgotten - in_flight <= held
    assert not forgotten & held
    check = sqlite3.connect(tmp_path / "cache.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_processes_see_each_other(note: Any, ids: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="shared"))
        assert ids(store) == {"shared"}
        children = [start(tmp_path, name, 20, "touch") for name in "abcd"]
        for child in children:
            child.communicate()
            assert child.returncode == 0
        assert len(ids(store)) == 1 + 4 * 16
        assert ids(store, "tea") == ids(store)
        held = store.get("shared", MIRA)
        assert held is not None
        assert held.access_count == 4


def test_processes_may_make_the_folder_at_once(ids: Any, tmp_path: Path) -> None:
    for attempt in range(3):
        children = [start(tmp_path / str(attempt), name, 1) for name in "abcd"]
        for child in children:
            child.communicate()
        assert [child.returncode for child in children] == [0] * 4
        with LocalStore(tmp_path / str(attempt)) as store:
            assert ids(store) == {f"{name}-0" for name in "abcd"}


def test_threads_write_and_search(note: Any, ids: Any, tmp_path: Path) -> None:
    errors: list[BaseException] = []
    done = threading.Event()
    with LocalStore(tmp_path) as store:

        def write(name: int) -> None:
            try:
                for batch in range(20):
                    told = store.store_many(
                        [note("tea", id=f"{name}-{batch}-{n}") for n in range(10)]
                    )
                    assert told == [None] * 10
            except BaseException as error:
                errors.append(error)

        def read() -> None:
            try:
                while not done.is_set():
                    store.search("tea", MIRA, 10, None)
                    store.list(MIRA, 10, None, "newest", None)
            except BaseException as error:
                errors.append(error)

        reader = threading.Thread(target=read)
        writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        reader.join()
        assert errors == []
        assert len(ids(store)) == len(ids(store, "tea")) == 1600


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_fork_while_another_thread_stores(
    note: Any, ids: Any, tmp_path: Path, on_disk: bool, forked: Forked
) -> None:
    store = LocalStore(tmp_path if on_disk else None)
    stop = threading.Event()

    def keep_storing() -> None:
        n = 0
        while not stop.is_set():
            store.store(note("tea", id=f"parent-{n}"))
            store.search("tea", MIRA, 3, None)
            n += 1

    def child() -> None:
        store.store(note("coffee", id=f"child-{os.getpid()}"))
        assert store.search("coffee", MIRA, 100, None)
        store.close()

    thread = threading.Thread(target=keep_storing)
    thread.start()
    try:
        for _ in range(5):
            forked(child)
    finally:
        stop.set()
        thread.join()
    assert len(ids(store, "coffee")) == (5 if on_disk else 0)
    assert ids(store, "tea")
    store.close()


def test_searching_needs_no_write_lock(note: Any, ids: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
    holder = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with LocalStore(tmp_path, timeout=0.1) as store:
        assert ids(store, "tea") == {"a"}
        with pytest.raises(ProviderTimeout):
            store.store(note("more"))
    holder.execute("ROLLBACK")
    holder.close()


def test_no_connection_outlives_its_store(note: Any, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    threads = [
        threading.Thread(target=lambda n=n: store.store(note("tea", id=str(n)))) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.search("tea", MIRA, 1, None)
    store.close()
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in _fds()]
    assert not [name for name in held if name.startswith(str(tmp_path))]


def _fds() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]


def test_a_spawned_process_shares_the_folder(note: Any, ids: Any, tmp_path: Path) -> None:
    assert "fork" in multiprocessing.get_all_start_methods()
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        child = start(tmp_path, "c", 1)
        child.communicate()
        assert ids(store) == {"a", "c-0"}
