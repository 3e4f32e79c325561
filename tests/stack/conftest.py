"""Small providers for the tests of the stack, given as fixtures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from memsheaf.stack import (
    Filter,
    Hit,
    IdUnavailable,
    MemoryRecord,
    Order,
    Scope,
    hookimpl,
    read_cursor,
)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


class Shelf:
    """A dictionary searched by shared words.

    Args:
        name: Its name.
        before: Called with the hook's name at the start of each call; may fail or wait.
        deaf: Say that a record was forgotten, and keep it.
        records: What it holds from the start.
    """

    def __init__(
        self,
        name: str = "shelf",
        *,
        before: Callable[[str], object] = lambda hook: None,
        deaf: bool = False,
        records: Iterable[MemoryRecord] = (),
    ) -> None:
        self.name = name
        self.before = before
        self.deaf = deaf
        self.records = {record.id: record for record in records}
        self.calls: list[str] = []

    def _enter(self, hook: str) -> None:
        self.calls.append(hook)
        self.before(hook)

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> list[Hit]:
        self._enter("search")
        words = _words(text)
        hits = [
            Hit(r, float(len(words & _words(r.content))))
            for r in self.records.values()
            if scope.matches(r.scope)
        ]
        if not text.strip():
            return sorted(hits, key=lambda hit: hit.record.updated_at, reverse=True)[:limit]
        found = [hit for hit in hits if hit.score > 0]
        return sorted(found, key=lambda hit: (-hit.score, hit.record.id))[:limit]

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        self._enter("store")
        held = self.records.get(record.id)
        if held is not None and held.scope != record.scope:
            raise IdUnavailable("this id cannot be used here")
        if held is None or held.updated_at <= record.updated_at:
            self.records[record.id] = record

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        self._enter("forget")
        held = self.records.get(record_id)
        if held is None or not scope.matches(held.scope):
            return False
        if not self.deaf:
            del self.records[record_id]
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        self._enter("get")
        held = self.records.get(record_id)
        return held if held is not None and scope.matches(held.scope) else None

    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Order
    ) -> Sequence[MemoryRecord]:
        self._enter("list")
        newest = order == "newest"
        place = read_cursor(after) if after is not None else None
        mine = sorted(
            (r for r in self.records.values() if scope.matches(r.scope)),
            key=lambda r: (r.created_at, r.id),
            reverse=newest,
        )
        if place is not None:
            mine = [
                r
                for r in mine
                if ((r.created_at, r.id) < place if newest else (r.created_at, r.id) > place)
            ]
        return mine[:limit]

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        self._enter("touch")
        held = [i for i in record_ids if i in self.records and scope.matches(self.records[i].scope)]
        for record_id in held:
            record = self.records[record_id]
            count = {"access_count": record.access_count + 1}
            self.records[record_id] = record.model_copy(update=count)
        return len(held)


class UpdatingShelf(Shelf):
    """A shelf that changes fields itself."""

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        self._enter("update")
        held = self.records.get(record_id)
        if held is None or not scope.matches(held.scope):
            return False
        self.records[record_id] = held.model_copy(update=dict(changes))
        changes.get("metadata", {}).clear()  # what it was given is its own
        return True


class AsyncShelf:
    """A shelf behind coroutines."""

    def __init__(self, shelf: Shelf, before: Callable[[str], Any]) -> None:
        self.name = shelf.name
        self.shelf = shelf
        self.before = before

    @hookimpl
    async def search(
        self, text: str, scope: Scope, limit: int, filters: Filter | None
    ) -> list[Hit]:
        await self.before("search")
        return self.shelf.search(text, scope, limit, filters)

    @hookimpl
    async def store(self, record: MemoryRecord) -> None:
        await self.before("store")
        self.shelf.store(record)

    @hookimpl
    async def forget(self, record_id: str, scope: Scope) -> bool:
        await self.before("forget")
        return self.shelf.forget(record_id, scope)

    @hookimpl
    async def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        await self.before("get")
        return self.shelf.get(record_id, scope)


class ForeignShelf:
    """An adapter to a system that gives records ids of its own."""

    name = "foreign"

    def __init__(self) -> None:
        self.rows: dict[str, MemoryRecord] = {}
        self.made = 0

    def _own(self, native: str) -> MemoryRecord:
        return self.rows[native].model_copy(update={"id": native})

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        words = _words(text)
        return [
            Hit(self._own(native), 1.0, native_ids=(native,))
            for native, row in self.rows.items()
            if words & _words(row.content) and scope.matches(row.scope)
        ][:limit]

    @hookimpl
    def store(self, record: MemoryRecord) -> list[str]:
        self.made += 1
        native = f"native-{self.made}"
        self.rows[native] = record
        return [native]

    @hookimpl
    def forget(self, record_id: str, scope: Scope, native_ids: Sequence[str]) -> bool:
        return any([self.rows.pop(native, None) is not None for native in native_ids])

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        row = self.rows.get(record_id)
        return self._own(record_id) if row is not None and scope.matches(row.scope) else None


@pytest.fixture
def shelf() -> Callable[..., Any]:
    return Shelf


@pytest.fixture
def updating_shelf() -> Callable[..., Any]:
    return UpdatingShelf


@pytest.fixture
def async_shelf() -> Callable[..., Any]:
    return lambda name, before: AsyncShelf(Shelf(name), before)


@pytest.fixture
def foreign_shelf() -> Callable[[], Any]:
    return ForeignShelf
