"""What the parts of the conformance kit share: fixtures, traits, texts and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from .conformance_driver import Driver
from .records import MemoryRecord
from .scope import Scope, ScopeField

__all__ = ["HOSTILE_TEXTS", "MIRA", "START", "TOMAS", "ConformanceBase", "record"]

MIRA, TOMAS = Scope(user_id="mira"), Scope(user_id="tomas")
START = datetime(2026, 3, 1, 9, tzinfo=UTC)

HOSTILE_TEXTS = (
    '"unclosed', "'; DROP TABLE records;--", "AND", "gate OR", "NOT gate", "NEAR(gate", "(gate",
    "***", "*", "%", "_", "std::map", "body:gate", "gate^2", "-gate", "--fail-on-warn", "+gate",
    '"--fail-on-warn"', "gate*", "{gate} : x", "\\", "\x00gate", "ga\ud800te", "\u202egate", "🚀",
    "content:", "a" * 5_000, "gate " * 1_000, "(" * 500, "\n\t gate", "[gate](x)", "$.gate", "?1",
)  # fmt: skip
"""Query texts that are syntax somewhere; to a provider each of them is plain text."""


def record(
    content: str = "Mira plays the cello", scope: Scope = MIRA, **more: object
) -> MemoryRecord:
    """A record with a fixed time, so that tests do not depend on the clock."""
    return MemoryRecord.make(**{"content": content, "scope": scope, "created_at": START, **more})


class ConformanceBase:
    """The fixtures of the kit, and the traits that a derived class may deny.

    Attributes:
        keeps_records: Whether records come back whole and under our ids; an adapter to a system
            that cannot do so sets it to False.
        ranks_words: Whether it matches words; a provider that matches by meaning sets it to False.
    """

    keeps_records = True
    ranks_words = True

    @pytest.fixture
    def provider(self) -> object:
        """The provider under test, empty."""
        raise NotImplementedError("give the class a fixture `provider`")

    @pytest.fixture
    def reopen(self) -> Callable[[object], object] | None:
        """Override for a durable provider: closes the given one and opens its data again."""
        return None

    @pytest.fixture
    def memory(self, provider: object) -> Iterator[Driver]:
        """The provider's hooks, called as the stack calls them."""
        with Driver(provider) as driver:
            yield driver

    def _whole(self) -> None:
        if not self.keeps_records:
            pytest.skip("keeps_records is False")

    def _words(self) -> None:
        if not self.ranks_words:
            pytest.skip("ranks_words is False")

    def _enforces(self, memory: Driver, field: ScopeField) -> None:
        if field not in memory.scope_fields:
            pytest.skip(f"does not enforce {field}")
