"""The conformance kit on the sqlite store, in a file and in memory."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack.conformance import ProviderConformance


class TestSqliteFile(ProviderConformance):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Iterator[object]:
        store = SqliteStore(tmp_path / "memory.db")
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[object], object]]:
        opened: list[SqliteStore] = []

        def again(provider: object) -> object:
            cast(SqliteStore, provider).close()
            opened.append(SqliteStore(tmp_path / "memory.db"))
            return opened[-1]

        yield again
        for store in opened:
            store.close()


class TestSqliteInMemory(ProviderConformance):
    @pytest.fixture
    def provider(self) -> Iterator[object]:
        store = SqliteStore()
        yield store
        store.close()
