"""The sqlite store's files: what leaves them, who may open them, forks, processes, disks."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memsheaf.providers.sqlite import FACTORY, SqliteOptions, SqliteStore
from memsheaf.stack import (
    Filter,
    MemoryRecord,
    ProviderContext,
    ProviderTimeout,
    ProviderUnavailable,
    Scope,
    StoreCorrupt,
)

MIRA = Scope(user_id="mira")


def record(content: str, **fields: object) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=MIRA, **fields)


def contents(store: SqliteStore, text: str) -> list[str]:
    return [hit.record.content for hit in store.search(text, MIRA, 50, None)]


def raw(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "memory.db")
    yield opened
    opened.close()


def test_forgotten_text_has_left_the_files_when_forget_returns(
    store: SqliteStore, tmp_path: Path
) -> None:
    secret = record("my door code is zebra-canary-4471", tags=["zulu"], metadata={"k": "yankee"})
    store.store_many([record("the cat is Biscuit"), secret])
    assert store.forget(secret.id, MIRA)
    for trace in (b"canary", b"4471", b"zulu", b"yankee", b"yanke"):
        assert trace not in raw(tmp_path)
    assert contents(store, "Biscuit") == ["the cat is Biscuit"]


def test_replaced_text_has_left_the_files(store: SqliteStore, tmp_path: Path) -> None:
    first = record("Lena works at the quillbakery", metadata={"note": "xerographic"})
    store.store(first)
    store.update(first.id, MIRA, {"content": "Lena works", "updated_at": datetime.now(UTC)})
    assert b"quillbak" not in raw(tmp_path)
    store.update(first.id, MIRA, {"metadata": {}, "updated_at": datetime.now(UTC)})
    assert b"xerographic" not in raw(tmp_path)


def test_nothing_forgotten_stays_among_many(store: SqliteStore, tmp_path: Path) -> None:
    choice = random.Random(7)

    def secret(n: int) -> str:
        return f"unique{n:05d}mark " * choice.randint(1, 60)

    held = {f"id{n}": n for n in range(120)}
    store.store_many([record(secret(n), id=key) for key, n in held.items()])
    gone = choice.sample(sorted(held), 40)
    for key in gone[:30]:
        assert store.forget(key, MIRA)
    for key in gone[30:]:
        assert store.update(key, MIRA, {"content": "plain", "updated_at": datetime.now(UTC)})
    left = raw(tmp_path)
    assert [key for key in gone if f"{held[key]:05d}mark".encode() in left] == []
    assert all(f"{held[key]:05d}mark".encode() in left for key in held if key not in gone)
    assert store.check() == "90 records"
    with sqlite3.connect(tmp_path / "memory.db") as other:
        other.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    other.close()


def test_log_that_a_reader_holds_is_emptied_later(store: SqliteStore, tmp_path: Path) -> None:
    secret = record("zebra-canary-4471")
    store.store(secret)
    reader = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM records").fetchone()
    store._database._timeout = 0.1
    with store._database._borrowed() as connection:
        connection.execute("PRAGMA busy_timeout = 100")
    assert store.forget(secret.id, MIRA)
    assert contents(store, "canary") == []
    reader.rollback()
    reader.close()
    store.close()
    assert b"canary" not in raw(tmp_path)


def test_opening_needs_no_write_lock(store: SqliteStore, tmp_path: Path) -> None:
    store.store(record("cello"))
    writer = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        for _ in range(20):
            again = SqliteStore(tmp_path / "memory.db", timeout=0.1)
            assert contents(again, "cello") == ["cello"]
            again.close()
        impatient = SqliteStore(tmp_path / "memory.db", timeout=0.1)
        with pytest.raises(ProviderTimeout):
            impatient.store(record("late"))
        impatient.close()
    finally:
        writer.rollback()
        writer.close()


READ_ONLY = """
import os, sys, urllib.parse  # the interpreter may lie where only root can read
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import MemoryRecord, Scope, StorageFull
os.setgid(65534); os.setuid(65534)
mira = Scope(user_id="mira")
store = SqliteStore(sys.argv[1])
assert [h.record.content for h in store.search("cello", mira, 5, None)] == ["the cello"]
assert "read-only" in store.check()
try:
    store.store(MemoryRecord(content="more", scope=mira))
except StorageFull:
    print("refused")
store.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("still_open", [False, True], ids=["closed", "open elsewhere"])
def test_file_of_another_user_can_be_searched(still_open: bool) -> None:
    # pytest's own folders are closed to others, so this one lies beside them
    folder = Path(os.path.realpath(subprocess.check_output(["mktemp", "-d"], text=True).strip()))
    try:
        store = SqliteStore(folder / "memory.db")
        store.store(record("the cello"))
        if not still_open:
            store.close()
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)
        run = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder / "memory.db")],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (run.stdout.strip(), run.stderr) == ("refused", "")
        store.close()
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_planted_link_beside_the_file_is_not_followed(tmp_path: Path, suffix: str) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    (tmp_path / f"memory.db{suffix}").symlink_to(victim)
    with pytest.raises(ProviderUnavailable, match="symbolic link"):
        SqliteStore(tmp_path / "memory.db")
    assert victim.read_text() == "precious"


def test_linked_file_is_opened_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "memory.db").symlink_to(tmp_path / "real" / "memory.db")
    store = SqliteStore(tmp_path / "memory.db")
    store.store(record("cello"))
    assert (tmp_path / "real" / "memory.db-wal").exists()
    store.close()


def test_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(ProviderUnavailable, match="cannot be opened"):
        SqliteStore(tmp_path / "data" / "memory.db")
    assert (tmp_path / "data").read_text() == "a file"


def test_damaged_pages_are_told_and_nothing_is_deleted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    store.store_many([record(f"cello {n} " * 50) for n in range(50)])
    store.close()
    data = bytearray((tmp_path / "memory.db").read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    (tmp_path / "memory.db").write_bytes(data)
    damaged = SqliteStore(tmp_path / "memory.db")
    for call in (
        lambda: damaged.search("cello", MIRA, 5, None),
        lambda: damaged.store(record("more")),
        damaged.check,
    ):
        with pytest.raises(StoreCorrupt):
            call()
    damaged.close()
    assert (tmp_path / "memory.db").stat().st_size == len(data)


MAKER = """
import sys
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import MemoryRecord, Scope
store = SqliteStore(sys.argv[1], timeout=30)
for n in range(10):
    store.store(MemoryRecord(content=f"word {sys.argv[2]} {n}", scope=Scope(user_id="mira")))
store.close()
"""


def test_processes_make_and_fill_one_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "memory.db"
    makers = [subprocess.Popen([sys.executable, "-c", MAKER, str(path), str(n)]) for n in range(4)]
    assert [maker.wait(90) for maker in makers] == [0, 0, 0, 0]
    store = SqliteStore(path)
    assert len(contents(store, "word")) == 40
    assert store.check() == "40 records"
    store.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_another_thread_writes(store: SqliteStore) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            store.store(record("from a thread"))

    thread = threading.Thread(target=write)
    thread.start()
    children = []
    try:
        for n in range(5):
            pid = os.fork()
            if pid == 0:
                try:
                    store.store(record(f"from child {n}"))
                    found = contents(store, f"child {n}")
                    store.close()
                    os._exit(0 if f"from child {n}" in found else 1)
                finally:
                    os._exit(2)
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 5
    finally:
        stop.set()
        thread.join()
    listed = store.list(MIRA, 100_000, None, "newest", None)
    assert {f"from child {n}" for n in range(5)} <= {r.content for r in listed}
    assert store.check() == f"{len(listed)} records"


def test_fork_in_memory(tmp_path: Path) -> None:
    store = SqliteStore()
    store.store(record("cello"))
    pid = os.fork()
    if pid == 0:
        os._exit(0 if contents(store, "cello") == ["cello"] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    store.close()


def test_batch_refuses_by_record_and_keeps_the_rest(store: SqliteStore) -> None:
    taken = MemoryRecord(content="held", scope=Scope(user_id="tomas"))
    store.store(taken)
    outcomes = store.store_many([record("one"), record("two", id=taken.id), record("three")])
    assert [type(o).__name__ for o in outcomes] == ["NoneType", "IdUnavailable", "NoneType"]
    assert store.check() == "3 records"


def test_relevance_uses_the_statistics_of_the_scope(store: SqliteStore) -> None:
    tomas = Scope(user_id="tomas")
    store.store_many([MemoryRecord(content=f"cello {n}", scope=tomas) for n in range(30)])
    store.store_many([record("cello"), record("violin lesson"), record("viola lesson")])
    found = {h.record.content: h.relevance for h in store.search("cello lesson", MIRA, 5, None)}
    assert found["cello"] is not None
    assert found["violin lesson"] is not None
    assert found["cello"] > found["violin lesson"]  # rare for mira, whatever tomas holds


def test_records_that_hold_only_what_all_hold_follow_the_others(store: SqliteStore) -> None:
    store.store_many([record(f"cello {word}") for word in ("lesson", "case", "string")])
    hits = store.search("cello case", MIRA, 10, None)
    assert hits[0].record.content == "cello case"
    assert len(hits) == 3
    assert hits[0].score > hits[1].score
    assert [h.id for h in store.search("cello case", MIRA, 2, None)] == [h.id for h in hits[:2]]


def test_filter_reaches_far_down_the_ranking(store: SqliteStore) -> None:
    store.store_many([record("cello " * 5, metadata={"n": n}) for n in range(400)])
    store.store(record("one cello among a good many other words", metadata={"n": -1}))
    found = store.search("cello", MIRA, 3, Filter.make(where={"n": -1}))
    assert [hit.record.metadata for hit in found] == [{"n": -1}]


def test_factory_places_the_file(tmp_path: Path) -> None:
    context = ProviderContext("notes", tmp_path / "notes", timeout=1.0)
    store = FACTORY.build(SqliteOptions(), context)
    assert (tmp_path / "notes" / "memory.db").exists()
    elsewhere = FACTORY.build(SqliteOptions(path=tmp_path / "x.db"), context)
    assert isinstance(store, SqliteStore)
    assert isinstance(elsewhere, SqliteStore)
    assert (tmp_path / "x.db").exists()
    store.close()
    elsewhere.close()


def test_words_of_most_records_do_not_hide_what_holds_only_them(store: SqliteStore) -> None:
    store.store_many([record(f"cello case {n}") for n in range(6)])
    store.store(record("violin"))
    for _ in range(2):  # the second time it is remembered that both words are common
        assert len(contents(store, "cello case")) == 6
        assert contents(store, "cello violin")[0] == "violin"
        assert len(contents(store, "cello violin")) == 7
    store.store_many([record(f"piano {n}") for n in range(40)])
    assert len(contents(store, "cello piano")) == 46


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER kept AFTER DELETE ON records BEGIN SELECT 1; END",
        "CREATE VIEW seen AS SELECT * FROM records",
    ],
)
def test_a_file_that_would_run_what_it_holds_is_refused(tmp_path: Path, planted: str) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(planted)
    with pytest.raises(StoreCorrupt, match="triggers or views"):
        SqliteStore(path)
    assert path.exists()
