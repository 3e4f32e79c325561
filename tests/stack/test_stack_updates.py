"""Updates: owner and times stay, every provider gets them, what is forgotten stays forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memsheaf.stack import (
    InvalidRecord,
    MemoryRecord,
    MemoryStack,
    NotFound,
    Scope,
    hookimpl,
    read_only,
)

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
Make = Callable[..., Any]


def test_bc_020_an_update_keeps_owner_times_and_metadata(shelf: Make, updating_shelf: Make) -> None:
    lena = Scope(user_id="lena")
    for stores in ([shelf("a")], [updating_shelf("a")], [shelf("a"), updating_shelf("b")]):
        with MemoryStack(stores) as stack:
            made = stack.store(
                "allergic to walnuts", scope=lena, metadata={"source": "chat", "pinned": True}
            ).record
            receipt = stack.update(made.id, {"content": "allergic to walnuts and pecans"}, lena)
            assert receipt.stored
            assert not receipt.partial
            for store in stores:
                held = store.records[made.id]
                assert held.content == "allergic to walnuts and pecans"
                assert held.scope == lena
                assert held.metadata == {"source": "chat", "pinned": True}
                assert held.created_at == made.created_at
                assert held.updated_at == receipt.record.updated_at > made.updated_at
            assert len(stack.search("pecans", lena)) == 1
            assert len(stack.search("pecans", MIRA)) == 0


def test_an_update_reaches_a_replica_that_lacks_the_record(updating_shelf: Make) -> None:
    full, empty = updating_shelf("full"), updating_shelf("empty")
    with MemoryStack([full, empty], scope=MIRA) as stack:
        made = stack.store("tea")
        del empty.records[made.id]
        receipt = stack.update(made.id, {"importance": 0.9})
        assert [o.status.value for o in receipt.outcomes] == ["ok", "ok"]
        assert empty.records[made.id].importance == 0.9
        assert empty.records[made.id].content == "tea"


@pytest.mark.parametrize("mixed", ["a", "ab", "b", "bb", "ba"])
def test_an_update_does_not_bring_back_what_is_forgotten_meanwhile(
    shelf: Make, updating_shelf: Make, mixed: str
) -> None:
    class Forgets:
        @hookimpl
        def before_store(self, record: MemoryRecord) -> None:
            assert stack.forget(record.id)

    stores = [
        updating_shelf(f"{n}") if kind == "a" else shelf(f"{n}") for n, kind in enumerate(mixed)
    ]
    with MemoryStack(stores, scope=MIRA) as stack:
        made = stack.store("tea")
        stack.listen(Forgets())
        with pytest.raises(NotFound):
            stack.update(made.id, {"content": "green tea"})
        assert [store.records for store in stores] == [{} for _ in stores]
        assert len(stack.list()) == 0


@pytest.mark.parametrize("updates", [False, True])
def test_an_update_does_not_heal_a_replica_of_what_is_forgotten_meanwhile(
    shelf: Make, updating_shelf: Make, updates: bool
) -> None:
    first = updating_shelf("first")
    second = updating_shelf("second") if updates else shelf("second")
    update = first.update

    @hookimpl
    def updates_then_forgets(record_id: str, scope: Scope, changes: dict[str, Any]) -> bool:
        done: bool = update(record_id, scope, changes)
        del first.records[record_id]  # as a forget does that comes between
        return done

    first.update = updates_then_forgets
    with MemoryStack([first, second], scope=MIRA) as stack:
        made = stack.store("tea")
        second.records.clear()
        with pytest.raises(NotFound):
            stack.update(made.id, {"content": "green tea"})
        assert first.records == second.records == {}


def test_an_update_of_what_only_a_reader_holds_makes_a_copy(updating_shelf: Make) -> None:
    archive, notes = updating_shelf("archive"), updating_shelf("notes")
    kept = MemoryRecord.make(content="tea", scope=MIRA)
    archive.records[kept.id] = kept
    with MemoryStack([read_only(archive), notes], scope=MIRA) as stack:
        assert stack.update(kept.id, {"content": "green tea"}).stored
        assert notes.records[kept.id].content == "green tea"
        assert archive.records[kept.id].content == "tea"


def test_an_update_is_told_as_it_went(updating_shelf: Make) -> None:
    sick: set[str] = set()

    def before(hook: str) -> None:
        if hook in sick:
            raise OSError(5, "Input/output error")

    stores = [updating_shelf("a", before=before), updating_shelf("b")]
    with MemoryStack(stores, scope=MIRA) as stack:
        made = stack.store("tea")
        sick.add("update")
        assert stack.update(made.id, {"content": "green tea"}).partial
        newest = stack.get(made.id)
        assert newest is not None
        assert newest.content == "green tea"
        wrong: list[dict[str, Any]] = [{"id": "x"}, {"scope": TOMAS}, {"importance": 2}]
        for bad in wrong:
            with pytest.raises(InvalidRecord):
                stack.update(made.id, bad)
        with pytest.raises(InvalidRecord, match="64000"):
            stack.update(made.id, {"content": "x" * 64_001})
        with pytest.raises(NotFound):
            stack.update("nowhere", {"content": "x"})
