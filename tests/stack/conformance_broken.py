"""Providers that each break one rule, under the kit; run by test_conformance_kit.py only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memsheaf.stack import (
    Filter,
    Hit,
    InvalidQuery,
    MemoryRecord,
    Scope,
    hookimpl,
    new_id,
)
from memsheaf.stack.conformance import ProviderConformance
from memsheaf.stack.doubles import InMemoryStore


class WrongOrder(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        return super().search(text, scope, limit, filters)[::-1]


class DistanceForScore(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        hits = super().search(text, scope, limit, filters)
        return [Hit(h.record, 1 / (1 + h.score), h.relevance) for h in hits]


class RelevanceIsScore(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        hits = super().search(text, scope, limit, filters)
        return [Hit(h.record, h.score, h.score * 10) for h in hits]


class ScopeIgnored(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        return super().search(text, Scope.EVERYONE, limit, filters)


class PatternScope(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        if scope.user_id in ("%", "*"):
            scope = Scope.EVERYONE
        return super().search(text, scope, limit, filters)


class ForgetLies(InMemoryStore):
    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        return True


class ForgetForAnyone(InMemoryStore):
    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        return super().forget(record_id, Scope.EVERYONE)


class LimitIgnored(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        return super().search(text, scope, 1_000, filters)


class FilterAfterLimit(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        hits = super().search(text, scope, limit, None)
        return [h for h in hits if filters is None or filters.matches(h.record)]


class MutatedRecord(InMemoryStore):
    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        super().store(record.model_copy(update={"content": record.content.strip().capitalize()}))


class SharedRecord(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        hits = super().search(text, scope, limit, filters)
        return [Hit(self._records[h.id], h.score, h.relevance) for h in hits]


class LostUnicode(InMemoryStore):
    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        content = record.content.encode("ascii", "replace").decode()
        super().store(record.model_copy(update={"content": content}))


class UpdateLosesFields(InMemoryStore):
    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        held = self.get(record_id, scope)
        if held is None:
            return False
        content = changes.get("content", held.content)
        self.forget(record_id, scope)
        self.store(MemoryRecord(id=held.id, content=content, scope=held.scope))
        return True


class DuplicateOnStore(InMemoryStore):
    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        fresh = record.id in self._records
        super().store(record.model_copy(update={"id": new_id()}) if fresh else record)


class OlderCopyWins(InMemoryStore):
    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        self._records.pop(record.id, None)
        super().store(record)


class EmptyQueryRaises(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        if not text.strip():
            raise InvalidQuery("the text is empty")
        return super().search(text, scope, limit, filters)


class QuerySyntaxRaises(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        if text.count('"') % 2:
            raise InvalidQuery("unbalanced quotes")
        return super().search(text, scope, limit, filters)


class AllWordsNeeded(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        hits = super().search(text, scope, limit, filters)
        return [h for h in hits if h.relevance is None or h.relevance > 0.999]


class ShowsExpired(InMemoryStore):
    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        return self._held(record_id, scope)


class PagesOverlap(InMemoryStore):
    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Any, filters: Filter | None
    ) -> Sequence[MemoryRecord]:
        everything = super().list(scope, 10_000, None, order, filters)
        if after is None:
            return everything[:limit]
        later = super().list(scope, 10_000, after, order, filters)
        start = len(everything) - len(later) - 1  # the record of the cursor comes again
        return everything[start : start + limit] if later else []


class SearchTouches(InMemoryStore):
    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        hits = super().search(text, scope, limit, filters)
        self.touch([h.id for h in hits], scope)
        return hits


class Forgetful(InMemoryStore):
    """Loses everything when it is opened again."""


class _Broken(ProviderConformance):
    broken: type[InMemoryStore]

    @pytest.fixture
    def provider(self) -> object:
        return self.broken()


def _under_the_kit(broken: type[InMemoryStore]) -> type[_Broken]:
    return type(f"Test{broken.__name__}", (_Broken,), {"broken": broken})


for _provider in InMemoryStore.__subclasses__():
    if _provider.__module__ == __name__ and _provider is not Forgetful:
        globals()[f"Test{_provider.__name__}"] = _under_the_kit(_provider)


class TestForgetful(ProviderConformance):
    @pytest.fixture
    def provider(self) -> object:
        return Forgetful()

    @pytest.fixture
    def reopen(self) -> Any:
        return lambda provider: Forgetful()
