"""Appending, reading, scope, keys, deletion: what one process sees."""

from __future__ import annotations

import math
import random
import re
import sqlite3
import stat
import traceback
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch import ConversationLog, Item, ItemOrigin, NewItem
from memsheaf.stack import (
    ClosedError,
    IdUnavailable,
    InvalidQuery,
    InvalidRecord,
    NotFound,
    ProviderTimeout,
    ProviderUnavailable,
    Scope,
    ScopeError,
    StoreCorrupt,
)

MIRA = Scope(user_id="mira")
OTTO = Scope(user_id="otto")


def said(text: str, **fields: Any) -> NewItem:
    return NewItem("message", text, **fields)


def seqs(items: list[Item]) -> list[int]:
    return [item.seq for item in items]


def test_numbers_go_on_in_each_conversation(log: ConversationLog) -> None:
    assert [i.id for i in log.append("c", [said("a"), said("b")], MIRA)] == ["c:0", "c:1"]
    assert [i.id for i in log.append("d", said("x"), MIRA)] == ["d:0"]
    assert [i.id for i in log.append("c", said("c"), MIRA)] == ["c:2"]


def test_reading_by_place_type_limit_and_order(log: ConversationLog) -> None:
    log.append("c", [said("a"), NewItem("tool_call", "b"), said("c")], MIRA)
    assert seqs(log.items("c", MIRA, after=0)) == [1, 2]
    assert seqs(log.items("c", MIRA, before=2)) == [0, 1]
    assert seqs(log.items("c", MIRA, types="message")) == [0, 2]
    assert seqs(log.items("c", MIRA, types=["tool_call", "none"])) == [1]
    assert seqs(log.items("c", MIRA, types=[])) == []
    assert seqs(log.items("c", MIRA, limit=2)) == [0, 1]
    assert seqs(log.items("c", MIRA, limit=0)) == []
    assert seqs(log.items("c", MIRA, order="desc")) == [2, 1, 0]
    assert seqs(log.items("c", MIRA, order="desc", limit=2)) == [2, 1]  # the newest
    assert seqs(log.items("c", MIRA, limit=None, after=-1)) == [0, 1, 2]
    assert log.items("unknown", MIRA) == []


def test_a_conversation_tells_its_last_number_and_count(log: ConversationLog) -> None:
    log.append("c", [said("a", created_at=2_000), said("b", created_at=1_000)], MIRA, title="Cello")
    found = log.conversation("c", MIRA)
    assert (found.last_seq, found.item_count, found.title) == (1, 2, "Cello")
    assert found.created_at == datetime.fromtimestamp(1_000, UTC)
    assert found.updated_at == datetime.fromtimestamp(2_000, UTC)
    with pytest.raises(NotFound):
        log.conversation("unknown", MIRA)
    log.append("empty", [], MIRA, metadata={"project": "/home/mira/src"})
    empty = log.conversation("empty", MIRA)
    assert (empty.last_seq, empty.item_count) == (None, 0)
    assert empty.metadata == {"project": "/home/mira/src"}


def test_all_that_was_given_comes_back_after_reopening(log_path: Path) -> None:
    given = NewItem(
        "tool_result",
        "füße \x00 \ud800 日本",
        role="tool",
        origin=ItemOrigin.TOOL,
        data={"name": "run", "arguments": {"n": [1, None, 2.5]}},
        metadata={"id": "u-1", "parent": "u-0", "model": "m", "project": "/p", "branch": "main"},
        created_at="2026-03-01T09:00:00+02:00",
        status="failed",
        response_id="r1",
    )
    with ConversationLog(log_path) as log:
        (added,) = log.append("c", given, MIRA)
    with ConversationLog(log_path) as log:
        (item,) = log.items("c", MIRA)
        assert log.item("c:0", MIRA) == item == added
    assert item.text == "füße \ufffd \ufffd 日本"
    assert (item.data, item.metadata) == (given.data, given.metadata)
    assert item.created_at == datetime(2026, 3, 1, 7, tzinfo=UTC)
    assert (item.status, item.response_id, item.origin) == ("failed", "r1", "tool")


def test_the_defaults_of_an_item() -> None:
    item = Item("c", 3, "message")
    assert (item.id, item.status, item.data) == ("c:3", "completed", {})
    with pytest.raises(TypeError):
        Item("c", 3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        item.text = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields",
    [
        {"type": ""},
        {"type": 3},
        {"text": b"secret"},
        {"role": "a\nb"},
        {"origin": "secret"},
        {"created_at": "secret"},
        {"created_at": True},
        {"key": ""},
        {"data": {"secret": object()}},
        {"data": {"secret": float("nan")}},
        {"metadata": ["secret"]},
    ],
)
def test_a_bad_item_is_refused_and_nothing_of_its_batch_is_written(
    log: ConversationLog, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRecord) as caught:
        log.append("c", [said("good"), NewItem(**{"type": "message", **fields})], MIRA)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert log.conversations(MIRA) == []


@pytest.mark.parametrize("items", [None, 3, "secret", {"type": "secret"}])
def test_what_is_no_item_is_refused(log: ConversationLog, items: Any) -> None:
    with pytest.raises(InvalidRecord, match="append takes NewItem"):
        log.append("c", items, MIRA)


def test_a_failure_within_a_batch_leaves_nothing(log: ConversationLog, log_path: Path) -> None:
    log.append("c", said("a"), MIRA)
    with closing(sqlite3.connect(log_path)) as other:
        other.execute(
            "CREATE TRIGGER t BEFORE INSERT ON items WHEN new.text = 'bad' "
            "BEGIN SELECT RAISE(ABORT, 'bad'); END"
        )
    with pytest.raises(ProviderUnavailable) as caught:
        log.append("c", [said("b"), said("bad")], MIRA, title="new")
    assert "bad" not in str(caught.value)
    assert (log.conversation("c", MIRA).last_seq, log.conversation("c", MIRA).title) == (0, "")
    assert log.append("c", said("c"), MIRA)[0].seq == 1


def test_another_scope_sees_and_changes_nothing(log: ConversationLog) -> None:
    owner = Scope(user_id="mira", agent_id="cook")
    log.append("c", said("a"), owner)
    for stranger in (OTTO, Scope(user_id="mira", agent_id="other"), Scope(namespace="mira")):
        assert log.items("c", stranger) == []
        assert log.conversations(stranger) == []
        assert log.subscribe("c", stranger).snapshot == ()
        assert log.subscribe("c", stranger).read(timeout=0) == []
        for look in (lambda s: log.conversation("c", s), lambda s: log.item("c:0", s)):
            with pytest.raises(NotFound):
                look(stranger)
        for change in (log.delete, log.restore, log.erase):
            assert not change("c", stranger)
            assert not change("c", stranger, 0)
        with pytest.raises(IdUnavailable):
            log.append("c", said("b"), stranger)
    with pytest.raises(IdUnavailable):  # one that sees it does not write as its owner
        log.append("c", said("b"), MIRA)
    assert [i.text for i in log.items("c", MIRA)] == ["a"]
    assert [i.text for i in log.items("c", Scope.EVERYONE)] == ["a"]
    assert [c.scope for c in log.conversations(MIRA)] == [owner]


def test_an_empty_scope_is_refused_everywhere(log: ConversationLog) -> None:
    log.append("c", said("a"), MIRA)
    nobody = Scope()
    for call in (
        lambda: log.append("c", said("b"), nobody),
        lambda: log.append("c", said("b"), Scope.EVERYONE),
        lambda: log.items("c", nobody),
        lambda: log.item("c:0", nobody),
        lambda: log.item("nonsense", nobody),
        lambda: log.conversation("c", nobody),
        lambda: log.conversations(nobody),
        lambda: log.subscribe("c", nobody),
        lambda: log.delete("c", nobody),
        lambda: log.restore("c", nobody),
        lambda: log.erase("c", nobody),
    ):
        with pytest.raises(ScopeError):
            call()


def test_wrong_numbers_orders_and_times_are_refused(log: ConversationLog) -> None:
    for wrong in ({"limit": -1}, {"limit": True}, {"order": "up"}, {"after": "1"}, {"types": [1]}):
        with pytest.raises(InvalidQuery):
            log.items("c", MIRA, **wrong)
    with pytest.raises(InvalidQuery):
        log.conversations(MIRA, since="yesterday")
    with pytest.raises(InvalidRecord):
        log.append(" ", said("a"), MIRA)


def test_items_at_positions_that_none_has_or_that_are_none(log: ConversationLog) -> None:
    log.append("c", [NewItem("message", "a"), NewItem("message", "b")], MIRA)
    log.append("d", NewItem("message", "c"), Scope(user_id="tom"))
    log.delete("c", MIRA, 1)
    every = [*range(-2, 9), 2**31, 2**63 - 1, 2**63, -(2**63), 2**70, 10**5000]
    assert list(log.at(every, MIRA)) == [1]
    assert list(log.at(every, Scope.EVERYONE)) == [1, 3]
    hostile: list[Any] = [True, 1.0, math.nan, "1", "1) OR 1", None, [1], object()]
    for wrong in hostile:
        with pytest.raises(InvalidQuery, match="positions"):
            log.at([1, wrong], MIRA)


def test_conversations_by_time(log: ConversationLog) -> None:
    for number in range(4):
        log.append(f"c{number}", said("a", created_at=1_000 + number), MIRA)
    log.append("c0", said("b", created_at=2_000), MIRA)
    assert [c.id for c in log.conversations(MIRA, limit=3)] == ["c0", "c3", "c2"]
    assert [c.id for c in log.conversations(MIRA, order="asc", limit=1)] == ["c1"]
    assert [c.id for c in log.conversations(MIRA, since=1_002, until=1_003)] == ["c3", "c2"]


def test_a_second_import_changes_nothing(log: ConversationLog) -> None:
    batch = [said("a", key="k1"), said("b", key="k2"), said("b", key="k2")]
    assert len(log.append("c", batch, MIRA)) == 2
    before = log.conversation("c", MIRA)
    assert log.append("c", batch, MIRA) == ()
    assert log.conversation("c", MIRA) == before
    assert seqs(list(log.append("c", [*batch, said("c", key="k3")], MIRA))) == [2]
    assert len(log.append("d", batch, MIRA)) == 2  # a key counts in its conversation
    log.delete("c", MIRA, 0)
    log.erase("c", MIRA, 1)
    assert log.append("c", batch, MIRA) == ()
    assert seqs(log.items("c", MIRA)) == [2]


def test_delete_and_restore(log: ConversationLog) -> None:
    log.append("c", [said("a"), said("b")], MIRA)
    assert log.delete("c", MIRA, 1)
    assert not log.delete("c", MIRA, 1)
    assert not log.delete("c", MIRA, 9)
    assert seqs(log.items("c", MIRA)) == [0]
    found = log.conversation("c", MIRA)
    assert (found.last_seq, found.item_count) == (1, 1)
    assert log.append("c", said("c"), MIRA)[0].seq == 2  # a number is never given again
    assert log.restore("c", MIRA, 1)
    assert seqs(log.items("c", MIRA)) == [0, 1, 2]
    assert log.delete("c", MIRA)
    assert log.items("c", MIRA) == []
    assert log.conversations(MIRA) == []
    with pytest.raises(NotFound):
        log.conversation("c", MIRA)
    with pytest.raises(IdUnavailable):
        log.append("c", said("d"), MIRA)
    assert log.restore("c", MIRA)
    assert not log.restore("c", MIRA)
    assert log.conversation("c", MIRA).item_count == 3


def test_what_was_erased_does_not_come_back(log: ConversationLog) -> None:
    log.append("c", [said("a", key="k"), said("b")], MIRA, title="t")
    assert log.erase("c", MIRA, 0)
    assert not log.erase("c", MIRA, 0)
    assert not log.restore("c", MIRA, 0)
    assert seqs(log.items("c", MIRA)) == [1]
    log.delete("c", MIRA)
    assert log.erase("c", MIRA)  # also where it is only hidden
    assert not log.erase("c", MIRA)
    assert not log.restore("c", MIRA)
    with pytest.raises(IdUnavailable):
        log.append("c", said("a", key="k"), MIRA)


@pytest.mark.parametrize("whole", [True, False])
def test_erased_text_is_in_no_file(log_path: Path, whole: bool) -> None:
    words = ("ZEBRATEXT", "ZEBRADATA", "ZEBRAMETA", "ZEBRAKEY", "ZEBRATYPE", "ZEBRATITLE")
    text, data, meta, key, kind, title = words
    with ConversationLog(log_path) as log:
        for number in range(60):  # sizes that share pages, fill them, and flow over
            size = 1 + number * 157 % 9_000
            log.append(f"n{number % 3}", said(f"{number} " + "x" * size), MIRA)
            item = NewItem(
                kind,
                f"{text} " * (1 + size // 9),
                data={"a": data},
                metadata={"b": meta},
                key=f"{key}{number}",
            )
            log.append("c", item, MIRA, title=title if whole else None)
        stored = b"".join(f.read_bytes() for f in log_path.parent.iterdir())
        assert text.encode() in stored
        assert key.encode() not in stored
        for seq in [None] if whole else range(60):
            assert log.erase("c", MIRA, seq)
        for file in log_path.parent.iterdir():
            assert b"ZEBRA" not in file.read_bytes(), file.name
        assert sum(c.item_count for c in log.conversations(MIRA)) == 60
    for file in log_path.parent.iterdir():
        assert b"ZEBRA" not in file.read_bytes(), file.name


def test_no_copy_stays_where_pages_were_filled_and_split(log_path: Path) -> None:
    chance = random.Random(0)
    placed: list[tuple[str, int]] = []
    with ConversationLog(log_path) as log:
        for number in range(1_200):
            name = f"c{chance.randrange(120)}"
            times = 1 + int(chance.paretovariate(0.7) * 30) % 6_000 // 8
            item = said(f"<T{number}>" * times, data={"x": f"<T{number}>"})
            title = f"<K{name}>" * chance.randrange(1, 20) if chance.random() < 0.3 else None
            about = {"a": f"<K{name}>" * chance.randrange(1, 90)} if chance.random() < 0.3 else None
            (added,) = log.append(name, item, MIRA, title=title, metadata=about)
            placed.append((name, added.seq))
        items = chance.sample(range(len(placed)), 250)
        names = chance.sample(sorted({name for name, _ in placed}), 60)
        assert all(log.erase(placed[n][0], MIRA, placed[n][1]) for n in items)
        assert all(log.erase(name, MIRA) for name in names)
        stored = b"".join(f.read_bytes() for f in log_path.parent.iterdir())
    kept = {n for n in range(len(placed)) if n not in items and placed[n][0] not in names}
    assert {int(n) for n in re.findall(rb"<T(\d+)>", stored)} == kept
    assert not {n.decode() for n in re.findall(rb"<K(c\d+)>", stored)} & set(names)


@pytest.mark.parametrize("again", [True, False])
def test_an_erasure_that_was_cut_short_is_finished_later(log_path: Path, again: bool) -> None:
    with ConversationLog(log_path, timeout=0.05) as log:
        log.append("c", said("ZEBRA"), MIRA)
        reader = sqlite3.connect(log_path)
        try:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM items").fetchall()
            with pytest.raises(ProviderTimeout, match="reader holds"):
                log.erase("c", MIRA)
            assert log.items("c", MIRA) == []
            reader.rollback()
            if again:
                assert not log.erase("c", MIRA)
            else:
                ConversationLog(log_path).close()
            assert all(b"ZEBRA" not in f.read_bytes() for f in log_path.parent.iterdir())
        finally:
            reader.close()


def test_the_file_is_for_its_owner_only(log: ConversationLog, log_path: Path) -> None:
    log.append("c", said("a"), MIRA)
    assert stat.S_IMODE(log_path.parent.stat().st_mode) == 0o700
    files = list(log_path.parent.iterdir())
    assert {f.name for f in files} == {"log.db", "log.db-wal", "log.db-shm"}
    assert {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o600}


def test_a_foreign_damaged_or_newer_file_is_refused(tmp_path: Path) -> None:
    foreign, damaged, newer = (
        tmp_path / "foreign.db",
        tmp_path / "damaged.db",
        tmp_path / "newer.db",
    )
    with closing(sqlite3.connect(foreign)) as other:
        other.execute("CREATE TABLE t (a)")
    damaged.write_bytes(b"not a database" * 100)
    ConversationLog(newer).close()
    with closing(sqlite3.connect(newer)) as other:
        other.execute("PRAGMA user_version = 99")
    for path, error in (
        (foreign, StoreCorrupt),
        (damaged, StoreCorrupt),
        (newer, ProviderUnavailable),
        (tmp_path, ProviderUnavailable),
    ):
        with pytest.raises(error):
            ConversationLog(path)


def test_a_closed_log_says_so(log: ConversationLog) -> None:
    log.close()
    log.close()
    with pytest.raises(ClosedError):
        log.items("c", MIRA)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    conversation=st.text(min_size=1, max_size=20),
    text=st.text(max_size=50),
    kind=st.text(min_size=1, max_size=10),
)
def test_any_text_is_stored_or_refused_by_name(
    log: ConversationLog, conversation: str, text: str, kind: str
) -> None:
    before = log.items(conversation, MIRA)
    try:
        (added,) = log.append(conversation, NewItem(kind, text), MIRA)
    except InvalidRecord:
        assert log.items(conversation, MIRA) == before
        return
    assert log.item(added.id, MIRA) == added
    assert log.items(conversation, MIRA, types=kind, order="desc", limit=1) == [added]


def test_the_owner_of_a_conversation(log: ConversationLog) -> None:
    owner = Scope(user_id="mira", namespace="work", agent_id="cook")
    log.append("c", NewItem("message", "x"), owner)
    for deleted in (False, True):
        for asking in (Scope(user_id="mira"), Scope(namespace="work"), Scope.EVERYONE):
            assert log.owner("c", asking) == owner
        for name, asking in (("c", Scope(user_id="tom")), ("d", Scope(user_id="mira"))):
            with pytest.raises(NotFound):
                log.owner(name, asking)
        assert deleted or log.delete("c", owner)
    log.erase("c", owner)
    with pytest.raises(NotFound):
        log.owner("c", owner)
    with pytest.raises(ScopeError):
        log.owner("c", Scope())
