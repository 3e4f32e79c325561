"""The sqlite store: text search, scopes, durability, and what it refuses."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import (
    ClosedError,
    Filter,
    IdUnavailable,
    MemoryRecord,
    ProviderUnavailable,
    Scope,
    StorageFull,
    StoreCorrupt,
    cursor_of,
)

MIRA = Scope(user_id="mira")
TOMAS = Scope(user_id="tomas")


def record(content: str, scope: Scope = MIRA, **fields: object) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=scope, **fields)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "data" / "memory.db")
    yield opened
    opened.close()


def contents(store: SqliteStore, text: str, scope: Scope = MIRA, limit: int = 10) -> list[str]:
    return [hit.record.content for hit in store.search(text, scope, limit, None)]


HOSTILE = [
    "KRT-512",
    "-KRT",
    '"--fail-on-warn"',
    "C++",
    "AND",
    "gate OR",
    "NOT gate",
    "NEAR(gate",
    "(gate",
    '"unclosed',
    "***",
    "std::map",
    "body:gate",
    "gate^2",
    "'; DROP TABLE records;--",
    "{content} : x",
    "a" * 5_000,
    "x " * 5_000,
    "\x00",
    "\ud800",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_any_string_is_a_valid_query(store: SqliteStore, query: str) -> None:
    store.store(record("use the AND gate, not the OR gate"))
    assert isinstance(store.search(query, MIRA, 5, None), list)
    assert contents(store, "gate") == ["use the AND gate, not the OR gate"]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=60))
def test_every_generated_text_can_be_stored_and_asked(store: SqliteStore, text: str) -> None:
    if text.strip():
        store.store(record(text, id="only"))
    assert all(0 <= (hit.relevance or 0) <= 1 for hit in store.search(text, MIRA, 5, None))


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Ticket KRT-512: rotate the certificate", "KRT-512"),
        ("C++ headers live in include/", "C++"),
        ("build with --fail-on-warn", "--fail-on-warn"),
        ("東京の天気はどうですか", "天気"),
        ("ผมชอบกาแฟดำมากกว่าชา", "กาแฟ"),
        ("l'été dernier à Nîmes", "ete"),
        ("l'été dernier à Nîmes", "nimes"),
        ("résumé of the call", "re\u0301sume\u0301"),
        ("re\u0301sume\u0301 of the call", "résumé"),
        ("deployment of the service", "deployments"),
        ("mail user@example.org today", "user@example.org"),
    ],
)
def test_words_are_found_as_people_type_them(store: SqliteStore, stored: str, asked: str) -> None:
    store.store(record(stored))
    store.store(record("something that has nothing to do with it"))
    assert contents(store, asked)[0] == stored


def test_a_better_match_scores_higher_and_relevance_is_a_share(store: SqliteStore) -> None:
    store.store(record("elixir otp supervision"))
    store.store(record("elixir pattern matching"))
    first, second = store.search("elixir supervision", MIRA, 5, None)
    assert first.record.content == "elixir otp supervision"
    assert first.score > second.score
    assert first.relevance == pytest.approx(1.0)
    assert second.relevance is not None
    assert 0 < second.relevance < 1


def test_tags_are_found(store: SqliteStore) -> None:
    store.store(record("water the plants", tags=["urgent"]))
    assert contents(store, "urgent") == ["water the plants"]


def test_blank_text_is_most_recent_and_a_future_time_outranks_nothing(store: SqliteStore) -> None:
    now = datetime.now(UTC)
    store.store(record("old", updated_at=now - timedelta(days=2), created_at=now - timedelta(2)))
    store.store(record("new", updated_at=now - timedelta(seconds=1), created_at=now))
    store.store(record("future", id="zz", created_at=now + timedelta(days=99)))
    assert contents(store, "  ")[1:] == ["new", "old"]
    assert contents(store, "!!!") == []


@pytest.mark.parametrize("name", ["%", "_", "*", "mir_", "mira' OR 1=1"])
def test_names_that_look_like_patterns_are_ordinary(store: SqliteStore, name: str) -> None:
    store.store(record("secret plans"))
    assert contents(store, "secret", Scope(user_id=name)) == []
    assert store.list(Scope(user_id=name), 10, None, "newest", None) == []


def test_scope_guards_every_verb(store: SqliteStore) -> None:
    mine = record("secret plans")
    store.store(mine)
    assert contents(store, "secret", TOMAS) == []
    assert store.get(mine.id, TOMAS) is None
    assert store.forget(mine.id, TOMAS) is False
    assert store.touch([mine.id], TOMAS) == 0
    changes = {"content": "stolen", "updated_at": datetime.now(UTC)}
    assert (
        store.update(
            mine.id,
            TOMAS,
            changes,
        )
        is False
    )
    with pytest.raises(IdUnavailable):
        store.store(record("mine now", TOMAS, id=mine.id))
    assert store.get(mine.id, MIRA) == mine
    assert contents(store, "secret", Scope(user_id="mira", agent_id="cook")) == []
    assert contents(store, "secret", Scope.EVERYONE) == ["secret plans"]


def test_replace_moves_the_index_and_an_older_copy_is_ignored(store: SqliteStore) -> None:
    first = record("Lena works at the bakery", id="1")
    store.store(first)
    store.store(first.changed({"content": "Lena works at the observatory"}))
    store.store(first)
    assert contents(store, "bakery") == []
    assert contents(store, "observatory") == ["Lena works at the observatory"]


def test_update_touches_only_what_it_names(store: SqliteStore) -> None:
    held = record("allergic to walnuts", tags=["health"], metadata={"source": "chat"})
    store.store(held)
    store.touch([held.id], MIRA)
    moment = held.updated_at + timedelta(seconds=1)
    assert store.update(held.id, MIRA, {"content": "allergic to pecans", "updated_at": moment})
    kept = store.get(held.id, MIRA)
    assert kept is not None
    assert (kept.content, kept.tags, kept.metadata) == (
        "allergic to pecans",
        ("health",),
        {"source": "chat"},
    )
    assert (kept.access_count, kept.updated_at, kept.created_at) == (1, moment, held.created_at)


def test_filters_are_applied_before_the_cut(store: SqliteStore) -> None:
    for place in range(20):
        store.store(record(f"cello lesson {place}", metadata={"n": place}))
    store.store(record("one cello decision among a great many other words", kind="decision"))
    kinds = Filter.make(kinds=["decision"])
    assert len(store.search("cello", MIRA, 3, kinds)) == 1
    assert len(store.search("cello", MIRA, 3, Filter.make(where={"n": 19}))) == 1


def test_pages_neither_overlap_nor_skip(store: SqliteStore) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    store.store_many([record(f"n{i}", id=f"id{i:02}", created_at=moment) for i in range(9)])
    seen: list[str] = []
    after = None
    while page := store.list(MIRA, 4, after, "oldest", None):
        seen += [r.id for r in page]
        after = cursor_of(page[-1])
    assert seen == [f"id{i:02}" for i in range(9)]
    assert store.list(MIRA, 0, None, "newest", None) == []


def test_expired_records_are_gone(store: SqliteStore) -> None:
    gone = record("old news", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    store.store(gone)
    assert contents(store, "news") == []
    assert store.get(gone.id, MIRA) is None
    assert store.list(MIRA, 10, None, "newest", None) == []


def test_forgotten_text_leaves_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    kept, secret = record("the cat is Biscuit"), record("my door code is zebra-canary-4471")
    store.store(kept)
    store.store(secret)
    assert store.forget(secret.id, MIRA) is True
    assert store.forget(secret.id, MIRA) is False
    store.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"canary" not in raw
    assert b"4471" not in raw
    assert b"Biscuit" in raw


def test_the_file_is_private(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "made" / "memory.db")
    store.store(record("private"))
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
    for path in (tmp_path / "made").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.close()


def test_threads_store_and_search_at_once(store: SqliteStore) -> None:
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for batch in range(5):
                store.store_many([record(f"word {worker} {batch} {i}") for i in range(10)])
                store.search("word", MIRA, 5, None)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert store.check() == "300 records"


def test_reading_goes_on_while_another_process_writes(store: SqliteStore, tmp_path: Path) -> None:
    store.store(record("cello"))
    writer = sqlite3.connect(tmp_path / "data" / "memory.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert contents(store, "cello") == ["cello"]
        again = SqliteStore(tmp_path / "data" / "memory.db")
        assert contents(again, "cello") == ["cello"]
        again.close()
    finally:
        writer.rollback()
        writer.close()


KILLED = """
import sys
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import MemoryRecord, Scope
store = SqliteStore(sys.argv[1])
for n in range(100_000):
    store.store(MemoryRecord(content=f"word {n}", scope=Scope(user_id="mira"), id=f"id{n}"))
    print(n, flush=True)
"""


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(30)]
    process.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in process.stdout.read().splitlines() if line.isdigit()]
    process.wait()
    process.stdout.close()
    store = SqliteStore(path)
    assert all(store.get(f"id{n}", MIRA) is not None for n in acknowledged)
    assert "records" in store.check()
    store.close()


def _child(store: SqliteStore, done: object) -> None:
    store.store(record("from the child", id="child"))
    os._exit(0 if contents(store, "child") else 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_connection(store: SqliteStore) -> None:
    store.store(record("from the parent"))
    child = multiprocessing.get_context("fork").Process(target=_child, args=(store, None))
    child.start()
    child.join(10)
    assert child.exitcode == 0
    assert store.get("child", MIRA) is not None
    assert store.check() == "2 records"


def test_a_file_of_something_else_is_refused_and_kept(tmp_path: Path) -> None:
    for name, raw in (("text.db", b"not a database at all, but a letter" * 50),):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(StoreCorrupt):
            SqliteStore(tmp_path / name)
        assert (tmp_path / name).read_bytes() == raw
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    other.close()
    with pytest.raises(StoreCorrupt, match="something else"):
        SqliteStore(tmp_path / "other.db")


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    connection = sqlite3.connect(tmp_path / "memory.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ProviderUnavailable, match="format 99"):
        SqliteStore(tmp_path / "memory.db")


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="folder"):
        SqliteStore(tmp_path)


def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    store.store(record("before"))
    with store._database._borrowed() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 4:d}")
    with pytest.raises(StorageFull):
        store.store_many([record("x " * 5_000, id=f"big{n}") for n in range(50)])
    with store._database._borrowed() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    assert store.get("big0", MIRA) is None
    store.store(record("after"))
    assert contents(store, "after") == ["after"]
    assert store.check() == "2 records"
    store.close()


def test_after_close_it_says_so(store: SqliteStore) -> None:
    store.close()
    store.close()
    with pytest.raises(ClosedError):
        store.search("x", MIRA, 1, None)


def test_opening_an_up_to_date_file_writes_nothing(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    before = (tmp_path / "memory.db").stat().st_mtime_ns
    time.sleep(0.02)
    SqliteStore(tmp_path / "memory.db").close()
    assert (tmp_path / "memory.db").stat().st_mtime_ns == before
