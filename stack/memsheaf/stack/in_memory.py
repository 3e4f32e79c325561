"""A whole provider in a dict: a double for tests, and an oracle for other providers."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memsheaf.index import get_analyzer, terms

from .contract import Order, hookimpl
from .cursors import read_cursor
from .errors import IdUnavailable
from .filters import Filter, refusal
from .finishing import finish
from .records import MemoryRecord
from .relevance import searchable
from .results import Hit
from .scope import SCOPE_FIELDS, Scope
from .times import now

__all__ = ["InMemoryStore"]

_K1, _B = 0.9, 0.4


class InMemoryStore:
    """A whole provider in a dict: every hook, no index, gone with the process.

    A search reads every record, so it is an oracle for others and fit for some thousand records.

    >>> store, mira = InMemoryStore(), Scope(user_id="mira")
    >>> store.store(MemoryRecord(content="Mira plays the cello", scope=mira))
    >>> [hit.record.content for hit in store.search("who plays a cello?", mira, 5, None)]
    ['Mira plays the cello']
    """

    scope_fields = SCOPE_FIELDS
    filters_natively = True
    inline = True

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._records: dict[str, MemoryRecord] = {}
        self._terms: dict[str, Counter[str]] = {}
        self._analyzer = get_analyzer("english")

    def __len__(self) -> int:
        return len(self._records)

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        """Hits by BM25 over the records that the scope may see."""
        with self._lock:
            moment = now()
            visible = [record for record in self._records.values() if scope.matches(record.scope)]
            if not text.strip():
                visible.sort(key=lambda record: record.recency(moment), reverse=True)
                ranked: list[tuple[str, float, float | None]]
                ranked = [(record.id, 0.0, None) for record in visible]
            else:
                visible.sort(key=lambda record: (record.recency(moment), record.id), reverse=True)
                ranked = self._scored(text, [record.id for record in visible])
            return finish(ranked, self._copy, scope, filters, limit)

    def _copy(self, record_id: str) -> MemoryRecord:
        return self._records[record_id].copy_out()

    def _scored(self, text: str, ids: Sequence[str]) -> list[tuple[str, float, float | None]]:
        wanted = set(terms(self._analyzer, text))
        documents = {record_id: self._terms[record_id] for record_id in ids}
        frequency = Counter(term for found in documents.values() for term in wanted & found.keys())
        size = len(documents)
        idf = {t: math.log(1 + (size - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in wanted}
        whole = math.fsum(idf.values())
        mean = sum(found.total() for found in documents.values()) / size if size else 1.0
        ranked: list[tuple[str, float, float | None]] = []
        for record_id, found in documents.items():
            held = sorted(wanted & found.keys())
            if held:
                norm = _K1 * (1 - _B + _B * found.total() / mean)
                score = math.fsum(idf[t] * found[t] / (found[t] + norm) for t in held)
                relevance = min(1.0, math.fsum(idf[t] for t in held) / whole)
                ranked.append((record_id, score, relevance))
        return ranked

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Keep a record unless a newer copy of it is held."""
        with self._lock:
            held = self._records.get(record.id)
            if held is not None and held.scope != record.scope:
                raise IdUnavailable("the id cannot be used in this scope; choose another")
            if held is None or held.updated_at <= record.updated_at:
                self._keep(record)

    @hookimpl
    def store_many(self, records: Sequence[MemoryRecord]) -> list[Exception | None]:
        """Keep several records; each is refused by itself."""
        outcomes: list[Exception | None] = []
        for record in records:
            try:
                self.store(record)
                outcomes.append(None)
            except IdUnavailable as error:
                outcomes.append(error)
        return outcomes

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete a record of the scope."""
        with self._lock:
            if self._held(record_id, scope) is None:
                return False
            del self._records[record_id], self._terms[record_id]
            return True

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        """Change fields of a record of the scope."""
        with self._lock:
            held = self._held(record_id, scope)
            if held is None:
                return False
            fields = {name: value for name, value in changes.items() if name != "updated_at"}
            self._keep(held.changed(fields, at=changes.get("updated_at")))
            return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """A copy of the record."""
        with self._lock:
            held = self._held(record_id, scope)
            return None if held is None or held.is_expired() else held.copy_out()

    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Order, filters: Filter | None
    ) -> Sequence[MemoryRecord]:
        """Copies of the records that follow the cursor."""
        newest = order == "newest"
        place = read_cursor(after) if after is not None else None
        with self._lock:
            moment = now()
            ordered = sorted(
                (
                    record
                    for record in self._records.values()
                    if refusal(record, scope, filters, moment) is None
                ),
                key=_place,
                reverse=newest,
            )
            if place is not None:
                ordered = [
                    r for r in ordered if (_place(r) < place) == newest and _place(r) != place
                ]
            return [record.copy_out() for record in ordered[:limit]]

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one recall of each record of the scope."""
        moment, touched = now(), 0
        with self._lock:
            for record_id in dict.fromkeys(record_ids):
                held = self._held(record_id, scope)
                if held is not None:
                    seen = {"access_count": held.access_count + 1, "last_accessed_at": moment}
                    self._records[record_id] = held.model_copy(update=seen)
                    touched += 1
        return touched

    @hookimpl
    def check(self) -> str:
        """How many records there are."""
        return f"{len(self)} records in memory"

    @hookimpl
    def close(self) -> None:
        """Nothing to let go of: the records stay until the object goes."""

    def _held(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        held = self._records.get(record_id)
        return held if held is not None and scope.matches(held.scope) else None

    def _keep(self, record: MemoryRecord) -> None:
        self._records[record.id] = record.copy_out()
        self._terms[record.id] = Counter(terms(self._analyzer, searchable(record)))


def _place(record: MemoryRecord) -> tuple[Any, str]:
    return record.created_at, record.id
