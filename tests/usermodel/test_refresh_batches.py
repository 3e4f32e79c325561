"""Batches: when one is taken, how long it is, and that nobody else holds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import Item
from memsheaf.usermodel import Add, LineKind, RefreshSettings, UserModel
from memsheaf.usermodel.batches import Batch
from memsheaf.usermodel.queue import RefreshQueue
from memsheaf.usermodel.rows import RowStore

Say = Callable[..., Item]
Opens = Callable[..., UserModel]


def test_batches_wait_for_their_age_or_size(
    open_model: Opens, say: Say, clock: Any, folder: Path
) -> None:
    model = open_model()
    rules = RefreshSettings(max_age=30, batch_items=3, batch_tokens=100)
    store = RowStore(folder, 5.0)
    queue = RefreshQueue(store, rules, clock)
    queue.put("mira", [say("one", 1)])
    assert queue.claim() is None
    assert queue.seconds_to_next() == pytest.approx(30, abs=0.01)
    clock.now += 29
    queue.put("mira", [say("two", 2)])
    assert queue.claim() is None
    clock.now += 1.1
    aged = queue.claim()
    assert aged is not None
    assert [item.text for item in aged.items] == ["one", "two"]
    queue.settle(aged, [], "test")
    queue.put("mira", [say(text, seq) for seq, text in enumerate("abc", 10)])
    whole = queue.claim()
    assert whole is not None
    queue.settle(whole, [], "test")
    queue.put("mira", [say("x" * 500, 20)])
    long = queue.claim()
    assert long is not None
    queue.settle(long, [], "test")
    queue.put("mira", [say("last", 30)])
    assert queue.claim() is None
    model.end_session("mira")
    hurried = queue.claim()
    assert hurried is not None
    assert [item.text for item in hurried.items] == ["last"]
    store.close()


def test_a_batch_is_no_longer_than_its_tokens(
    open_model: Opens, say: Say, echo_deriver: Any
) -> None:
    deriver = echo_deriver()
    model = open_model(deriver, batch_tokens=100, batch_items=4)
    sizes = [10, 300, 900, 10, 10, 10, 10, 10]
    model.observe([say(f"{n}" * size, n) for n, size in enumerate(sizes)], user_id="mira")
    model.refresh("mira")
    assert [[len(text) for text in batch] for batch in deriver.batches] == [
        [10, 300],
        [900],
        [10, 10, 10, 10],
        [10],
    ]


@pytest.fixture
def queues(folder: Path, clock: Any) -> Any:
    """Two queues on one folder, as two processes have them."""
    rules = RefreshSettings(lease=10, batch_items=2, attempts=3)
    stores = [RowStore(folder, 5.0), RowStore(folder, 5.0)]
    yield [RefreshQueue(store, rules, clock) for store in stores]
    for store in stores:
        store.close()


def test_two_processes_never_hold_the_same_batch(queues: Any, say: Say, clock: Any) -> None:
    one, two = queues
    one.put("mira", [say(f"{n}", n) for n in range(4)])
    first = one.claim()
    assert [item.text for item in first.items] == ["0", "1"]
    assert two.claim() is None  # the user's next items wait for those before them
    assert not isinstance(two.claim_user("mira"), Batch)
    two.put("noor", [say("a", 1), say("b", 2)])
    other = two.claim()
    assert other.user_id == "noor"
    assert one.settle(first, [], "test") is not None
    second = two.claim()
    assert [item.text for item in second.items] == ["2", "3"]


def test_a_lost_lease_is_taken_over_and_its_result_changes_nothing(
    queues: Any, say: Say, clock: Any
) -> None:
    one, two = queues
    one.put("mira", [say("a", 1), say("b", 2)])
    lost = one.claim()
    clock.now += 9
    one.renew([lost])
    clock.now += 9
    assert two.claim() is None
    clock.now += 2
    taken = two.claim()
    assert [item.text for item in taken.items] == ["a"]  # fewer, in case the batch killed it
    slow = [Add(LineKind.FACT, "slow", 0.5, (lost.items[0].id,))]
    assert one.settle(lost, slow, "test") is None
    one.fail(lost, "late")
    one.release([lost])
    fast = [Add(LineKind.FACT, "fast", 0.5, (taken.items[0].id,))]
    settled = two.settle(taken, fast, "test")
    assert [line.text for line in settled.profile.lines] == ["fast"]
    assert one.settle(lost, slow, "test") is None


def test_a_clock_that_is_put_back_holds_nothing_up(queues: Any, say: Say, clock: Any) -> None:
    one, two = queues
    one.put("mira", [say("a", 1)])
    one.put("noor", [say("b", 1), say("c", 2)])
    assert one.claim().user_id == "noor"  # its process dies
    clock.now -= 86_400
    served = []
    while (batch := two.claim()) is not None:
        served += [item.text for item in batch.items]
        assert two.settle(batch, [], "test") is not None
    assert sorted(served) == ["a", "b", "c"]
    assert two.unfinished().waiting == 0


def test_a_clock_that_is_put_back_does_not_stop_a_flush(
    open_model: Opens, say: Say, clock: Any
) -> None:
    model = open_model()
    model.observe(say("Lives in Rome"), user_id="mira")
    clock.now -= 86_400
    assert model.flush(5.0)
    assert [line.text for line in model.profile("mira").current] == ["Lives in Rome"]


def test_a_clock_that_jumps_ahead_derives_nothing_twice(queues: Any, say: Say, clock: Any) -> None:
    one, two = queues
    one.put("mira", [say("a", 1), say("b", 2)])
    slow = one.claim()
    clock.now += 86_400
    quick = two.claim()
    said_once = [Add(LineKind.FACT, "once", 0.5, (quick.items[0].id,))]
    settled = two.settle(quick, said_once, "test")
    assert one.settle(slow, said_once, "test") is None
    assert [line.times for line in settled.profile] == [1]


def test_a_batch_that_ends_every_process_is_set_aside(queues: Any, say: Say, clock: Any) -> None:
    one = queues[0]
    one.put("mira", [say("poison", 1), say("good", 2)])
    held = []
    for _ in range(4):
        held.append([item.text for item in one.claim().items])
        clock.now += 11
    assert held == [["poison", "good"], ["poison"], ["poison"], ["good"]]
    assert one.unfinished("mira").waiting == 1
