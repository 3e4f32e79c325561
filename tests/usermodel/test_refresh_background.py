"""Work in the background: users in parallel, hanging derivations, closing."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import Item
from memsheaf.stack import ClosedError, ProviderTimeout
from memsheaf.usermodel import Add, LineKind, Operation, Profile, RefreshSettings, UserModel

Say = Callable[..., Item]
Opens = Callable[..., UserModel]
Texts = Callable[..., list[str]]


def test_users_are_served_in_parallel_in_the_background(
    open_model: Opens, say: Say, echo_deriver: Any, texts: Texts
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


def test_closing_derives_what_waits(
    folder: Path, say: Say, echo_deriver: Any, texts: Texts
) -> None:
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
    folder: Path, say: Say, echo_deriver: Any, texts: Texts
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
