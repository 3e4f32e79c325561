"""The kit passes on the in-memory store: whole, wrapped, async, and with the least of hooks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memsheaf.stack import Hit, MemoryRecord, Scope, hookimpl
from memsheaf.stack.conformance import ProviderConformance
from memsheaf.stack.doubles import InMemoryStore, RecordingProvider


class TestInMemoryStore(ProviderConformance):
    @pytest.fixture
    def provider(self) -> object:
        return InMemoryStore()


class TestRecordingProvider(ProviderConformance):
    @pytest.fixture
    def provider(self) -> object:
        return RecordingProvider()


class Least:
    """Three hooks, no filters, no scope fields, some async, arguments in another order."""

    def __init__(self) -> None:
        self._inner = InMemoryStore()

    @hookimpl
    async def search(self, limit: int, scope: Scope, text: str) -> Sequence[Hit]:
        return self._inner.search(text, scope, limit, None)

    @hookimpl
    async def store(self, record: MemoryRecord) -> list[str]:
        self._inner.store(record.model_copy(update={"id": f"native-{record.id}"}))
        return [f"native-{record.id}"]

    @hookimpl
    def forget(self, scope: Scope, native_ids: Sequence[str]) -> bool:
        return any(self._inner.forget(native_id, scope) for native_id in native_ids)


class TestLeast(ProviderConformance):
    keeps_records = False

    @pytest.fixture
    def provider(self) -> object:
        return Least()
