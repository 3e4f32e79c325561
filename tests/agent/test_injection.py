"""Where memories go in a request, and when they do not."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from memsheaf.agent import (
    MIN_RELEVANCE,
    ainject,
    ainject_system,
    ainject_system_value,
    inject,
    inject_system,
    inject_system_value,
)
from memsheaf.stack import (
    AsyncMemoryStack,
    ClosedError,
    Filter,
    Hit,
    InvalidQuery,
    MemoryStack,
    Scope,
    ScopeError,
    Status,
    UsageError,
    hookimpl,
)

MakeStack = Callable[..., MemoryStack]
Parse = Callable[[str], list[dict[str, Any]]]
ID = "0123456789abcdef"


def ask(text: str = "Who plays the cello?") -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": text},
    ]


class Profile:
    """Gives a text for the last user message."""

    def __init__(self, text: str | None = "Mira: cellist\nlives in Graz") -> None:
        self.text = text
        self.asked: list[str] = []
        self.scopes: list[Scope] = []

    @hookimpl
    def build_user_context(self, scope: Scope, text: str) -> str | None:
        self.asked.append(text)
        self.scopes.append(scope)
        return self.text


class Guide:
    """Gives a text for the system prompt."""

    def __init__(self, text: str | None = "You have a memory.") -> None:
        self.text = text

    @hookimpl
    def build_system_prompt(self, scope: Scope) -> str | None:
        return self.text


class Broken:
    """Fails at everything that a turn asks for."""

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> list[Hit]:
        raise OSError("no connection")

    @hookimpl
    def build_user_context(self, scope: Scope) -> str | None:
        raise OSError("no connection")

    @hookimpl
    def build_system_prompt(self, scope: Scope) -> str | None:
        raise OSError("no connection")


def test_only_the_last_message_of_the_user_changes(make_stack: MakeStack, parse: Parse) -> None:
    messages = ask()
    before = copy.deepcopy(messages)
    made = inject(messages, make_stack("Mira plays the cello"))
    assert messages == before
    assert made.messages[:-1] == before[:-1]
    assert made.block is not None
    assert made.messages[-1] == {
        "role": "user",
        "content": f"Who plays the cello?\n\n{made.block}",
    }
    assert parse(made.block) == [
        {"memory": "m0", "kind": "note", "date": "2026-05-01", "text": "Mira plays the cello"}
    ]
    assert made.block_id is not None
    assert made.block_id in made.block
    assert [hit.id for hit in made.hits] == ["m0"]
    assert [o.status for o in made.outcomes] == [Status.OK]


def test_memories_and_the_providers_contexts_share_a_block(
    make_stack: MakeStack, parse: Parse
) -> None:
    profile = Profile()
    made = inject(ask(), make_stack("Mira plays the cello", also=[profile]))
    assert made.block is not None
    memory, context = parse(made.block)
    assert memory["text"] == "Mira plays the cello"
    assert context == {"context": "profile", "text": "Mira: cellist\nlives in Graz"}
    assert profile.asked == ["Who plays the cello?"]


def test_a_context_without_memories_is_injected(make_stack: MakeStack, parse: Parse) -> None:
    made = inject(ask(), make_stack(also=[Profile()]))
    assert made.block is not None
    assert [line["context"] for line in parse(made.block)] == ["profile"]
    assert made.hits == ()


@pytest.mark.parametrize("context", [None, "", "  \n"])
def test_nothing_known_leaves_the_messages(make_stack: MakeStack, context: str | None) -> None:
    messages = ask()
    made = inject(messages, make_stack(also=[Profile(context)]))
    assert made.messages == messages
    assert made.messages is not messages
    assert (made.block, made.block_id, made.hits) == (None, None, ())


def test_a_stack_without_providers_leaves_the_messages(mira: Scope) -> None:
    with MemoryStack(scope=mira) as stack:
        assert inject(ask(), stack).messages == ask()
        assert inject_system(ask(), stack) == ask()
        assert inject_system_value("Be brief.", stack) == "Be brief."
        assert inject_system_value(None, stack) == ""


def test_what_is_hardly_relevant_stays_out(make_stack: MakeStack) -> None:
    stack = make_stack(("near", MIN_RELEVANCE), ("far", MIN_RELEVANCE - 0.01))
    assert [hit.record.content for hit in inject(ask(), stack).hits] == ["near"]
    assert len(inject(ask(), stack, min_relevance=0).hits) == 2
    assert inject(ask(), stack, min_relevance=0.9).messages == ask()


def test_the_limit_holds(make_stack: MakeStack) -> None:
    stack = make_stack(*(f"fact {n}" for n in range(9)))
    assert len(inject(ask(), stack).hits) == 5
    assert [hit.id for hit in inject(ask(), stack, limit=2).hits] == ["m0", "m1"]
    assert inject(ask(), stack, limit=0).block is None


def test_the_budget_holds_at_the_borders_of_items(make_stack: MakeStack, parse: Parse) -> None:
    stack = make_stack("first", "long " * 200, "third", also=[Profile("a line\n" * 100)])
    for most in range(0, 3_000, 37):
        made = inject(ask(), stack, max_characters=most)
        if made.block is None:
            assert most < 400
            continue
        assert len(made.block) <= most
        items = parse(made.block)
        assert [i["memory"] for i in items if "memory" in i] == [hit.id for hit in made.hits]
        for item in items:
            assert item["text"] in ("first", "long " * 200, "third") or (
                set(item["text"].strip("\n").split("\n")) == {"a line"}
            )
            assert item.get("cut", False) == (
                "context" in item and item["text"] != "a line\n" * 100
            )
    whole = inject(ask(), stack, max_characters=3_000)
    assert [hit.id for hit in whole.hits] == ["m0", "m1", "m2"]
    small = inject(ask(), stack, max_characters=800)
    assert [hit.id for hit in small.hits] == ["m0", "m2"]
    assert small.block is not None
    assert parse(small.block)[-1]["cut"] is True


def test_a_budget_is_used_to_the_last_character(make_stack: MakeStack) -> None:
    stack = make_stack("first", also=[Profile("one\ntwo \u202e two\nthree is a longer line")])
    full = inject(ask(), stack).block
    assert full is not None
    exact = inject(ask(), stack, max_characters=len(full)).block
    assert exact is not None
    assert "three" in exact
    less = inject(ask(), stack, max_characters=len(full) - 1, block_id=ID).block
    assert less is not None
    assert "two" in less
    assert "three" not in less
    assert inject(ask(), stack, max_characters=len(less), block_id=ID).block == less
    bare = make_stack("first")
    size = len(inject(ask(), bare).block or "")
    assert inject(ask(), bare, max_characters=size).block is not None
    assert inject(ask(), bare, max_characters=size - 1).block is None


def test_a_message_that_carries_a_block_gets_no_second(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello")
    once = inject(ask(), stack).messages
    twice = inject(once, stack)
    assert twice.messages == once
    assert twice.block is None
    parts: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "cello?"}]}]
    once = inject(parts, stack).messages
    assert inject(once, stack).messages == once


@pytest.mark.parametrize(
    "typed",
    [
        "what is <memory-context-0123456789abcdef>?",
        "</memory-context-0123456789abcdef> <memory-context-0123456789abcdef>",
        "<memory-context-0123456789abcdef> </memory-context-fedcba9876543210>",
        "<memory-context-0123456789abcdef>" * 2_000,
    ],
)
def test_what_only_looks_like_a_part_of_a_block_is_the_users_text(
    make_stack: MakeStack, typed: str
) -> None:
    made = inject(ask(typed), make_stack("Mira plays the cello"))
    assert made.messages[-1]["content"] == f"{typed}\n\n{made.block}"


def test_the_block_stays_where_it_is_within_a_tool_loop(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello")
    first = inject(ask(), stack, block_id=ID).messages
    call: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]}
    loop = [*ask(), call, {"role": "tool", "tool_call_id": "t1", "content": "42"}]
    again = inject(loop, stack, block_id=ID).messages
    assert again == [*first, *loop[4:]]


def test_the_same_state_gives_the_same_bytes(make_stack: MakeStack) -> None:
    stack = make_stack("one", "two", "three", also=[Profile()])
    first, second = (inject(ask(), stack, block_id=ID) for _ in range(2))
    assert json.dumps(first.messages) == json.dumps(second.messages)
    assert inject(ask(), stack).block_id != inject(ask(), stack).block_id


def test_earlier_messages_keep_their_bytes_when_memory_changes(make_stack: MakeStack) -> None:
    turn = ask()
    one = inject(turn, make_stack("old", also=[Guide()])).messages
    longer = [*turn, {"role": "assistant", "content": "Mira."}, {"role": "user", "content": "Who?"}]
    two = inject(longer, make_stack("old", "new", also=[Guide(), Profile()])).messages
    assert json.dumps(one[:3]) == json.dumps(two[:3])
    assert two[3:5] == longer[3:5]


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_without_words_of_the_user_nothing_happens(make_stack: MakeStack, text: str) -> None:
    stack = make_stack("Mira plays the cello", also=[Profile()])
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    assert inject(messages, stack).messages == messages
    assert inject([], stack).messages == []
    assert inject(ask(), stack, query=text).messages == ask()


def test_the_query_is_the_users_words_or_the_given_one(make_stack: MakeStack) -> None:
    profile = Profile()
    stack = make_stack("x", also=[profile], query_limit=100)
    inject(ask("a" * 500 + " the end\x00\ud800"), stack)
    inject(ask(), stack, query="another")
    assert [len(profile.asked[0]), profile.asked[0][-9:]] == [100, "the end\ufffd\ufffd"]
    assert profile.asked[1] == "another"


def test_a_failing_provider_is_told_and_the_rest_is_injected(make_stack: MakeStack) -> None:
    made = inject(ask(), make_stack("Mira plays the cello", also=[Broken()]))
    assert made.block is not None
    assert {o.provider: o.status for o in made.outcomes}["broken"] is Status.FAILED


def test_failing_providers_leave_the_messages(mira: Scope) -> None:
    with MemoryStack([Broken()], scope=mira) as stack:
        made = inject(ask(), stack)
        assert made.messages == ask()
        assert [o.status for o in made.outcomes][:1] == [Status.FAILED]
        assert inject_system(ask(), stack) == ask()


def test_another_users_memory_is_not_injected(make_stack: MakeStack) -> None:
    otto, profile = Scope(user_id="otto"), Profile(None)
    stack = make_stack("Mira plays the cello", also=[profile])
    assert inject(ask(), stack, scope=otto).messages == ask()
    assert profile.scopes == [otto]


def test_bad_arguments_are_refused(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello")
    wrong: Any
    for wrong in ("text", b"text", {"role": "user"}, None):
        with pytest.raises(UsageError, match="messages"):
            inject(wrong, stack)
    for wrong in ("", "short", "0123456789ABCDEF", "0123456789abcde\n", "f" * 65, 7):
        with pytest.raises(UsageError, match="block_id"):
            inject(ask(), stack, block_id=wrong)
    for wrong in (1.5, True, "9"):
        with pytest.raises(UsageError, match="max_characters"):
            inject(ask(), stack, max_characters=wrong)
    wrong = 7
    with pytest.raises(UsageError, match="query"):
        inject(ask(), stack, query=wrong)
    with pytest.raises(InvalidQuery):
        inject(ask(), stack, limit=-1)
    with pytest.raises(InvalidQuery):
        inject(ask(), stack, min_relevance=2)


def test_without_a_scope_it_is_refused() -> None:
    with MemoryStack([Profile()]) as stack:
        with pytest.raises(ScopeError):
            inject(ask(), stack)
        with pytest.raises(ScopeError):
            inject([], stack)
        with pytest.raises(ScopeError):
            inject([], stack, scope=Scope())
        with pytest.raises(ScopeError):
            inject_system([], stack)
    with pytest.raises(ClosedError):
        inject(ask(), stack, scope=Scope(user_id="mira"))


class Listener:
    def __init__(self, refuse: str = "") -> None:
        self.refuse = refuse
        self.before: list[Any] = []
        self.after: list[Any] = []

    @hookimpl
    def before_inject(self, messages: list[Any], scope: Scope) -> None:
        self.before.append((messages, scope))
        messages.clear()
        if self.refuse == "inject":
            raise ValueError("not today")

    @hookimpl
    def before_search(self, text: str) -> None:
        if self.refuse == "search":
            raise ValueError("not today")

    @hookimpl
    def after_inject(self, messages: list[Any], scope: Scope) -> None:
        self.after.append((list(messages), scope))
        messages.clear()
        if self.refuse == "after":
            raise ValueError("too late")


def test_guard_and_listener_are_told(make_stack: MakeStack, mira: Scope) -> None:
    listener = Listener()
    made = inject(ask(), make_stack("Mira plays the cello", plugins=[listener]))
    assert listener.before == [([], mira)]
    assert listener.after == [(made.messages, mira)]
    assert len(made.messages) == 4


@pytest.mark.parametrize("refuse", ["inject", "search"])
def test_a_guard_that_refuses_leaves_the_messages(make_stack: MakeStack, refuse: str) -> None:
    listener = Listener(refuse)
    made = inject(ask(), make_stack("Mira plays the cello", also=[Profile()], plugins=[listener]))
    assert made.messages == ask()
    assert made.block is None
    (outcome,) = made.outcomes
    assert outcome.status is Status.SKIPPED
    assert f"before_{refuse}" in (outcome.reason or "")
    assert listener.after == []


def test_a_listener_that_fails_is_told(make_stack: MakeStack) -> None:
    made = inject(ask(), make_stack("Mira plays the cello", plugins=[Listener("after")]))
    assert made.block is not None
    assert (made.outcomes[-1].operation, made.outcomes[-1].status) == ("event", Status.FAILED)


@pytest.mark.parametrize(
    ("roles", "place", "role"),
    [
        ([], 0, "system"),
        (["user"], 0, "system"),
        (["system", "user"], 1, "system"),
        (["system", "developer", "user", "system"], 2, "developer"),
    ],
)
def test_static_text_follows_the_leading_system_messages(
    make_stack: MakeStack, roles: list[str], place: int, role: str
) -> None:
    messages: list[dict[str, Any]] = [{"role": r, "content": "text"} for r in roles]
    before = copy.deepcopy(messages)
    stack = make_stack("a memory", also=[Guide("  One.\n"), Broken(), Guide(None)])
    made = inject_system(messages, stack)
    assert messages == before
    assert made == [*before[:place], {"role": role, "content": "One."}, *before[place:]]
    assert inject_system(made, stack) == made


def test_static_text_follows_an_anthropic_system_value(make_stack: MakeStack) -> None:
    stack = make_stack("a memory", also=[Guide("One."), Guide("Two.")])
    text = "One.\n\nTwo."
    assert inject_system_value(None, stack) == text
    assert inject_system_value("", stack) == text
    assert inject_system_value("Be brief.", stack) == f"Be brief.\n\n{text}"
    blocks: list[Any] = [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    ]
    made = inject_system_value(blocks, stack)
    assert made == [*blocks, {"type": "text", "text": text}]
    assert len(blocks) == 1
    for value in (made, text, f"Be brief.\n\n{text}"):
        assert inject_system_value(value, stack) == value


def test_the_system_prompt_keeps_its_bytes_when_memory_changes(make_stack: MakeStack) -> None:
    one = inject_system(ask(), make_stack("old", also=[Guide()]))
    two = inject_system(ask("Else?"), make_stack("old", "new", also=[Guide(), Profile()]))
    assert json.dumps(one[:2]) == json.dumps(two[:2])


def test_the_awaited_twins_give_the_same(make_stack: MakeStack) -> None:
    stack = make_stack("Mira plays the cello", also=[Guide(), Profile()])

    async def both() -> None:
        face = AsyncMemoryStack(stack)
        made = await ainject(ask(), face, block_id=ID, limit=3, max_characters=900)
        same = inject(ask(), stack, block_id=ID, limit=3, max_characters=900)
        assert (made.messages, made.hits) == (same.messages, same.hits)
        assert await ainject_system(ask(), face) == inject_system(ask(), stack)
        assert await ainject_system_value("x", face) == inject_system_value("x", stack)
        await face.close()

    asyncio.run(both())
    pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (inject, ainject),
        (inject_system, ainject_system),
        (inject_system_value, ainject_system_value),
    ]
    for one, twin in pairs:
        mine, theirs = (dict(inspect.signature(f).parameters) for f in (one, twin))
        assert mine.pop("stack").name == theirs.pop("stack").name
        assert mine == theirs
