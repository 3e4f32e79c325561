"""Any sequence of calls, by any owner, against a plain table of who holds what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import MemoryTools
from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import MemoryStack, Mount, NotFound, Scope, same_content_key
from memsheaf.stack.doubles import InMemoryStore

OWNERS = [
    Scope(user_id="mira"),
    Scope(user_id="mira", agent_id="cook"),
    Scope(user_id="mira", namespace="work"),
    Scope(user_id="noor", namespace="work"),
    Scope(user_id="noor", session_id="monday"),
    Scope(agent_id="cook"),
    Scope(namespace="work"),
]
CONTENTS = ["green tea", "Green  TEA", "black tea", "coffee", "!!!"]

Table = dict[str, tuple[Scope, str]]
"""Id to owner and content."""


def alone() -> MemoryStack:
    return MemoryStack([LocalStore()])


def pinned() -> MemoryStack:
    """A second store holds what belongs to one namespace only."""
    return MemoryStack([LocalStore(), Mount(SqliteStore(), scope=Scope(namespace="work"))])


def nested() -> MemoryStack:
    inner = MemoryStack([InMemoryStore(), SqliteStore()])
    return MemoryStack([inner.as_provider(), InMemoryStore()])


owners = st.sampled_from(OWNERS)
contents = st.sampled_from(CONTENTS)
places = st.integers(0, 30)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("remember"), owners, contents),
        st.tuples(st.just("forget"), owners, places),
        st.tuples(st.just("update"), owners, places, contents),
        st.tuples(st.just("recall"), owners, st.sampled_from(["tea", "coffee"])),
    ),
    max_size=25,
)


def visible(table: Table, scope: Scope) -> set[str]:
    return {record_id for record_id, (owner, _) in table.items() if scope.matches(owner)}


def memories(table: Table, ids: set[str]) -> set[tuple[Scope, str]]:
    """What a search shows once: the same content of the same owner is one memory."""
    return {(table[id_][0], same_content_key(table[id_][1])) for id_ in ids}


def forget(stack: MemoryStack, table: Table, scope: Scope, record_id: str) -> None:
    answer = MemoryTools(stack, scope=scope).call("memory_forget", {"id": record_id})
    assert answer["forgotten"] is (record_id in visible(table, scope))
    if answer["forgotten"]:
        owner, content = table[record_id]
        key = same_content_key(content)
        for other, (held, said) in list(table.items()):
            if held == owner and same_content_key(said) == key:
                del table[other]


def update(stack: MemoryStack, table: Table, scope: Scope, record_id: str, content: str) -> None:
    if record_id in visible(table, scope):
        stack.update(record_id, {"content": content}, scope)
        table[record_id] = table[record_id][0], content
    else:
        with pytest.raises(NotFound):
            stack.update(record_id, {"content": content}, scope)


def recall(stack: MemoryStack, table: Table, scope: Scope, word: str) -> None:
    answer = MemoryTools(stack, scope=scope).call("memory_recall", {"query": word, "limit": 50})
    meant = {id_ for id_ in visible(table, scope) if word in table[id_][1].lower()}
    found = {each["id"] for each in answer["memories"]}
    assert found <= meant
    assert memories(table, found) == memories(table, meant)


@pytest.mark.parametrize("make", [alone, pinned, nested])
@given(calls=CALLS)
@settings(max_examples=25, deadline=None)
def test_every_call_reaches_what_its_scope_may_reach(
    make: Callable[[], MemoryStack], calls: list[tuple[Any, ...]]
) -> None:
    table: Table = {}
    known = ["never"]
    with make() as stack:
        for name, scope, *arguments in calls:
            if name == "remember":
                tools = MemoryTools(stack, scope=scope)
                made = tools.call("memory_remember", {"content": arguments[0]})
                table[made["id"]] = scope, arguments[0]
                known.append(made["id"])
            elif name == "recall":
                recall(stack, table, scope, arguments[0])
            else:
                record_id = known[arguments[0] % len(known)]
                act: Callable[..., None] = forget if name == "forget" else update
                act(stack, table, scope, record_id, *arguments[1:])
        for scope in (*OWNERS, Scope.EVERYONE):
            listed = stack.list(scope, limit=100)
            assert {(r.id, r.scope, r.content) for r in listed} == {
                (id_, *table[id_]) for id_ in visible(table, scope)
            }
            for record_id in known:
                held = stack.get(record_id, scope)
                assert (held is not None) is (record_id in visible(table, scope))
