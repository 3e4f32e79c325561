"""The folder of a local store: restarts, kills, other processes, forks, full and foreign disks."""

import multiprocessing
import os
import pickle
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import diskcache
import pytest

from memsheaf.index import BM25Index
from memsheaf.providers import live_view, local_view
from memsheaf.providers.local import LocalStore
from memsheaf.providers.oplog import Row
from memsheaf.stack import (
    MemoryRecord,
    ProviderTimeout,
    ProviderUnavailable,
    Scope,
    StorageFull,
    StoreCorrupt,
)

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


def note(content: str, **fields: object) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=MIRA, **fields)


def ids(store: LocalStore, text: str = "", limit: int = 10_000) -> set[str]:
    return {hit.id for hit in store.search(text, MIRA, limit, None)}


def start(folder: Path, name: str, count: int, *extra: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count), *extra],
        stdout=subprocess.PIPE,
        text=True,
    )


def forked(body: Callable[[], None], seconds: float = 20) -> None:
    """Run a function in a forked child; it must end well and in time."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(int(seconds))
            body()
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def contents(folder: Path) -> bytes:
    return b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        store.touch(["a"], MIRA)
    with LocalStore(tmp_path) as store:
        assert ids(store, "tea") == {"a"}
        held = store.get("a", MIRA)
        assert held is not None
        assert held.access_count == 1


def test_kill_nine_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
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


def test_processes_see_each_other(tmp_path: Path) -> None:
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


def test_processes_may_make_the_folder_at_once(tmp_path: Path) -> None:
    for attempt in range(3):
        children = [start(tmp_path / str(attempt), name, 1) for name in "abcd"]
        for child in children:
            child.communicate()
        assert [child.returncode for child in children] == [0] * 4
        with LocalStore(tmp_path / str(attempt)) as store:
            assert ids(store) == {f"{name}-0" for name in "abcd"}


def test_an_empty_file_is_a_store_that_was_never_made(tmp_path: Path) -> None:
    (tmp_path / "cache.db").touch()
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        assert ids(store) == {"a"}


def test_threads_write_and_search(tmp_path: Path) -> None:
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
def test_a_fork_while_another_thread_stores(tmp_path: Path, on_disk: bool) -> None:
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


def test_a_forgotten_text_is_nowhere_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    with LocalStore(tmp_path) as store:
        filler = [note(f"filler {n} " + "lorem " * (n % 90), id=f"f{n}") for n in range(200)]
        store.store_many(filler)
        for n in range(100):
            store.store(
                note(f"my door code is zebra-canary-4471 {n} " + "z" * (n * 97), id=f"c{n}")
            )
            store.store(note(f"more {n}", id=f"g{n}"))
        store.store(note("the old words: quagga", id="u"))
        assert ids(store, "canary")
    assert b"canary" in contents(tmp_path)
    assert (tmp_path / "index").exists()
    with LocalStore(tmp_path) as store:
        for n in range(100):
            assert store.forget(f"c{n}", MIRA)
        store.update("u", MIRA, {"content": "new words"})
        assert not any(word in contents(tmp_path) for word in (b"canary", b"zebra", b"quagga"))
        assert ids(store, "canary") == set()
    assert not any(word in contents(tmp_path) for word in (b"canary", b"zebra", b"quagga"))
    with LocalStore(tmp_path) as store:
        assert len(ids(store)) == 301


def test_forgetting_in_one_process_reaches_the_index_of_another(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as one, LocalStore(tmp_path) as other:
        one.store(note("zebra", id="a"))
        assert ids(other, "zebra") == {"a"}
        one.forget("a", MIRA)
        assert ids(other, "zebra") == set()
        one.store(note("zebra", id="a"))
        assert ids(other, "zebra") == {"a"}


@pytest.mark.parametrize("damage", ["none", "stale", "torn", "foreign"])
def test_a_snapshot_is_used_only_where_it_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    for where, word in ((folder, "tea"), (other, "coffee")):
        with LocalStore(where) as store:
            store.store_many([note(f"{word} {n}", id=f"r{n}") for n in range(50)])
            assert ids(store, word)
    catalog = folder / "index" / "catalog.npz"
    if damage == "stale":
        monkeypatch.setattr(live_view, "_WORTH_SAVING", 10_000)
        with LocalStore(folder) as store:
            store.store(note("tea late", id="late"))
    elif damage == "torn":
        catalog.write_bytes(catalog.read_bytes()[:300])
    elif damage == "foreign":
        for file in (folder / "index").rglob("*"):
            if file.is_file():
                file.unlink()
        (other / "index").rename(folder / "index2")
        for file in (folder / "index2" / "text").iterdir():
            file.rename(folder / "index" / "text" / file.name)
        (folder / "index2" / "catalog.npz").rename(catalog)
    replayed: list[int] = []
    apply = local_view.View.apply

    def counted(view: local_view.View, batches: Iterable[list[Row]]) -> None:
        rows = [row for batch in batches for row in batch]
        replayed.append(len(rows))
        apply(view, [rows] if rows else [])

    monkeypatch.setattr(local_view.View, "apply", counted)
    with LocalStore(folder) as store:
        expected = {f"r{n}" for n in range(50)} | ({"late"} if damage == "stale" else set())
        assert ids(store, "tea") == ids(store) == expected
        assert ids(store, "coffee") == set()
        assert sum(replayed) == {"none": 0, "stale": 1}.get(damage, 50)


@pytest.mark.parametrize("change", ["forget", "update", "replace"])
def test_the_saved_index_holds_nothing_of_what_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    saved = tmp_path / "index"

    def bytes_of(folder: Path) -> bytes:
        return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())

    with LocalStore(tmp_path) as store:
        store.store_many([note(f"tea number {n}", id=f"r{n:04}") for n in range(3_000)])
        store.store(note("hunter2xyzzy tea", id="r-secret"))
    assert b"hunter2xyzzy" in bytes_of(saved)
    with LocalStore(tmp_path) as store:
        if change == "forget":
            assert store.forget("r-secret", MIRA)
        elif change == "update":
            assert store.update("r-secret", MIRA, {"content": "milk"})
        else:
            store.store(note("milk", id="r-secret"))
        assert not saved.exists()
        assert ids(store, "hunter2xyzzy") == set()
    assert b"hunter2xyzzy" not in bytes_of(tmp_path)
    assert (b"r-secret" in bytes_of(saved)) == (change != "forget")
    kept = BM25Index.load(saved / "text")
    assert all(segment.gone == 0 for segment in kept._store.segments)
    assert kept._store.vocabulary.find("hunter2xyzzy") is None
    with LocalStore(tmp_path) as store:
        assert ids(store, "milk") == (set() if change == "forget" else {"r-secret"})
        assert len(ids(store, "tea")) == 3_000


def test_a_flipped_byte_of_the_saved_index_is_never_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    with LocalStore(tmp_path / "a") as store:
        store.store_many([note(f"tea number{n}", id=f"r{n}") for n in range(40)])
        expected = [(hit.id, hit.score) for hit in store.search("tea number7", MIRA, 99, None)]
    saved = {
        file: file.read_bytes() for file in (tmp_path / "a" / "index").rglob("*") if file.is_file()
    }
    rng = random.Random(7)
    for file, data in saved.items():
        for at in rng.sample(range(len(data)), 4):
            for other, content in saved.items():
                other.parent.mkdir(parents=True, exist_ok=True)
                other.write_bytes(content)
            file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
            store = LocalStore(tmp_path / "a")
            found = [(hit.id, hit.score) for hit in store.search("tea number7", MIRA, 99, None)]
            assert found == expected
            assert ids(store) == {f"r{n}" for n in range(40)}
            store.close()


def test_recalls_do_not_index_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    with LocalStore(tmp_path) as store:
        store.store_many([note(f"tea number{n}", id=f"r{n}") for n in range(20)])
        assert len(ids(store, "tea")) == 20
        assert store.touch([f"r{n}" for n in range(20)], MIRA) == 20
        assert len(ids(store, "tea")) == 20
        view = store._opened().current()
        assert view.index._store.inserted == 20
        store.store(note("milk", id="r3"))
        assert ids(store, "milk") == {"r3"}
        store.forget("r3", MIRA)
        store.store(note("milk", id="r3"))
        assert ids(store, "milk") == {"r3"}
    with LocalStore(tmp_path) as store:
        assert store.touch(["r3"], MIRA) == 1
        assert ids(store, "milk") == {"r3"}
        held = store.get("r3", MIRA)
        assert held is not None
        assert held.access_count == 1


def test_searching_needs_no_write_lock(tmp_path: Path) -> None:
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


def test_permissions_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with LocalStore(tmp_path / "s") as store:
            store.store(note("tea"))
            files = [tmp_path / "s", *(tmp_path / "s").iterdir()]
            modes = {f.name: f.stat().st_mode & 0o777 for f in files}
    finally:
        os.umask(before)
    assert modes.pop("s") == 0o700
    assert set(modes.values()) == {0o600}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_read_only_folder_can_be_searched(open_folder: Path) -> None:
    folder = open_folder / "s"
    with LocalStore(folder) as store:
        store.store(note("tea", id="a"))
    for file in folder.rglob("*"):
        file.chmod(0o444)
    folder.chmod(0o555)

    def body() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        store = LocalStore(folder)
        assert ids(store, "tea") == {"a"}
        with pytest.raises((StorageFull, ProviderUnavailable)):
            store.store(note("more"))
        assert ids(store, "tea") == {"a"}
        store.close()

    forked(body)
    folder.chmod(0o700)


def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))

    def body() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
        store = LocalStore(tmp_path)
        told = store.store_many([note("x" * 10_000, id=f"r{n}") for n in range(500)])
        assert {type(t) for t in told} == {StorageFull}, told[0]
        assert ids(store) == {"a"}
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        store.store(note("tea", id="b"))
        assert ids(store) == {"a", "b"}
        store.close()

    forked(body)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    store = LocalStore(path)
    with pytest.raises(ProviderUnavailable, match="file"):
        store.check()
    assert path.read_text() == "mine"


def test_damage_is_told_and_nothing_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    path.write_bytes(b"not a database " * 1000)
    store = LocalStore(tmp_path)
    with pytest.raises(StoreCorrupt):
        store.search("x", MIRA, 1, None)
    with pytest.raises(StoreCorrupt):
        store.store(note("x"))
    assert path.read_bytes() == b"not a database " * 1000


def test_a_foreign_cache_is_refused(tmp_path: Path) -> None:
    with diskcache.Cache(str(tmp_path)) as cache:
        cache["a"] = {"b"}
    with pytest.raises(StoreCorrupt, match="another folder"):
        LocalStore(tmp_path).check()


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /nowhere/exploded",)


def test_a_pickle_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
    direct = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    direct.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(_Bomb()),))
    direct.close()
    monkeypatch.setattr(pickle, "load", lambda *_: pytest.fail("unpickled"))
    with LocalStore(tmp_path) as store:
        for call in (
            lambda: store.search("tea", MIRA, 1, None),
            lambda: store.get("a", MIRA),
            lambda: store.forget("a", MIRA),
        ):
            with pytest.raises(StoreCorrupt):
                call()


def test_no_connection_outlives_its_store(tmp_path: Path) -> None:
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


def test_a_spawned_process_shares_the_folder(tmp_path: Path) -> None:
    assert "fork" in multiprocessing.get_all_start_methods()
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        child = start(tmp_path, "c", 1)
        child.communicate()
        assert ids(store) == {"a", "c-0"}
