"""Reading by id and in pages, filters, and what comes back that should not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memsheaf.stack import (
    Filter,
    Hit,
    Incomplete,
    InvalidQuery,
    MemoryRecord,
    MemoryStack,
    Scope,
    hookimpl,
)

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
Make = Callable[..., Any]


def fails(*hooks: str) -> Callable[[str], None]:
    def before(hook: str) -> None:
        if hook in hooks or not hooks:
            raise OSError(5, "Input/output error")

    return before


def record(content: str = "tea at home", scope: Scope = MIRA, **fields: Any) -> MemoryRecord:
    return MemoryRecord.make(content=content, scope=scope, **fields)


def test_get_gives_the_newest_copy_and_says_when_it_cannot_know(shelf: Make) -> None:
    old = record(id="same")
    new = old.changed({"content": "tea at work"})
    with MemoryStack([shelf("a", records=[old]), shelf("b", records=[new])], scope=MIRA) as stack:
        assert stack.get("same") == new
    bad = shelf("bad", before=fails())
    with MemoryStack([bad, shelf("good", records=[old])], scope=MIRA) as stack:
        assert stack.get("same") == old
        with pytest.raises(Incomplete, match="bad") as caught:
            stack.get("nowhere")
        assert [o.provider for o in caught.value.outcomes] == ["bad", "good"]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_neither_overlap_nor_skip(shelf: Make, order: Any) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = [
        record(f"number {n}", id=f"id{n:02}", created_at=start + timedelta(days=n // 3))
        for n in range(40)
    ]
    stores = [shelf("a", records=made[:25]), shelf("b", records=made[15:])]
    with MemoryStack(stores, scope=MIRA) as stack:
        expected = sorted(made, key=lambda r: (r.created_at, r.id), reverse=order == "newest")
        for limit in (1, 7, 39, 40, 41):
            seen: list[MemoryRecord] = []
            after = None
            while True:
                page = stack.list(limit=limit, after=after, order=order)
                assert len(page) <= limit
                seen.extend(page)
                after = page.next
                if after is None:
                    break
            assert seen == expected


def test_a_page_that_misses_a_provider_says_so_even_where_it_recovers(shelf: Make) -> None:
    calls: list[str] = []

    def once(hook: str) -> None:
        calls.append(hook)
        if len(calls) == 1:
            raise OSError(5, "Input/output error")

    class Lossy(type(shelf())):  # type: ignore[misc]
        """Its first page is full of records that the filter refuses."""

    start = datetime(2026, 1, 1, tzinfo=UTC)
    many = [record(f"n {n}", created_at=start + timedelta(days=n)) for n in range(9)]
    flaky = shelf("flaky", before=once, records=[record("lost", kind="fact")])
    with MemoryStack([flaky, Lossy("b", records=many)], scope=MIRA) as stack:
        page = stack.list(limit=3, filters={"kinds": ["fact"]})
        assert len(calls) > 1
        assert page.partial


def test_bc_048_limits_and_cursors_have_one_meaning(shelf: Make) -> None:
    held = [record(f"tea {n}") for n in range(16)]
    with MemoryStack([shelf("a", records=held), shelf("b", records=held)], scope=MIRA) as stack:
        for limit, count in ((0, 0), (1, 1), (16, 16), (17, 16)):
            assert len(stack.search("tea", limit=limit)) == count
            assert len(stack.list(limit=limit)) == count
            assert len(stack.search("", limit=limit)) == count
        assert len(stack.search("tea")) == 10
        assert len(stack.list()) == 16
        for bad in (-1, 1_001, "5", 2.0, True):
            with pytest.raises(InvalidQuery, match="limit"):
                stack.search("tea", limit=bad)  # type: ignore[arg-type]
            with pytest.raises(InvalidQuery, match="limit"):
                stack.list(limit=bad)  # type: ignore[arg-type]
        for cursor in ("-1", "nonsense", "[1, 2]", ""):
            with pytest.raises(InvalidQuery, match="after"):
                stack.list(after=cursor)
        with pytest.raises(InvalidQuery, match="order"):
            stack.list(order="sideways")  # type: ignore[arg-type]
        for relevance in (-0.1, 1.1, float("nan"), "high"):
            with pytest.raises(InvalidQuery, match="min_relevance"):
                stack.search("tea", min_relevance=relevance)  # type: ignore[arg-type]
        with pytest.raises(InvalidQuery, match="text"):
            stack.search(None)  # type: ignore[arg-type]


def test_bc_051_no_filter_and_an_empty_filter_are_one(shelf: Make) -> None:
    with MemoryStack([shelf("a"), shelf("b")], scope=MIRA) as stack:
        stack.store_many(["x", "y x"])
        empties: list[Any] = [None, {}, Filter(), {"tags_any": []}, {"kinds": ()}]
        for filters in empties:
            assert len(stack.search("x", filters=filters)) == 2
            assert len(stack.list(filters=filters)) == 2
            assert all(o.notes == () for o in stack.search("x", filters=filters).outcomes)
        unknown: list[dict[str, Any]] = [{"scope": "*"}, {"tags": []}]
        for bad in unknown:
            with pytest.raises(InvalidQuery):
                stack.search("x", filters=bad)
            with pytest.raises(InvalidQuery):
                stack.list(filters=bad)
        with pytest.raises(InvalidQuery, match="filter"):
            stack.search("x", filters="kind=fact")  # type: ignore[arg-type]


def test_what_a_provider_does_not_filter_the_stack_does(shelf: Make) -> None:
    """1.B 9 differs by design: tags filter here; that they lift a hit is a ranking profile."""
    with MemoryStack([shelf()], scope=MIRA) as stack:
        plain, urgent = stack.store("tea"), stack.store("tea!", tags=["Urgent"])
        gone = record("tea gone", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
        stack.store(gone)
        result = stack.search("tea", filters={"tags_any": ["urgent"]})
        assert [hit.id for hit in result] == [urgent.id]
        assert "filtered by the stack" in result.outcomes[0].notes
        assert {hit.id for hit in stack.search("tea")} == {plain.id, urgent.id}
        assert stack.get(gone.id) is None
        assert {r.id for r in stack.list()} == {plain.id, urgent.id}


def test_what_comes_back_outside_the_scope_is_dropped_and_told(shelf: Make) -> None:
    class Leaks:
        @hookimpl
        def search(self, text: str, scope: Scope) -> list[Hit]:
            return [Hit(record("tea", TOMAS), 9.0), Hit(record("tea", MIRA), 1.0)]

        @hookimpl
        def get(self, record_id: str, scope: Scope) -> MemoryRecord:
            return record("tea", TOMAS)

        @hookimpl
        def list(self, scope: Scope, limit: int) -> list[MemoryRecord]:
            return [record("tea", TOMAS)]

    with MemoryStack([Leaks()]) as stack:
        result = stack.search("tea", MIRA)
        assert [hit.record.scope for hit in result] == [MIRA]
        assert result.outcomes[0].notes == ("1 dropped: outside the scope",)
        assert stack.get("x", MIRA) is None
        page = stack.list(MIRA)
        assert len(page) == 0
        assert "dropped" in page.outcomes[0].notes[0]


def test_touch_counts_in_one_write_and_search_counts_nothing(shelf: Make) -> None:
    notes = shelf()
    with MemoryStack([notes], scope=MIRA) as stack:
        ids = [stack.store(f"tea {n}").id for n in range(3)]
        stack.search("tea")
        stack.prefetch("tea")
        assert {r.access_count for r in notes.records.values()} == {0}
        notes.calls.clear()
        (outcome,) = stack.touch([*ids, ids[0]])
        assert outcome.count == 3
        assert notes.calls == ["touch"]
        assert {r.access_count for r in notes.records.values()} == {1}
        assert stack.touch([]) == ()
