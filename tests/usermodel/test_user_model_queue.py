"""The queue: durable, in order, each item once, and every trouble visible."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memsheaf.models import ModelUnavailable
from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.stack import (
    ClosedError,
    ConfigError,
    ProviderTimeout,
    RegistrationError,
    ScopeError,
    StorageFull,
    UsageError,
)
from memsheaf.usermodel import (
    Add,
    DeriverFailed,
    LineKind,
    Operation,
    Profile,
    QueueFull,
    RefreshSettings,
    UserModel,
)
from memsheaf.usermodel.batches import Batch
from memsheaf.usermodel.queue import RefreshQueue
from memsheaf.usermodel.rows import RowStore

Say = Callable[..., Item]
Opens = Callable[..., UserModel]


def texts(model: UserModel, user_id: str = "mira") -> list[str]:
    return [line.text for line in model.profile(user_id).current]


def test_what_was_said_is_derived_in_order(open_model: Opens, say: Say, echo_deriver: Any) -> None:
    deriver = echo_deriver()
    model = open_model(deriver)
    made = model.observe([say("one", 1), say("two", 2)], user_id="mira")
    assert (made.accepted, made.repeated, made.ignored) == (2, 0, 0)
    model.observe(say("three", 3), user_id="mira")
    assert model.profile("mira").version == 0
    assert [line.text for line in model.refresh("mira").lines] == ["one", "two", "three"]
    assert deriver.batches == [["one", "two", "three"]]  # refreshes coalesce
    assert model.refresh("mira").version == 1
    assert len(deriver.batches) == 1


def test_an_item_is_taken_once(open_model: Opens, say: Say, echo_deriver: Any) -> None:
    deriver = echo_deriver()
    model = open_model(deriver)
    model.observe([say("one", 1), say("one", 1)], user_id="mira")
    assert model.observe(say("one", 1), user_id="mira").repeated == 1
    model.refresh("mira")
    assert model.observe([say("one", 1), say("two", 2)], user_id="mira").accepted == 1
    model.refresh("mira")
    assert deriver.batches == [["one"], ["two"]]
    assert open_model(deriver).observe(say("one", 1), user_id="mira").repeated == 1
    assert model.observe(say("one", 1), user_id="noor").accepted == 1


def test_what_the_user_did_not_say_is_not_even_kept(
    model: UserModel, say: Say, folder: Path
) -> None:
    others = [
        say("secret of a tool", 0, type="tool_result", role="tool", origin=ItemOrigin.TOOL),
        say("secret of a cron turn", 1, origin=ItemOrigin.AUTOMATION),
        say("secret of the agent", 2, role="assistant", origin=ItemOrigin.AGENT),
        say("<memory-context-00000000ffffffff>secret of a memory", 3),
    ]
    assert model.observe(others, user_id="mira").ignored == 4
    assert model.status().waiting == 0
    assert not any(b"secret of" in path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("user_id", ["", " ", "a\nb", "\ud800", "x" * 513, None, 7])
def test_there_is_no_shared_user(model: UserModel, say: Say, user_id: Any) -> None:
    with pytest.raises(ScopeError):
        model.observe(say("one"), user_id=user_id)
    with pytest.raises(ScopeError):
        model.profile(user_id)
    with pytest.raises(ScopeError):
        model.forget(user_id)
    assert model.status().waiting == 0


def test_users_never_meet(open_model: Opens, say: Say, echo_deriver: Any) -> None:
    deriver = echo_deriver()
    model = open_model(deriver)
    names = ["john_doe", "john-doe", "john%", "acme", "acme-corp", "a/b", "a", "b", "a/b/c", "A"]
    for seq, name in enumerate(names):
        model.observe(say(f"secret of {name}", seq), user_id=name)
    assert model.flush()
    for name in names:
        assert texts(model, name) == [f"secret of {name}"]
        assert {change.text for change in model.history(name)} == {f"secret of {name}"}
    assert model.users() == tuple(sorted(names))
    model.forget("john_doe")
    assert texts(model, "john-doe") == ["secret of john-doe"]
    assert all(len(batch) == 1 for batch in deriver.batches)


def test_what_is_no_item_is_refused_and_nothing_is_taken(model: UserModel, say: Say) -> None:
    with pytest.raises(UsageError, match="items of a log"):
        model.observe([say("one"), "two"], user_id="mira")  # type: ignore[list-item]
    assert model.status().waiting == 0


def test_a_full_queue_says_so_and_takes_nothing(open_model: Opens, say: Say) -> None:
    model = open_model(capacity=3)
    model.observe([say("one", 1), say("two", 2)], user_id="mira")
    with pytest.raises(QueueFull, match="2 of 3 items"):
        model.observe([say("three", 3), say("four", 4)], user_id="noor")
    assert model.status().waiting == 2
    assert model.observe(say("three", 3), user_id="noor").accepted == 1
    model.flush()
    assert model.observe([say("four", 4), say("five", 5)], user_id="noor").accepted == 2


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


def failing_on(word: str) -> Callable[[Profile, Sequence[Item]], list[Operation]]:
    def act(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        if any(word in item.text for item in items):
            raise ValueError(f"cannot read {items[0].text}")
        return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]

    return act


def test_a_failed_derivation_changes_nothing_and_is_tried_again(
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any
) -> None:
    deriver = echo_deriver()
    model = open_model(deriver, backoff=4)
    model.observe(say("I live in Rome"), user_id="mira")
    before = model.refresh("mira")
    deriver.act = failing_on("Oslo")
    model.observe(say("I live in Oslo", 1), user_id="mira")
    with pytest.raises(DeriverFailed, match="ValueError in line") as raised:
        model.refresh("mira")
    assert isinstance(raised.value.__cause__, ValueError)
    assert "Oslo" not in str(raised.value)
    assert model.profile("mira") == before
    (item,) = model.status("mira").items
    assert (item.item_id, item.user_id, item.state, item.attempts) == ("c:1", "mira", "waiting", 1)
    assert item.due is not None
    assert item.due.timestamp() == pytest.approx(clock.now + 4, abs=0.01)
    assert item.error is not None
    assert "ValueError in line" in item.error
    assert "Oslo" not in item.error
    assert model.status().last_error == item.error
    assert not model.flush()  # it waits for its time
    assert len(deriver.batches) == 2
    deriver.act = echo_deriver().act
    clock.now += 4
    assert model.flush()
    assert texts(model) == ["I live in Rome", "I live in Oslo"]
    assert model.status().last_error is None


def test_a_poisoned_item_is_singled_out_and_never_blocks_the_user(
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any
) -> None:
    deriver = echo_deriver(failing_on("poison"))
    model = open_model(deriver, attempts=4, batch_items=8)
    words = ["a", "b", "poison", "c", "d"]
    model.observe([say(word, seq) for seq, word in enumerate(words)], user_id="mira")
    model.observe(say("fine", 9), user_id="noor")
    for _ in range(12):
        model.flush()
        clock.now += 300
    assert texts(model) == ["a", "b", "c", "d"]
    assert texts(model, "noor") == ["fine"]
    status = model.status()
    assert (status.waiting, status.set_aside) == (0, 1)
    (item,) = status.items
    assert (item.item_id, item.state) == ("c:2", "set aside")
    assert item.error is not None
    assert "ValueError" in item.error
    assert status.last_error == item.error
    deriver.act = echo_deriver().act
    assert model.retry("mira") == 1
    model.refresh("mira")
    assert texts(model) == ["a", "b", "c", "d", "poison"]
    assert model.status().items == ()
    assert model.retry("mira") == 0


def test_an_outage_of_the_model_sets_nothing_aside(
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any
) -> None:
    def down(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        raise ModelUnavailable("no connection; check the address", model="small")

    deriver = echo_deriver(down)
    model = open_model(deriver, attempts=2, max_backoff=10)
    model.observe(say("one"), user_id="mira")
    for _ in range(6):
        model.flush()
        clock.now += 10
    assert len(deriver.batches) == 6
    status = model.status()
    assert (status.waiting, status.set_aside) == (1, 0)
    assert status.last_error == "ModelUnavailable: small: no connection; check the address"
    deriver.act = echo_deriver().act
    assert model.flush()
    assert texts(model) == ["one"]


def test_a_result_that_is_no_list_is_a_failure(
    open_model: Opens, say: Say, echo_deriver: Any
) -> None:
    model = open_model(echo_deriver(lambda profile, items: None))
    model.observe(say("one"), user_id="mira")
    with pytest.raises(DeriverFailed, match="TypeError"):
        model.refresh("mira")
    assert model.status().waiting == 1


def test_a_deriver_that_cannot_be_made_is_told_per_item(
    open_model: Opens, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise RegistrationError(f"{name} cannot be imported: no module named rulebook")

    monkeypatch.setattr("memsheaf.usermodel.model.load_deriver", broken)
    model = open_model("rules")
    model.observe(say("one"), user_id="mira")
    with pytest.raises(DeriverFailed, match="no module named rulebook"):
        model.refresh("mira")
    assert "rulebook" in str(model.status("mira").items[0].error)


def test_an_unknown_deriver_is_refused_with_those_that_exist(folder: Path) -> None:
    with pytest.raises(RegistrationError, match="rules"):
        UserModel(folder, deriver="ruels")
    assert not folder.exists()


def test_trouble_with_the_store_is_seen_and_gets_over(
    open_model: Opens, say: Say, echo_deriver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model(echo_deriver(), background=True, max_age=0, lease=0.2, clock=time.time)
    settle = model._queue.settle
    failed = threading.Event()

    def fail(*_: Any) -> None:
        failed.set()
        raise StorageFull("the disk is full")

    monkeypatch.setattr(model._queue, "settle", fail)
    model.observe(say("one"), user_id="mira")
    assert failed.wait(20)
    until = time.monotonic() + 20
    while model.status().last_error != "the disk is full" and time.monotonic() < until:
        time.sleep(0.02)
    assert model.status().last_error == "the disk is full"
    monkeypatch.setattr(model._queue, "settle", settle)
    assert model.flush(20)
    assert texts(model) == ["one"]
    while model.status().last_error is not None and time.monotonic() < until:
        time.sleep(0.02)
    assert model.status().last_error is None


def test_depth_lets_the_deriver_question_itself(
    open_model: Opens, say: Say, echo_deriver: Any
) -> None:
    class Doubting(echo_deriver):  # type: ignore[misc]
        asked = 0

        def question(
            self, profile: Profile, operations: Sequence[Operation], items: Sequence[Item]
        ) -> Sequence[Operation]:
            self.asked += 1
            return [each for each in operations if isinstance(each, Add) and "sure" in each.text]

    for depth, kept in [(1, ["maybe", "sure"]), (3, ["sure"])]:
        deriver = Doubting()
        model = open_model(deriver, depth=depth)
        user = f"user {depth}"
        model.observe([say("maybe", 1), say("sure", 2)], user_id=user)
        model.refresh(user)
        assert texts(model, user) == kept
        assert deriver.asked == depth - 1


def test_users_are_served_in_parallel_in_the_background(
    open_model: Opens, say: Say, echo_deriver: Any
) -> None:
    together = threading.Barrier(3)  # breaks unless three users are derived at once

    def meet(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        together.wait(20)
        return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]

    model = open_model(echo_deriver(meet), background=True, workers=3, clock=time.time)
    for name in ("mira", "noor", "lena"):
        model.observe(say(f"I am {name}"), user_id=name)
        model.end_session(name)
    assert model.flush(30)
    assert [texts(model, name) for name in model.users()] == [
        ["I am lena"],
        ["I am mira"],
        ["I am noor"],
    ]


def test_a_hanging_user_holds_up_nobody_else(
    open_model: Opens, say: Say, echo_deriver: Any
) -> None:
    free = threading.Event()
    derived = threading.Event()

    def hang(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        if profile.user_id == "slow":
            free.wait(30)
        else:
            derived.set()
        return []

    model = open_model(echo_deriver(hang), background=True, workers=2, max_age=0, clock=time.time)
    model.observe(say("one"), user_id="slow")
    model.observe(say("one"), user_id="quick")
    assert derived.wait(20)
    (item,) = model.status("slow").items
    assert item.state == "deriving"
    with pytest.raises(ProviderTimeout, match="derived elsewhere"):
        model.refresh("slow", timeout=0)
    free.set()
    assert model.flush(20)


def test_a_derivation_that_hangs_is_seen_and_taken_over(
    open_model: Opens, say: Say, echo_deriver: Any
) -> None:
    free = threading.Event()
    deriver = echo_deriver()

    def hang_once(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        if len(deriver.batches) == 1:
            free.wait(30)
        return list(echo_deriver().derive(profile, items))

    deriver.act = hang_once
    model = open_model(
        deriver,
        background=True,
        workers=2,
        max_age=0,
        lease=0.3,
        derive_seconds=0.0,
        clock=time.time,
    )
    model.observe(say("one"), user_id="mira")
    until = time.monotonic() + 20
    while not model.profile("mira").lines and time.monotonic() < until:
        time.sleep(0.02)
    while model.status().last_error is None and time.monotonic() < until:
        time.sleep(0.02)
    assert re.fullmatch(r"\d derivations hang in this process", model.status().last_error or "")
    free.set()
    assert model.flush(20)
    assert [(line.text, line.times) for line in model.profile("mira").lines] == [("one", 1)]


def test_an_interrupt_gives_the_batch_back(open_model: Opens, say: Say, echo_deriver: Any) -> None:
    def interrupt(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        raise KeyboardInterrupt

    model = open_model(echo_deriver(interrupt))
    model.observe(say("one"), user_id="mira")
    with pytest.raises(KeyboardInterrupt):
        model.refresh("mira")
    (item,) = model.status().items
    assert (item.state, item.attempts) == ("waiting", 0)
    assert texts(open_model()) == []
    other = open_model()
    assert [line.text for line in other.refresh("mira", timeout=0).lines] == ["one"]


def test_closing_derives_what_waits(folder: Path, say: Say, echo_deriver: Any) -> None:
    deriver = echo_deriver()
    model = UserModel(folder, deriver=deriver)
    model.observe(say("below every threshold"), user_id="mira")
    model.close()
    model.close()
    assert deriver.batches == [["below every threshold"]]
    for call in (
        lambda: model.observe(say("two", 2), user_id="mira"),
        lambda: model.refresh("mira"),
        lambda: model.flush(),
        lambda: model.profile("mira"),
        lambda: model.forget("mira"),
    ):
        with pytest.raises(ClosedError):
            call()
    with UserModel(folder, deriver=deriver, background=False) as again:
        assert texts(again) == ["below every threshold"]


def test_what_cannot_be_derived_in_time_stays_queued(
    folder: Path, say: Say, echo_deriver: Any
) -> None:
    free = threading.Event()

    def hang(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        free.wait(30)
        return []

    rules = RefreshSettings(close_seconds=0.2, lease=60)
    model = UserModel(folder, deriver=echo_deriver(hang), settings=rules)
    model.observe(say("one"), user_id="mira")
    model.close()
    free.set()
    with UserModel(folder, deriver=echo_deriver(), background=False) as again:
        assert texts(again) == []
        assert [line.text for line in again.refresh("mira").current] == ["one"]


def test_background_work_takes_up_what_another_process_left(
    open_model: Opens, say: Say, clock: Any, echo_deriver: Any
) -> None:
    open_model().observe(say("one"), user_id="mira")
    done = threading.Event()

    def note(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        done.set()
        return []

    clock.now += 60
    open_model(echo_deriver(note), background=True)
    assert done.wait(20)


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"capacity": -1}, {"lease": -1.0}, {"max_age": "soon"}, {"batch_items": True}],
)
def test_wrong_settings_are_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RefreshSettings(**wrong)


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"depth": True}, {"deriver": object()}])
def test_wrong_arguments_are_told(folder: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        UserModel(folder, **wrong)
    assert not folder.exists()
