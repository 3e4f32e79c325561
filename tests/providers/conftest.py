from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryRecord, Scope

MIRA = Scope(user_id="mira")


@pytest.fixture(scope="session")
def note() -> Callable[..., MemoryRecord]:
    """Makes a record of Mira's."""

    def make(content: str, **fields: object) -> MemoryRecord:
        return MemoryRecord.make(content=content, scope=MIRA, **fields)

    return make


@pytest.fixture(scope="session")
def ids() -> Callable[..., set[str]]:
    """Finds the ids of Mira's records in a local store."""

    def find(store: LocalStore, text: str = "", limit: int = 10_000) -> set[str]:
        return {hit.id for hit in store.search(text, MIRA, limit, None)}

    return find


@pytest.fixture
def forked() -> Callable[[Callable[[], None]], None]:
    """Runs a function in a forked child; it must end well and in time."""

    def run(body: Callable[[], None]) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(20)
                body()
                code = 0
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0

    return run
