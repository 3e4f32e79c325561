"""Which of the user's messages get memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memsheaf.agent import BlockLedger, TrivialGate, inject
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack, Scope, Status, UsageError, hookimpl

MakeStack = Callable[..., MemoryStack]


def talk(*texts: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "So."}]
    return messages[:-1]


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["Who plays the cello?"], True),
        (["hello", "Who plays the cello?"], True),
        (["hello", "/clear", "👍", "Who plays the cello?"], True),
        (["Where?", "Who plays the cello?"], False),
        (["Where?", "ok", "Who plays the cello?"], False),
    ],
)
def test_first_only_is_the_first_message_that_passes_the_gate(
    make_stack: MakeStack, texts: list[str], first: bool
) -> None:
    stack = make_stack("Mira plays the cello")
    made = inject(talk(*texts), stack, strategy="first_only")
    assert (made.block is not None) is first
    assert made.reason == (None if first else "not the first")
    assert inject(talk(*texts), stack, strategy="every_turn").block is not None
    assert inject(talk(*texts), stack).block is not None


def test_first_only_counts_messages_that_got_nothing(make_stack: MakeStack) -> None:
    assert inject(talk("Where?"), make_stack(), strategy="first_only").block is None
    later = inject(talk("Where?", "Who?"), make_stack("Mira"), strategy="first_only")
    assert later.reason == "not the first"


def test_first_only_without_a_gate_is_the_very_first(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello")
    assert inject(talk("hi"), stack, strategy="first_only", gate=None).block is not None
    made = inject(talk("hi", "Who?"), stack, strategy="first_only", gate=None)
    assert made.reason == "not the first"


def test_first_only_keeps_its_block_in_the_turns_after(make_stack: MakeStack) -> None:
    stack, ledger = make_stack("Mira plays the cello"), BlockLedger()
    options: dict[str, Any] = {"strategy": "first_only", "ledger": ledger, "conversation": "c"}
    first = inject(talk("Who?"), stack, **options)
    loop = [*talk("Who?"), {"role": "assistant", "tool_calls": [{"id": "t1"}]}]
    loop += [{"role": "tool", "tool_call_id": "t1", "content": "42"}]
    assert inject(loop, stack, **options).messages == [*first.messages, *loop[1:]]
    made = inject(talk("Who?", "Where?"), stack, **options)
    assert made.messages == [*first.messages, *talk("Who?", "Where?")[1:]]
    assert (made.reason, made.restored) == ("not the first", 1)
    ledger.close()


def test_an_unknown_strategy_is_refused(make_stack: MakeStack) -> None:
    wrong: Any = "every_iteration"
    with pytest.raises(UsageError, match="first_only, every_turn"):
        inject(talk("Who?"), make_stack(), strategy=wrong)


class Profile:
    asked = 0

    @hookimpl
    def build_user_context(self, scope: Scope) -> str:
        self.asked += 1
        return "lives in Graz"


@pytest.mark.parametrize("text", ["ok", "Thanks!", "/clear", "好的", "👍"])
def test_a_trivial_message_gets_nothing_and_costs_nothing(make_stack: MakeStack, text: str) -> None:
    profile = Profile()
    stack = make_stack("Mira plays the cello", also=[profile])
    made = inject(talk(text), stack)
    assert (made.messages, made.block, made.reason) == (talk(text), None, "trivial")
    assert profile.asked == 0
    assert stack.providers[0].provider.asked == []  # type: ignore[attr-defined]
    parts = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    assert inject(parts, stack).reason == "trivial"


def test_the_gate_is_the_hosts(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello")
    assert inject(talk("ok"), stack, gate=None).block is not None
    assert inject(talk("ok"), stack, query="cello").block is not None
    assert inject(talk("Roger that"), stack, gate=TrivialGate({"roger that"})).reason == "trivial"
    assert inject(talk("long"), stack, gate=lambda text: text == "long").reason == "trivial"


def test_the_hosts_contexts_share_the_block(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello")
    asked: list[str] = []

    def contexts(words: str) -> list[tuple[str, str]]:
        asked.append(words)
        return [("calendar", "rehearsal on Friday")]

    made = inject(talk("Who?"), stack, contexts=contexts)
    assert made.block is not None
    assert '{"context": "calendar", "text": "rehearsal on Friday"}' in made.block
    assert inject(talk("ok"), stack, contexts=contexts).block is None
    assert asked == ["Who?"]


def test_contexts_of_the_host_that_raise_are_told_and_the_rest_is_injected() -> None:
    def broken(words: str) -> list[tuple[str, str]]:
        raise KeyError("secret words")

    with MemoryStack([LocalStore()], scope=Scope(user_id="mira")) as stack:
        stack.store("Mira plays the cello")
        made = inject([{"role": "user", "content": "Who plays the cello?"}], stack, contexts=broken)
    assert made.block is not None
    (outcome,) = [o for o in made.outcomes if o.provider == "contexts"]
    assert outcome.status is Status.FAILED
    assert "secret" not in str(outcome)
