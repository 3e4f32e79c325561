"""The kit's tests of the optional hooks, of threads and of restarts."""

# ruff: noqa: D102  (the name of a test says what it checks)
from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from .conformance_base import MIRA, START, TOMAS, ConformanceBase, record
from .conformance_driver import Driver
from .errors import IdUnavailable
from .filters import Filter
from .scope import Scope

__all__ = ["HooksConformance"]


class HooksConformance(ConformanceBase):
    """What is optional works where it is there."""

    # Optional hooks

    def test_get(self, memory: Driver) -> None:
        memory.require("get")
        stored = record(metadata={"n": 1})
        memory.store(stored)
        assert memory.get("no-such-record", MIRA) is None
        assert memory.get(stored.id, TOMAS) is None
        assert memory.get(stored.id, Scope.EVERYONE) is not None
        if self.keeps_records:
            assert memory.get(stored.id, MIRA) == stored
        memory.forget(stored.id, MIRA)
        assert memory.get(stored.id, MIRA) is None

    def test_list_is_ordered_by_creation(self, memory: Driver) -> None:
        memory.require("list")
        for n in (2, 0, 4, 1, 3):
            memory.store(record(f"note {n}", created_at=START + timedelta(microseconds=n)))
        memory.store(record("not mine", TOMAS))
        newest = [f"note {n}" for n in (4, 3, 2, 1, 0)]
        assert [r.content for r in memory.list(MIRA)] == newest
        assert [r.content for r in memory.list(MIRA, order="oldest")] == newest[::-1]
        assert [r.content for r in memory.list(MIRA, limit=2)] == newest[:2]
        assert memory.list(MIRA, limit=0) == []
        assert len(memory.list(Scope.EVERYONE)) == 6

    @pytest.mark.parametrize("order", ["newest", "oldest"])
    @pytest.mark.parametrize("size", [1, 3, 7])
    def test_pages_neither_overlap_nor_skip(self, memory: Driver, order: str, size: int) -> None:
        memory.require("list")
        for n in range(13):
            memory.store(record(f"note {n}", created_at=START + timedelta(seconds=n // 4)))
        pages = memory.pages(MIRA, size, order)
        seen = [r.id for page in pages for r in page]
        assert len(seen) == len(set(seen)) == 13
        assert seen == [r.id for r in memory.list(MIRA, order=order)]
        assert all(len(page) == size for page in pages[:-1])

    def test_page_survives_the_loss_of_its_cursor(self, memory: Driver) -> None:
        memory.require("list")
        stored = [record(f"note {n}", created_at=START + timedelta(seconds=n)) for n in range(6)]
        for one in stored:
            memory.store(one)
        first = memory.list(MIRA, limit=3)
        memory.forget(first[-1].id, MIRA)
        rest = memory.list(MIRA, after=first[-1])
        assert [r.content for r in rest] == ["note 2", "note 1", "note 0"]

    def test_update_changes_what_it_names(self, memory: Driver) -> None:
        memory.require("update")
        stored = record("Lena works at the bakery", tags=["job"], metadata={"pinned": True})
        memory.store(stored)
        later = datetime.now(UTC)
        changes = {"content": "Lena works at the observatory", "importance": 0.9}
        assert memory.update(stored.id, MIRA, changes | {"updated_at": later}) is True
        assert memory.records("observatory") == [stored.changed(changes, at=later)]
        if self.ranks_words:
            assert memory.contents("bakery") == []
        if memory.has("get"):
            assert memory.get(stored.id, MIRA) == stored.changed(changes, at=later)

    def test_update_of_other_fields_keeps_the_text_findable(self, memory: Driver) -> None:
        memory.require("update")
        stored = record(tags=["old"])
        memory.store(stored)
        changes = {"tags": ("fresh",), "kind": "lesson", "updated_at": datetime.now(UTC)}
        memory.update(stored.id, MIRA, changes)
        assert memory.contents("cello") == [stored.content]
        assert memory.contents("cello", filters=Filter.make(tags_any="fresh", kinds="lesson"))
        assert not memory.contents("cello", filters=Filter.make(tags_any="old"))

    def test_update_of_nothing(self, memory: Driver) -> None:
        memory.require("update")
        stored = record()
        memory.store(stored)
        changes = {"content": "taken over", "updated_at": datetime.now(UTC)}
        assert memory.update("no-such-record", MIRA, changes) is False
        if "user_id" in memory.scope_fields:
            assert memory.update(stored.id, TOMAS, changes) is False
        assert memory.contents("cello") == [stored.content]

    def test_touch_counts_and_changes_nothing_else(self, memory: Driver) -> None:
        memory.require("touch")
        first, second = record("cello one"), record("cello two", access_count=4)
        memory.store(first)
        memory.store(second)
        assert memory.touch([first.id, second.id, "no-such-record"], MIRA) == 2
        assert memory.touch([first.id], TOMAS) == 0
        assert memory.touch([], MIRA) == 0
        found = {r.content: r for r in memory.records("cello")}
        assert [found[c].access_count for c in ("cello one", "cello two")] == [1, 5]
        assert found["cello one"].last_accessed_at > first.last_accessed_at
        assert found["cello one"].updated_at == first.updated_at

    def test_reading_does_not_touch(self, memory: Driver) -> None:
        self._whole()
        stored = record()
        memory.store(stored)
        for _ in range(2):
            assert memory.records("cello") == [stored]

    def test_store_many_stores_each(self, memory: Driver) -> None:
        memory.require("store_many")
        batch = [record(f"cello {n}") for n in range(4)]
        assert not any(isinstance(outcome, Exception) for outcome in memory.store_many(batch))
        assert len(memory.search("cello")) == 4
        assert memory.forget(batch[0].id, MIRA) is True
        assert memory.store_many([]) == []

    def test_store_many_refuses_one_and_stores_the_others(self, memory: Driver) -> None:
        memory.require("store_many")
        self._enforces(memory, "user_id")
        self._whole()
        taken = record("held by another", TOMAS)
        memory.store(taken)
        batch = [record("cello 1"), record("taken over", id=taken.id), record("cello 2")]
        outcomes = memory.store_many(batch)
        assert [type(o) is IdUnavailable for o in outcomes] == [False, True, False]
        assert sum(isinstance(o, Exception) for o in outcomes) == 1
        assert set(memory.contents("cello")) == {"cello 1", "cello 2"}
        assert memory.contents("", TOMAS) == ["held by another"]

    def test_check_of_a_healthy_provider(self, memory: Driver) -> None:
        memory.require("check")
        assert isinstance(memory.check(), str | None)

    # Threads and restarts

    def test_threads_share_it(self, memory: Driver) -> None:
        def work(worker: int) -> None:
            for n in range(10):
                memory.store(record(f"cello {worker} {n}"))
                assert memory.search("cello")
                with contextlib.suppress(IndexError):
                    memory.records("")[0].model_dump()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        contents = memory.contents("cello", limit=100)
        assert len(contents) == len(set(contents)) == 40

    def test_reopened_it_holds_the_same(
        self, provider: object, reopen: Callable[[object], object] | None
    ) -> None:
        if reopen is None:
            pytest.skip("no fixture reopen")
        kept, gone = record("the cello is old", metadata={"n": 1}), record("the cello is new")
        with Driver(provider) as memory:
            memory.store(kept)
            memory.store(gone)
            memory.forget(gone.id, MIRA)
        with Driver(reopen(provider)) as memory:
            assert memory.contents("cello") == [kept.content]
            if self.keeps_records:
                assert memory.records("") == [kept]
            assert memory.forget(kept.id, MIRA) is True
            assert memory.contents("") == []
