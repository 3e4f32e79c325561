"""Subscriptions: a snapshot, then every later item exactly once."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from memsheaf.sessionsearch import ConversationLog, Item, NewItem, Subscription
from memsheaf.stack import InvalidQuery, Scope

MIRA = Scope(user_id="mira")


def said(text: str) -> NewItem:
    return NewItem("message", text)


def texts(items: list[Item] | tuple[Item, ...]) -> list[str]:
    return [item.text for item in items]


def test_the_snapshot_ends_where_the_stream_begins(log: ConversationLog) -> None:
    log.append("c", [said("a"), said("b"), said("c")], MIRA)
    followed = log.subscribe("c", MIRA, after=0)
    assert [i.seq for i in followed.snapshot] == [1, 2]
    assert followed.last_seq == 2
    assert followed.read(timeout=0) == []
    log.append("c", [said("d"), said("e")], MIRA)
    assert texts(followed.read(timeout=0, limit=1)) == ["d"]
    assert texts(followed.read(timeout=0)) == ["e"]
    assert followed.read(timeout=0.01) == []


def test_an_empty_snapshot_tells_the_cursor(log: ConversationLog) -> None:
    assert log.subscribe("c", MIRA).last_seq is None
    ahead = log.subscribe("c", MIRA, after=1)
    assert (ahead.snapshot, ahead.last_seq) == ((), 1)
    log.append("c", [said("a"), said("b"), said("c")], MIRA)
    assert texts(ahead.read(timeout=0)) == ["c"]
    with pytest.raises(InvalidQuery):
        log.subscribe("c", MIRA, after=-3)
    with pytest.raises(InvalidQuery):
        ahead.read(timeout=0, limit=0)


def test_each_subscriber_gets_each_item_until_it_ends(log: ConversationLog) -> None:
    first, second = log.subscribe("c", MIRA), log.subscribe("c", MIRA)
    log.append("c", said("a"), MIRA)
    log.append("other", said("x"), MIRA)
    assert texts(first.read(timeout=0)) == ["a"]
    first.close()
    first.close()
    log.append("c", said("b"), MIRA)
    assert first.read(timeout=0) == []
    assert list(first) == []
    assert texts(second.read(timeout=0)) == ["a", "b"]


def test_a_forgotten_subscriber_leaves_nothing(log: ConversationLog) -> None:
    watched = weakref.ref(log.subscribe("c", MIRA))
    gc.collect()
    assert watched() is None
    log.append("c", said("a"), MIRA)


def test_what_was_deleted_before_it_was_read_does_not_arrive(log: ConversationLog) -> None:
    followed = log.subscribe("c", MIRA)
    log.append("c", [said("a"), said("b"), said("c")], MIRA)
    log.delete("c", MIRA, 0)
    log.erase("c", MIRA, 2)
    assert texts(followed.read(timeout=0)) == ["b"]


def test_a_waiting_reader_is_woken_and_ends_with_the_log(log: ConversationLog) -> None:
    followed = log.subscribe("c", MIRA)
    got: list[str] = []
    arrived = threading.Event()

    def follow() -> None:
        for item in followed:
            got.append(item.text)
            arrived.set()

    reader = threading.Thread(target=follow)
    reader.start()
    log.append("c", said("a"), MIRA)
    assert arrived.wait(30)
    log.close()
    reader.join(30)
    assert not reader.is_alive()
    assert got == ["a"]


def test_every_item_once_while_threads_append(log: ConversationLog) -> None:
    wanted = 4 * 25
    got: list[list[int]] = [[] for _ in range(3)]

    def write(name: int) -> None:
        for number in range(25):
            log.append("c", said(f"{name} {number}"), MIRA)

    def follow(mine: list[int]) -> None:
        followed: Subscription = log.subscribe("c", MIRA)
        mine.extend(item.seq for item in followed.snapshot)
        while len(mine) < wanted:
            found = followed.read(timeout=30)
            if not found:
                break
            mine.extend(item.seq for item in found)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    threads += [threading.Thread(target=follow, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == [list(range(wanted))] * 3


def test_items_of_another_process_arrive(log: ConversationLog, log_path: Path) -> None:
    followed = log.subscribe("c", MIRA)
    program = (
        "import sys; from memsheaf.sessionsearch import ConversationLog, NewItem;"
        "from memsheaf.stack import Scope;"
        "log = ConversationLog(sys.argv[1]);"
        "[log.append('c', NewItem('message', str(n)), Scope(user_id='mira')) for n in range(5)];"
        "log.close()"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(log_path)])
    got: list[str] = []
    try:
        while len(got) < 5 and (found := followed.read(timeout=60)):
            got += texts(found)
    finally:
        assert process.wait(60) == 0
    assert got == ["0", "1", "2", "3", "4"]
    assert followed.read(timeout=0) == []
