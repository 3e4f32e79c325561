"""All built-in stores answer any sequence of calls as the plainest of them does."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import Filter, Kind, MemoryRecord, MemsheafError, Scope
from memsheaf.stack.doubles import InMemoryStore

NOW = datetime.now(UTC)
OWNERS = [
    Scope(user_id="mira"),
    Scope(user_id="mira", agent_id="cook"),
    Scope(user_id="noor", namespace="work", session_id="monday"),
    Scope(namespace="work"),
]
IDS = ["a", "b", "c", "d"]
VALUES: list[dict[str, Any]] = [{}, {"k": 1}, {"k": True}, {"k": None}, {"k": {"x": [1]}}]

ids, owners = st.sampled_from(IDS), st.sampled_from(OWNERS)
askers = owners | st.just(Scope.EVERYONE)
tags = st.lists(st.sampled_from("xy"), unique=True).map(tuple)
times = st.integers(0, 50).map(lambda seconds: NOW - timedelta(seconds=seconds))
limits = st.sampled_from([1, 3, 50])
records = st.builds(
    lambda later, **fields: MemoryRecord(
        updated_at=min(NOW, fields["created_at"] + timedelta(seconds=later)), **fields
    ),
    later=st.integers(0, 30),
    id=ids,
    scope=owners,
    content=st.sampled_from(["green tea", "tea", "coffee bean", "!!!"]),
    kind=st.sampled_from([Kind.NOTE, Kind.FACT, Kind.SKILL]),
    tags=tags,
    created_at=times,
    expires_at=st.sampled_from([None, None, NOW - timedelta(days=1), NOW + timedelta(days=1)]),
    metadata=st.sampled_from(VALUES),
)
filters = st.builds(
    Filter,
    kinds=st.lists(st.sampled_from([Kind.FACT, Kind.SKILL])).map(tuple),
    tags_any=tags,
    tags_all=tags,
    since=st.none() | times,
    until=st.none() | times,
    where=st.sampled_from(VALUES),
)
CHANGES: list[dict[str, Any]] = [
    {"content": "blue tea"},
    {"tags": ("x",)},
    {"expires_at": NOW - timedelta(seconds=1)},
]
conditions = st.none() | filters
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), records),
        st.tuples(st.just("store_many"), st.lists(records, max_size=3)),
        st.tuples(st.just("forget"), ids, owners),
        st.tuples(st.just("update"), ids, owners, st.sampled_from(CHANGES)),
        st.tuples(st.just("touch"), st.lists(ids, max_size=3), owners),
        st.tuples(st.just("get"), ids, askers),
        st.tuples(
            st.just("list"),
            askers,
            limits,
            st.none(),
            st.sampled_from(["newest", "oldest"]),
            conditions,
        ),
        st.tuples(st.just("search"), st.sampled_from(["", "tea"]), askers, st.just(50), conditions),
    ),
    max_size=25,
)


def asked(store: Any, name: str, arguments: list[Any]) -> Any:
    """What a store answers, in a form that is the same for all."""
    try:
        answer = getattr(store, name)(*arguments)
    except MemsheafError as error:
        return type(error)
    if name == "store_many":
        return [type(entry) for entry in answer]
    if name == "search":
        return {hit.id for hit in answer}
    if name == "get" and answer is not None:
        return answer.model_dump(exclude={"last_accessed_at"})
    if name == "list":
        return [(record.id, record.access_count) for record in answer]
    return answer


@given(calls=CALLS)
@settings(max_examples=25, deadline=None)
def test_every_store_answers_as_the_plainest(calls: list[tuple[Any, ...]]) -> None:
    plain = InMemoryStore()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalStore(Path(folder, "local")) as local,
        LocalStore() as fleeting,
    ):
        sqlite = SqliteStore(Path(folder, "memory.db"))
        for number, (name, *arguments) in enumerate(calls):
            if name == "update":
                moment = NOW + timedelta(microseconds=number)
                arguments[2] = {**arguments[2], "updated_at": moment}
            expected = asked(plain, name, arguments)
            for store in (local, fleeting, sqlite):
                assert asked(store, name, arguments) == expected
        sqlite.close()
