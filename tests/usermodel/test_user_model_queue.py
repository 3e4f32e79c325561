"""The queue: durable, in order, each item once, and nothing that the user did not say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.stack import ScopeError, UsageError
from memsheaf.usermodel import QueueFull, UserModel

Say = Callable[..., Item]
Opens = Callable[..., UserModel]
Texts = Callable[..., list[str]]


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


def test_users_never_meet(open_model: Opens, say: Say, echo_deriver: Any, texts: Texts) -> None:
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
