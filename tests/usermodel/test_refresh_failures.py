"""What fails changes nothing, is visible, is tried again, and blocks nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memsheaf.models import ModelUnavailable
from memsheaf.sessionsearch import Item
from memsheaf.stack import RegistrationError, StorageFull
from memsheaf.usermodel import Add, DeriverFailed, LineKind, Operation, Profile, UserModel

Say = Callable[..., Item]
Opens = Callable[..., UserModel]
Texts = Callable[..., list[str]]


def failing_on(word: str) -> Callable[[Profile, Sequence[Item]], list[Operation]]:
    def act(profile: Profile, items: Sequence[Item]) -> list[Operation]:
        if any(word in item.text for item in items):
            raise ValueError(f"cannot read {items[0].text}")
        return [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]

    return act


def test_a_failed_derivation_changes_nothing_and_is_tried_again(
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any, texts: Texts
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
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any, texts: Texts
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
    open_model: Opens, say: Say, echo_deriver: Any, clock: Any, texts: Texts
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


def test_trouble_with_the_store_is_seen_and_gets_over(
    open_model: Opens, say: Say, echo_deriver: Any, monkeypatch: pytest.MonkeyPatch, texts: Texts
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


def test_an_interrupt_gives_the_batch_back(
    open_model: Opens, say: Say, echo_deriver: Any, texts: Texts
) -> None:
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
