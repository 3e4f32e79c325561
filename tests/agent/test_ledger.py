"""What was sent is kept per scope and conversation, in memory or in a file."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import BlockLedger
from memsheaf.agent.ledger import Sent
from memsheaf.stack import (
    ClosedError,
    ForgetReport,
    ProviderError,
    ProviderUnavailable,
    Scope,
    ScopeError,
    StoreCorrupt,
    UsageError,
)

MIRA, OTTO = Scope(user_id="mira"), Scope(user_id="otto")
Open = Callable[..., BlockLedger]


@pytest.fixture(params=["memory", "file"])
def open_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[BlockLedger] = []

    def make(**options: Any) -> BlockLedger:
        path = tmp_path / "deep" / "ledger.db" if request.param == "file" else None
        opened.append(BlockLedger(path, **options))
        return opened[-1]

    yield make
    for ledger in opened:
        ledger.close()


def test_a_turn_keeps_what_it_was_sent_first(open_ledger: Open) -> None:
    ledger = open_ledger()
    assert ledger.sent(MIRA, "c") == {}
    assert ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one", ["m1"]) == Sent("aaaaaaaa", "one")
    assert ledger.keep(MIRA, "c", "t1", "bbbbbbbb", "two") == Sent("aaaaaaaa", "one")
    assert ledger.keep(MIRA, "c", "t2") == Sent("", "")
    assert ledger.sent(MIRA, "c") == {"t1": Sent("aaaaaaaa", "one"), "t2": Sent("", "")}
    assert "aaaaaaaa" in ledger
    assert "bbbbbbbb" not in ledger
    assert "" not in ledger
    for foreign in (None, 7, object(), "\ud800", "' OR 1=1 --"):
        assert foreign not in ledger
    ledger.issue("bbbbbbbb")
    ledger.issue("bbbbbbbb")
    assert "bbbbbbbb" in ledger


def test_another_scope_or_conversation_knows_nothing_of_it(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one")
    for scope in (OTTO, Scope(user_id="mira", agent_id="cook"), Scope(agent_id="mira")):
        assert ledger.sent(scope, "c") == {}
    assert ledger.sent(MIRA, "d") == {}
    ledger.keep(OTTO, "c", "t1", "bbbbbbbb", "two")
    assert ledger.sent(MIRA, "c") == {"t1": Sent("aaaaaaaa", "one")}


def test_any_text_is_kept(open_ledger: Open) -> None:
    ledger = open_ledger()
    text = "大提琴 \U0001f3bb '\"; DROP TABLE sent; -- \\ \x01"
    ledger.keep(Scope(user_id=text.strip("\x01")), text, text, "aaaaaaaa", text, [text])
    assert ledger.sent(Scope(user_id=text.strip("\x01")), text)[text].text == text
    assert ledger.drop([text]) == 1


def test_what_no_file_can_hold_is_replaced_in_a_block(open_ledger: Open) -> None:
    ledger = open_ledger()
    made = ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "a\ud800b\x00c\udfff", ["m1"])
    assert made == Sent("aaaaaaaa", "a\ufffdb\ufffdc\ufffd")
    assert ledger.sent(MIRA, "c") == {"t1": made}
    assert ledger.drop(["\ud800", "m\x00", "m1"]) == 1


@pytest.mark.parametrize("hostile", ["\ud800", "a\x00", 7])
def test_ids_that_cannot_be_kept_are_refused(open_ledger: Open, hostile: Any) -> None:
    ledger = open_ledger()
    with pytest.raises(UsageError, match="block_id"):
        ledger.issue(hostile)
    with pytest.raises(UsageError, match="block_id"):
        ledger.keep(MIRA, "c", "t1", hostile, "one")
    with pytest.raises(UsageError, match="record"):
        ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one", ["m1", hostile])
    with pytest.raises(UsageError, match="mark"):
        ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one", mark=hostile)
    with pytest.raises(UsageError, match="mark"):
        ledger.outdate(MIRA, hostile)
    assert ledger.sent(MIRA, "c") == {}


@pytest.mark.parametrize("name", ["\ud800", "a\x00", 7, b"c"])
def test_a_name_that_cannot_be_kept_is_refused(open_ledger: Open, name: Any) -> None:
    ledger = open_ledger()
    with pytest.raises(UsageError, match="turn"):
        ledger.keep(MIRA, "monday", name, "aaaaaaaa", "one")
    with pytest.raises(UsageError, match="conversation"):
        ledger.keep(MIRA, name, "t1", "aaaaaaaa", "one")
    with pytest.raises(UsageError, match="conversation"):
        ledger.sent(MIRA, name)
    with pytest.raises(UsageError, match="conversation"):
        ledger.erase(MIRA, name)


def test_a_text_that_cannot_be_kept_is_not_taken_for_a_known_turn(open_ledger: Open) -> None:
    ledger = open_ledger()
    nothing: Any = None
    with pytest.raises(UsageError, match="text"):
        ledger.keep(MIRA, "monday", "t1", "aaaaaaaa", nothing)
    assert ledger.sent(MIRA, "monday") == {}


def test_blocks_with_a_forgotten_memory_are_emptied(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one", ["m1", "m2"])
    ledger.keep(MIRA, "c", "t2", "bbbbbbbb", "two", ["m2"])
    ledger.keep(OTTO, "c", "t1", "cccccccc", "three", ["m3"])
    assert ledger.drop(["m9"]) == 0
    ledger.after_forget(ForgetReport("m1", True, ("m1",), (), (), ()))
    assert ledger.sent(MIRA, "c") == {"t1": Sent("", ""), "t2": Sent("bbbbbbbb", "two")}
    assert ledger.drop(["m1", "m2"]) == 1
    assert ledger.sent(OTTO, "c") == {"t1": Sent("cccccccc", "three")}
    assert "aaaaaaaa" in ledger  # an echo of it may still come


def test_a_scope_can_be_erased(open_ledger: Open) -> None:
    ledger = open_ledger()
    cook = Scope(user_id="mira", agent_id="cook")
    for scope in (MIRA, cook, OTTO):
        for conversation in ("c", "d"):
            ledger.keep(scope, conversation, "t1", "aaaaaaaa", "one", ["m1"])
    assert ledger.erase(cook, "c") == 1
    assert ledger.erase(MIRA) == 3
    assert ledger.sent(MIRA, "c") == ledger.sent(cook, "d") == {}
    assert ledger.sent(OTTO, "d") == {"t1": Sent("aaaaaaaa", "one")}
    with pytest.raises(ScopeError):
        ledger.erase(Scope())
    assert ledger.drop(["m1"]) == 2
    assert ledger.erase(Scope.EVERYONE) == 2


def test_it_is_bounded_and_the_oldest_go_first(open_ledger: Open) -> None:
    ledger = open_ledger(turns=10, ids=20)
    for n in range(100):
        ledger.keep(MIRA, "c", f"t{n}", f"{n:08x}", f"text {n}", [f"m{n}"])
        kept = ledger.sent(MIRA, "c")
        assert len(kept) <= 10
        assert f"t{n}" in kept
    assert f"{99:08x}" in ledger
    assert f"{70:08x}" not in ledger
    assert sum(f"{n:08x}" in ledger for n in range(100)) in range(10, 21)
    assert ledger.drop([f"m{n}" for n in range(100)]) == len(kept)
    smallest = open_ledger(turns=1, ids=1)
    for n in range(5):
        smallest.keep(OTTO, "c", f"t{n}", f"{n:08x}", "text")
        assert list(smallest.sent(OTTO, "c")) == [f"t{n}"]
        assert f"{n:08x}" in smallest
    for wrong in ({"turns": 0}, {"ids": 0}):
        with pytest.raises(UsageError):
            open_ledger(**wrong)


def test_a_closed_ledger_says_so(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.close()
    ledger.close()
    with pytest.raises(ClosedError):
        assert "aaaaaaaa" in ledger


def test_threads_may_share_it(open_ledger: Open) -> None:
    ledger = open_ledger()
    results: list[Sent] = []

    def work(name: str) -> None:
        for n in range(25):
            results.append(ledger.keep(MIRA, "c", f"t{n}", f"{name}{n:07x}", name))
            ledger.sent(MIRA, "c")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = ledger.sent(MIRA, "c")
    assert len(kept) == 25
    assert len(results) == 100
    assert set(results) == set(kept.values())


def test_a_file_is_durable_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "ledger.db"
    one = BlockLedger(path)
    one.keep(MIRA, "c", "t1", "aaaaaaaa", "one")
    two = BlockLedger(str(path))  # a second one sees it at once
    assert two.sent(MIRA, "c") == {"t1": Sent("aaaaaaaa", "one")}
    two.keep(MIRA, "c", "t2", "bbbbbbbb", "two")
    assert "bbbbbbbb" in one
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0
    for folder in (path.parent, path.parent.parent):
        assert folder.stat().st_mode & 0o077 == 0
    one.close()
    two.close()
    with_third = BlockLedger(path)
    assert len(with_third.sent(MIRA, "c")) == 2
    with_third.close()


def test_forgotten_text_is_not_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = BlockLedger(path)
    secret = "the cello is in the blue cellar"
    ledger.keep(MIRA, "c", "t1", "aaaaaaaa", secret * 40, ["m1"])
    ledger.keep(MIRA, "d", "t1", "bbbbbbbb", secret * 40, ["m2"])
    assert any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    ledger.drop(["m1"])
    ledger.erase(MIRA, "d")
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    ledger.close()


@pytest.mark.parametrize("content", [b"no database at all" * 99, None])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ledger.db"
    if content is None:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE notes (text TEXT)")
        other.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt):
        BlockLedger(path)
    if content is not None:
        assert path.read_bytes() == before
    newer = tmp_path / "newer.db"
    BlockLedger(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    with pytest.raises(StoreCorrupt, match="version"):
        BlockLedger(newer)


_VERSION_1 = """
    CREATE TABLE sent (
        number INTEGER PRIMARY KEY, owner TEXT NOT NULL, conversation TEXT NOT NULL,
        turn TEXT NOT NULL, block_id TEXT NOT NULL, text TEXT NOT NULL,
        UNIQUE (owner, conversation, turn)
    );
    CREATE TABLE held (
        record_id TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (record_id, number)
    ) WITHOUT ROWID;
    CREATE TABLE issued (number INTEGER PRIMARY KEY, block_id TEXT NOT NULL UNIQUE);
    INSERT INTO sent VALUES (1, '["mira", null, null, null]', 'c', 't1', 'aaaaaaaa', 'one');
    INSERT INTO held VALUES ('m1', 1);
    INSERT INTO issued VALUES (1, 'aaaaaaaa');
    PRAGMA user_version = 1;
"""


def test_a_file_of_the_first_format_is_brought_up_to_date(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(_VERSION_1)
    connection.close()
    for _ in range(2):
        ledger = BlockLedger(tmp_path / "old.db")
        assert ledger.sent(MIRA, "c")["t1"] == Sent("aaaaaaaa", "one")
        assert "aaaaaaaa" in ledger
        ledger.close()
    ledger = BlockLedger(tmp_path / "old.db")
    assert ledger.outdate(MIRA, "any") == 0
    assert ledger.drop(["m1"]) == 1
    ledger.close()


def test_what_was_dropped_since_is_not_kept(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.drop(["m1"])
    before = ledger.dropped()
    ledger.drop(["m2"])
    assert ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one", ["m1"], since=before).text == "one"
    gone = ledger.keep(MIRA, "c", "t2", "bbbbbbbb", "two", ["m1", "m2"], since=before)
    assert gone == ledger.sent(MIRA, "c")["t2"] == Sent("", "")
    assert "bbbbbbbb" not in ledger
    assert ledger.keep(MIRA, "c", "t3", "cccccccc", "two", ["m2"], since=ledger.dropped()).text
    assert ledger.keep(MIRA, "c", "t4", "dddddddd", "two", ["m2"]).text


def test_blocks_of_another_mark_are_emptied_in_their_scope(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one", ["m1"], mark="old")
    ledger.keep(MIRA, "d", "t1", "bbbbbbbb", "two", mark="old")
    ledger.keep(MIRA, "c", "t2", "cccccccc", "three", ["m1"])
    ledger.keep(MIRA, "c", "t3", "dddddddd", "four", mark="new")
    ledger.keep(OTTO, "c", "t1", "eeeeeeee", "five", mark="old")
    assert ledger.outdate(MIRA, "new") == 2
    assert ledger.outdate(MIRA, "new") == 0
    assert [sent.text for sent in ledger.sent(MIRA, "c").values()] == ["", "three", "four"]
    assert [sent.text for sent in ledger.sent(MIRA, "d").values()] == [""]
    assert ledger.sent(OTTO, "c")["t1"] == Sent("eeeeeeee", "five", "old")
    assert ledger.drop(["m1"]) == 1
    ledger.keep(MIRA, "c", "t4", "ffffffff", "six", ["m2"], mark="new")
    ledger.drop(["m2"])
    assert ledger.sent(MIRA, "c")["t4"] == Sent("", "")
    assert ledger.outdate(MIRA, "newer") == 1


def test_a_path_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        BlockLedger(tmp_path)  # a folder
    real = tmp_path / "real.db"
    BlockLedger(real).close()
    link = tmp_path / "link.db"
    link.symlink_to(real)
    with pytest.raises(ProviderUnavailable, match="link"):
        BlockLedger(link)


_WRITES = """
import sys
from memsheaf.agent import BlockLedger
from memsheaf.stack import Scope
ledger = BlockLedger(sys.argv[1])
for n in range(10_000):
    ledger.keep(Scope(user_id="mira"), "c", f"t{n}", f"{n:08x}", "text " * 50)
    print(n, flush=True)
"""


def test_what_was_kept_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITES, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    last = -1
    while last < 40:
        last = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    last = max([last, *(int(line) for line in child.stdout if line.endswith("\n"))])
    child.stdout.close()
    child.wait()
    ledger = BlockLedger(path)
    kept = ledger.sent(MIRA, "c")
    assert {f"t{n}" for n in range(last + 1)} <= kept.keys()
    ledger.close()


_KEEPS = """
import sys
from memsheaf.agent import BlockLedger
from memsheaf.stack import Scope
ledger = BlockLedger(sys.argv[1])
for n in range(30):
    ledger.keep(Scope(user_id="mira"), "c", f"t{n}", f"{n:07x}{sys.argv[2]}", sys.argv[2])
ledger.close()
"""


def test_processes_may_open_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    children = [subprocess.Popen([sys.executable, "-c", _KEEPS, str(path), name]) for name in "abc"]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    ledger = BlockLedger(path)
    assert len(ledger.sent(MIRA, "c")) == 30
    ledger.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_goes_on_in_both(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "one")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        ledger.keep(MIRA, "c", "t2", "bbbbbbbb", "two")
        os.write(write, json.dumps(sorted(ledger.sent(MIRA, "c"))).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert json.loads(os.read(read, 100)) == ["t1", "t2"]
    os.close(read)
    ledger.keep(MIRA, "c", "t3", "cccccccc", "three")
    assert {"t1", "t3"} <= ledger.sent(MIRA, "c").keys()


def test_an_erasure_that_a_reader_holds_up_is_done_by_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = BlockLedger(path, timeout=0.1)
    ledger.keep(MIRA, "c", "t1", "aaaaaaaa", "unforgettable words", ["m1"])
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sent").fetchone()
    ledger.drop(["m1"])
    everything = [path, Path(f"{path}-wal")]
    assert any(b"unforgettable" in file.read_bytes() for file in everything)
    reader.close()
    ledger.keep(MIRA, "c", "t2", "bbbbbbbb", "other words")
    assert not any(b"unforgettable" in file.read_bytes() for file in everything)
    ledger.close()
