"""The conformance kit on the local store, and on a stack of both stores as one provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import MemoryStack, StackProvider
from memsheaf.stack.conformance import ProviderConformance


class TestLocal(ProviderConformance):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Iterator[object]:
        store = LocalStore(tmp_path / "local")
        yield store
        store.close()


class TestLocalEphemeral(ProviderConformance):
    @pytest.fixture
    def provider(self) -> Iterator[object]:
        store = LocalStore()
        yield store
        store.close()


class TestNestedStack(ProviderConformance):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Iterator[StackProvider]:
        stack = MemoryStack([LocalStore(tmp_path / "local"), SqliteStore(tmp_path / "memory.db")])
        yield stack.as_provider()
        stack.close()
