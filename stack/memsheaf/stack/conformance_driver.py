"""Calls a provider's hooks as the stack does, one provider at a time, for the conformance kit."""

from __future__ import annotations

import asyncio
import builtins
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pluggy
import pytest

from .contract import PROJECT, ProviderSpec
from .cursors import cursor_of
from .filters import Filter
from .mounting import mount_all
from .records import MemoryRecord
from .results import Hit
from .scope import Scope

__all__ = ["Driver"]


class Driver:
    """The hooks of one provider as plain calls.

    Passes the arguments that each hook declares, runs async hooks on one loop, and keeps the
    native ids that ``store`` returned. The scope of a search is ``user_id="mira"`` if not given.
    """

    def __init__(self, provider: object) -> None:
        manager = pluggy.PluginManager(PROJECT)
        manager.add_hookspecs(ProviderSpec)
        (self._mounted,) = mount_all(manager, [provider])
        self._native_ids: dict[str, tuple[str, ...]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def scope_fields(self) -> frozenset[str]:
        """The scope fields that the provider enforces."""
        return self._mounted.scope_fields

    @property
    def filters_natively(self) -> bool:
        """Whether the provider filters before it cuts."""
        return self._mounted.filters_natively

    def has(self, hook: str) -> bool:
        """Whether the provider implements a hook."""
        return self._mounted.has(hook)

    def require(self, hook: str) -> None:
        """Skip the test by name where the provider does not implement a hook."""
        if not self.has(hook):
            pytest.skip(f"does not implement {hook}")

    def search(
        self,
        text: str,
        scope: Scope | None = None,
        limit: int = 10,
        filters: Filter | None = None,
    ) -> list[Hit]:
        """Hits; filtered here too where the provider does not filter."""
        scope = Scope(user_id="mira") if scope is None else scope
        hits = self._call("search", text=text, scope=scope, limit=limit, filters=filters)
        assert all(isinstance(hit, Hit) for hit in hits), "search returns hits"
        if filters is None or self.filters_natively:
            return list(hits)
        return [hit for hit in hits if filters.matches(hit.record)]

    def records(
        self, text: str, scope: Scope | None = None, **more: Any
    ) -> builtins.list[MemoryRecord]:
        """The records of the hits."""
        return [hit.record for hit in self.search(text, scope, **more)]

    def contents(self, text: str, scope: Scope | None = None, **more: Any) -> builtins.list[str]:
        """The contents of the hits."""
        return [record.content for record in self.records(text, scope, **more)]

    def store(self, record: MemoryRecord) -> None:
        """Store a copy of a record."""
        native_ids = self._call("store", record=record)
        self._native_ids[record.id] = tuple(native_ids or ())

    def store_many(self, records: Sequence[MemoryRecord]) -> builtins.list[object]:
        """Store a batch: for each an error, or None, or the native ids that it became."""
        outcomes = builtins.list(self._call("store_many", records=records))
        for record, outcome in zip(records, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self._native_ids[record.id] = tuple(outcome or ())
        return outcomes

    def forget(self, record_id: str, scope: Scope) -> object:
        """What the provider answered."""
        native_ids = self._native_ids.get(record_id, ())
        return self._call("forget", record_id=record_id, scope=scope, native_ids=native_ids)

    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> object:
        """What the provider answered."""
        native_ids = self._native_ids.get(record_id, ())
        return self._call(
            "update", record_id=record_id, scope=scope, changes=changes, native_ids=native_ids
        )

    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record or None."""
        found: MemoryRecord | None = self._call("get", record_id=record_id, scope=scope)
        return found

    def list(
        self,
        scope: Scope,
        limit: int = 100,
        after: MemoryRecord | None = None,
        order: str = "newest",
        filters: Filter | None = None,
    ) -> builtins.list[MemoryRecord]:
        """One page; filtered here too where the provider does not filter."""
        cursor = None if after is None else cursor_of(after)
        page = builtins.list(
            self._call("list", scope=scope, limit=limit, after=cursor, order=order, filters=filters)
        )
        if filters is None or self.filters_natively:
            return page
        return [record for record in page if filters.matches(record)]

    def pages(
        self, scope: Scope, size: int, order: str
    ) -> builtins.list[builtins.list[MemoryRecord]]:
        """Every page until an empty one; stops after 100."""
        pages: builtins.list[builtins.list[MemoryRecord]] = []
        after: MemoryRecord | None = None
        for _ in range(100):
            page = self.list(scope, size, after, order)
            if not page:
                break
            pages.append(page)
            after = page[-1]
        return pages

    def touch(self, record_ids: Sequence[str], scope: Scope) -> object:
        """What the provider answered."""
        return self._call("touch", record_ids=record_ids, scope=scope)

    def check(self) -> object:
        """What the provider answered."""
        return self._call("check")

    def _call(self, name: str, **available: Any) -> Any:
        hook = self._mounted.hooks[name]
        arguments = hook.bind(available)
        if not hook.is_async:
            return hook.function(**arguments)
        return asyncio.run_coroutine_threadsafe(hook.function(**arguments), self._loop).result(60)
