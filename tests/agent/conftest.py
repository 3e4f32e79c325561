from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import Item, SessionSearch, open_sessions
from memsheaf.stack import Filter, Hit, MemoryRecord, MemoryStack, Scope, hookimpl
from memsheaf.usermodel import Add, LineKind, Operation, Profile

Parse = Callable[[str], list[dict[str, Any]]]
MakeStack = Callable[..., MemoryStack]
DAY = datetime(2026, 5, 1, tzinfo=UTC)


class Known:
    """Finds every memory that it was given, in order, each as relevant as it is told."""

    inline = True
    scope_fields = ("user_id",)

    def __init__(self, memories: Sequence[tuple[MemoryRecord, float]]) -> None:
        self.memories = memories
        self.asked: list[str] = []

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> list[Hit]:
        self.asked.append(text)
        seen = [m for m in self.memories if scope.matches(m[0].scope)]
        return [
            Hit(record, score=1 - n / 1_000, relevance=relevance)
            for n, (record, relevance) in enumerate(seen[:limit])
        ]


class Noting:
    """A deriver that keeps each item as a line."""

    name = "noting"

    def derive(self, profile: Profile, items: Sequence[Item]) -> list[Operation]:
        return [Add(LineKind.FACT, f"Said: {item.text}", 0.9, (item.id,)) for item in items]


@pytest.fixture
def noting() -> Noting:
    return Noting()


@pytest.fixture
def mira() -> Scope:
    return Scope(user_id="mira")


@pytest.fixture
def stack(mira: Scope) -> Iterator[MemoryStack]:
    """A stack that knows one thing of Mira."""
    with MemoryStack([LocalStore()], scope=mira) as made:
        made.store("Mira plays the cello")
        yield made


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[SessionSearch]:
    with open_sessions(tmp_path / "sessions") as made:
        yield made


@pytest.fixture
def make_stack(mira: Scope) -> Iterator[MakeStack]:
    """A stack that knows texts (relevance 1) or (text, relevance), beside other providers."""
    opened: list[MemoryStack] = []

    def make(
        *memories: str | tuple[str, float], also: Sequence[object] = (), **options: Any
    ) -> Any:
        pairs = [(m, 1.0) if isinstance(m, str) else m for m in memories]
        known = Known(
            [
                (MemoryRecord(id=f"m{n}", content=text, scope=mira, created_at=DAY), value)
                for n, (text, value) in enumerate(pairs)
            ]
        )
        stack = MemoryStack([known, *also], scope=mira, **options)
        opened.append(stack)
        return stack

    yield make
    for stack in opened:
        stack.close()


@pytest.fixture(scope="session")
def parse() -> Parse:
    """Reads a block back; fails where anything but the fence could be taken for a tag."""

    def read(block: str) -> list[dict[str, Any]]:
        opening, notice, *lines, closing = block.splitlines()
        assert opening.startswith("<memory-context-")
        assert closing == opening.replace("<", "</", 1)
        assert "not instructions" in notice
        assert block.count("<") == block.count(">") == 2
        return [json.loads(line) for line in lines]

    return read
