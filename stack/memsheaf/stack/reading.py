"""Reading: search, prefetch, get, list and context, over all providers that read."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from .contract import Order
from .core import Core, check_count, check_id
from .cursors import read_cursor, write_cursor
from .errors import Incomplete, InvalidQuery, ProviderError
from .fanout import Accepted, Answer, Request
from .filters import Filter
from .hits import accept_hits, accept_record, accept_records
from .merge import Listing, Merged, merge, merge_recent, resolve_reranker
from .mount import Mounted, NotConcerned
from .records import MemoryRecord
from .relevance import Reranker
from .results import Blocks, Hit, Operation, Outcome, Page, SearchResult, WiderScope
from .scope import Scope
from .text import clean

__all__ = ["MOST", "Reader"]

MOST = 1_000
"""The largest limit of a search or a page."""

Filters = Filter | Mapping[str, object] | None


class Reader:
    """Asks providers and merges what they say."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def search(
        self,
        operation: Operation,
        text: str,
        scope: Scope | None,
        limit: int | None,
        filters: Filters,
        min_relevance: float,
        rerank: str | Reranker | None,
    ) -> SearchResult:
        """See `MemoryStack.search`."""
        core = self._core
        core.ensure_open()
        query, notes = self._query(text)
        wanted = check_count(limit, "limit", core.settings.search_limit, MOST)
        if not (isinstance(min_relevance, (int, float)) and 0 <= min_relevance <= 1):
            raise InvalidQuery("min_relevance must be a number from 0 to 1")
        asked_scope = core.scope(scope)
        conditions = Filter.of(filters)
        core.guard("before_search", text=query, scope=asked_scope)
        if wanted == 0:
            return SearchResult((), (), notes)
        chosen = resolve_reranker(core.settings.rerank if rerank is None else rerank)
        until = core.read_deadline()
        hits, answers = self._ranked(
            operation, query, asked_scope, wanted, conditions, chosen, until
        )
        outcomes = tuple(a.outcome for a in answers)
        best = hits.best(wanted, min_relevance)
        wider = None if best else self._wider(query, asked_scope, conditions, answers, until)
        result = SearchResult(tuple(best), outcomes, notes, wider)
        told = core.tell("after_search", text=query, scope=asked_scope, result=result)
        return replace(result, outcomes=outcomes + told) if told else result

    def get(self, record_id: str, scope: Scope | None) -> MemoryRecord | None:
        """See `MemoryStack.get`."""
        found, answers = self.copies(record_id, self._core.scope(scope))
        if found:
            return max(found, key=lambda record: record.updated_at)
        if any(not a.outcome.complete for a in answers) and not self._core.disabled:
            outcomes = [a.outcome for a in answers]
            raise Incomplete("not found where it could be looked for", outcomes=outcomes)
        return None

    def copies(self, record_id: str, scope: Scope) -> tuple[list[MemoryRecord], list[Answer]]:
        """Every provider's copy of a record, under our id, and the answers."""
        core = self._core
        core.ensure_open()
        check_id(record_id)
        requests = []
        for m in core.mounted:
            if m.mode.reads and (m.has("get") or m.down):
                native = core.native.native(m.name, record_id)
                skip = m.cannot_answer(scope)
                for known in native or (record_id,):
                    accept = accept_record(m, scope, (known, record_id))
                    requests.append(
                        core.request(m, "get", accept, skip, record_id=known, scope=scope)
                    )
        answers = core.read("get", requests)
        found = [
            a.value if a.value.id == record_id else a.value.model_copy(update={"id": record_id})
            for a in answers
            if a.value is not None
        ]
        return found, answers

    def list(
        self,
        scope: Scope | None,
        limit: int | None,
        after: str | None,
        order: Order,
        filters: Filters,
    ) -> Page:
        """See `MemoryStack.list`."""
        core = self._core
        core.ensure_open()
        wanted = check_count(limit, "limit", 100, MOST)
        if order not in ("newest", "oldest"):
            raise InvalidQuery("order must be newest or oldest")
        asked_scope = core.scope(scope)
        conditions = Filter.of(filters)
        place = read_cursor(after) if after is not None else None
        found: dict[str, MemoryRecord] = {}
        outcomes: dict[str, Outcome] = {}
        more = wanted > 0
        while more and len(found) < wanted:
            batch, horizon, told = self._page(asked_scope, wanted, place, order, conditions)
            for outcome in told:  # what one round missed the next does not make good
                held = outcomes.get(outcome.provider)
                if held is None or held.complete:
                    outcomes[outcome.provider] = outcome
            found.update(batch)
            more, place = horizon is not None, horizon
        records = sorted(found.values(), key=_position, reverse=order == "newest")
        cut = records[:wanted]
        last = place if more and len(records) <= wanted else None
        if len(records) > wanted:
            last = _position(cut[-1])
        end = write_cursor(last) if last is not None else None
        return Page(tuple(cut), end, tuple(outcomes.values()))

    def _page(
        self,
        scope: Scope,
        limit: int,
        place: tuple[datetime, str] | None,
        order: Order,
        filters: Filter | None,
    ) -> tuple[dict[str, MemoryRecord], tuple[datetime, str] | None, tuple[Outcome, ...]]:
        """One round: records up to the place that every provider has been read to."""
        core = self._core
        no_list = NotConcerned("it has no list")
        requests = [
            core.request(
                m,
                "list",
                accept_records(m, scope, filters, limit),
                m.cannot_answer(scope) if m.has("list") or m.down else no_list,
                scope=scope,
                limit=limit,
                after=write_cursor(place) if place else None,
                order=order,
                filters=filters,
            )
            for m in core.mounted
            if m.mode.reads
        ]
        answers = core.read("list", requests)
        values = [a.value for a in answers if a.value is not None]
        sign = -1 if order == "newest" else 1
        ends = [_position(received[-1]) for _, received, full in values if full and received]
        horizon = (max(ends) if sign < 0 else min(ends)) if ends else None
        batch: dict[str, MemoryRecord] = {}
        for kept, _, _ in values:
            for record in kept:
                at = _position(record)
                beyond = horizon is not None and (at < horizon if sign < 0 else at > horizon)
                seen = place is not None and (at >= place if sign < 0 else at <= place)
                held = batch.get(record.id)
                if (
                    not beyond
                    and not seen
                    and (held is None or held.updated_at < record.updated_at)
                ):
                    batch[record.id] = record
        if horizon is not None and horizon == place:
            horizon = None  # a provider that ignores the cursor must not hold us for ever
        return batch, horizon, tuple(a.outcome for a in answers)

    def blocks(self, operation: Operation, scope: Scope | None, text: str) -> Blocks:
        """The providers' texts of a context hook."""
        core = self._core
        core.ensure_open()
        asked = core.scope(scope)
        requests = [
            core.request(
                m, operation, _accept_block, m.cannot_answer(asked), scope=asked, text=text
            )
            for m in core.mounted
            if m.has(operation)
        ]
        answers = core.read(operation, requests)
        blocks = tuple((a.outcome.provider, a.value) for a in answers if a.value is not None)
        return Blocks(blocks, tuple(a.outcome for a in answers))

    def check(self) -> tuple[Outcome, ...]:
        """See `MemoryStack.check`."""
        core = self._core
        core.ensure_open()
        requests = [
            core.request(
                m, "check", _accept_check, None if m.has("check") or m.down else "it has no check"
            )
            for m in core.mounted
        ]
        return tuple(a.outcome for a in core.read("check", requests))

    def _query(self, text: object) -> tuple[str, tuple[str, ...]]:
        if not isinstance(text, str):
            raise InvalidQuery(f"text must be text, not {type(text).__name__}")
        limit = self._core.settings.query_limit
        if len(text) <= limit:
            return clean(text), ()
        return clean(text[-limit:]), (f"the query was cut to its last {limit} characters",)

    def listings(
        self,
        operation: Operation,
        mounted: Sequence[Mounted],
        text: str,
        scope: Scope,
        limit: int,
        filters: Filter | None,
        until: float,
    ) -> builtins.list[Answer]:
        """Ask providers for hits; each answer's value is ``(hits, was_full)``."""
        core = self._core
        arguments = {"text": text, "scope": scope, "limit": limit, "filters": filters}
        requests = [
            Request(
                m,
                "prefetch" if operation == "prefetch" and m.has("prefetch") else "search",
                arguments,
                accept_hits(m, scope, filters, limit),
                core.disabled or m.cannot_answer(scope),
            )
            for m in mounted
        ]
        return core.read(operation, requests, until)

    def _ranked(
        self,
        operation: Operation,
        text: str,
        scope: Scope,
        limit: int,
        filters: Filter | None,
        rerank: Reranker | None,
        until: float,
    ) -> tuple[Merged, builtins.list[Answer]]:
        settings = self._core.settings
        readers = [m for m in self._core.mounted if m.mode.reads]
        asked = max(limit, min(settings.overfetch * limit, settings.overfetch_cap))
        answers = self.listings(operation, readers, text, scope, asked, filters, until)
        hits = self._merge(text, answers, rerank)
        if len(hits) >= limit or not self._core.may_ask_again(until):
            return hits, answers
        full = [n for n, a in enumerate(answers) if a.value is not None and a.value[1]]
        if full:
            again = [readers[n] for n in full]
            second = self.listings(operation, again, text, scope, asked * 2, filters, until)
            for n, answer in zip(full, second, strict=True):
                if answer.outcome.ok:
                    answers[n] = answer
            hits = self._merge(text, answers, rerank)
        return hits, answers

    def _merge(self, text: str, answers: Sequence[Answer], rerank: Reranker | None) -> Merged:
        listings = [
            Listing(a.outcome.provider, a.request.mounted.weight, a.value[0])
            for a in answers
            if a.value is not None
        ]
        alias = self._alias if self._core.native.used else None
        if not text.strip():
            return merge_recent(listings, alias)
        settings = self._core.settings
        return merge(
            text,
            listings,
            fusion=settings.fusion,
            demotion=settings.demotion,
            rerank=rerank,
            rerank_weight=settings.rerank_weight,
            alias=alias,
        )

    def _alias(self, provider: str, hit: Hit) -> str | None:
        return self._core.native.ours(provider, hit.native_ids or (hit.record.id,))

    def _wider(
        self,
        text: str,
        scope: Scope,
        filters: Filter | None,
        answers: Sequence[Answer],
        until: float,
    ) -> WiderScope | None:
        """How many matches the user's whole memory holds, where a narrower scope holds none."""
        if scope.is_everyone or scope.user_id is None or not self._core.may_ask_again(until):
            return None
        wider = scope.preset("user")
        if wider == scope:
            return None
        most = self._core.settings.overfetch_cap
        reached = [a.request.mounted for a in answers if a.outcome.ok or not a.outcome.concerned]
        answers = self.listings("search", reached, text, wider, most, filters, until)
        count = len(self._merge(text, answers, None))
        return WiderScope(wider, count) if count else None


def _accept_block(answer: object) -> Accepted:
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return Accepted(None)
    if not isinstance(answer, str):
        raise ProviderError(f"returned {type(answer).__name__}, not text or None")
    return Accepted(clean(answer), 1)


def _accept_check(answer: object) -> Accepted:
    return Accepted(answer, notes=(answer,) if isinstance(answer, str) else ())


def _position(record: MemoryRecord) -> tuple[datetime, str]:
    return (record.created_at, record.id)
