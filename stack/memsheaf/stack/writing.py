"""Writing: store, update, touch, through the delivery seam, to all providers that write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from .core import Core, check_id
from .errors import (
    IdUnavailable,
    InvalidQuery,
    InvalidRecord,
    NotFound,
    ProviderError,
    ScopeError,
    StoreFailed,
    UsageError,
)
from .fanout import Accepted, Answer, Request, reason_of
from .mount import Mounted, NotConcerned
from .reading import Reader
from .records import MemoryRecord
from .results import Outcome, Receipt, Status
from .scope import Scope

__all__ = ["BATCH", "Writer"]

BATCH = 500
"""Records that go to a provider in one call of `store_many`."""

_TIMES = frozenset({"created_at", "updated_at"})


class Writer:
    """Sends records to every provider that writes."""

    def __init__(self, core: Core, reader: Reader) -> None:
        self._core = core
        self._reader = reader

    def store(self, content: object, scope: Scope | None, fields: Mapping[str, Any]) -> Receipt:
        """See `MemoryStack.store`."""
        self._core.ensure_open()
        record = self._placed(content, scope, fields)
        self._core.guard("before_store", record=record)
        requests = [self._store_request(m, record) for m in _writers(self._core)]
        answers = self._core.delivery.write("store", requests, self._keep_ids(record.id))
        return self._told(_receipt(record, answers), answers)

    def store_many(
        self, contents: Iterable[object], scope: Scope | None, fields: Mapping[str, Any]
    ) -> list[Receipt]:
        """See `MemoryStack.store_many`."""
        core = self._core
        core.ensure_open()
        if isinstance(contents, str | bytes) or not isinstance(contents, Iterable):
            raise InvalidRecord("store_many takes a list of texts or records; store takes one")
        records: list[MemoryRecord] = []
        for place, content in enumerate(contents):
            try:
                record = self._placed(content, scope, fields)
            except UsageError as error:
                raise type(error)(f"record {place}: {error}; nothing was stored") from error
            core.guard("before_store", record=record)
            records.append(record)
        if len({record.id for record in records}) != len(records):
            raise InvalidRecord("two records of the batch have the same id; nothing was stored")
        receipts: list[Receipt] = []
        for start in range(0, len(records), BATCH):
            receipts.extend(self._batch(records[start : start + BATCH]))
        return [self._tell(receipt) if receipt.stored else receipt for receipt in receipts]

    def update(
        self,
        record_id: str,
        changes: Mapping[str, object],
        scope: Scope | None,
        at: datetime | None,
    ) -> Receipt:
        """See `MemoryStack.update`."""
        core = self._core
        asked = core.scope(scope)
        newest = self._reader.get(record_id, asked)
        if newest is None:
            raise NotFound("no such record in this scope; look it up with list or search")
        merged = self._checked(newest.changed(changes, at=at))
        core.guard("before_store", record=merged)
        requests = [
            core.request(
                m,
                "update",
                _accept_flag,
                m.cannot_hold(newest.scope),
                record_id=record_id,
                scope=newest.scope,
                changes=_values(merged.copy_out(), changes),
                native_ids=core.native.native(m.name, record_id),
            )
            for m in _writers(core)
            if m.has("update")
        ]
        answers = core.delivery.write("update", requests, self._keep_ids(record_id))
        done = {a.request.mounted.name: a for a in answers if a.value is not False}
        lacking = [m for m in _writers(core) if m.name not in done]
        if lacking:  # who cannot update, or does not hold it yet, takes the whole copy
            if self._reader.get(record_id, asked) is None:
                raise NotFound("the record was forgotten in the meantime")
            again = [self._store_request(m, merged) for m in lacking]
            stored = core.delivery.write("update", again, self._keep_ids(record_id))
            done |= {a.request.mounted.name: a for a in stored}
        answers = [done[m.name] for m in _writers(core)]
        return self._told(_receipt(merged, answers), answers)

    def touch(self, record_ids: Sequence[str], scope: Scope | None) -> tuple[Outcome, ...]:
        """See `MemoryStack.touch`."""
        core = self._core
        core.ensure_open()
        asked = core.scope(scope)
        if isinstance(record_ids, str) or not isinstance(record_ids, Iterable):
            raise InvalidQuery("record_ids must be a list of ids")
        ids = list(dict.fromkeys(map(check_id, record_ids)))
        if not ids:
            return ()
        requests = [
            core.request(
                m, "touch", _accept_count, m.cannot_answer(asked), record_ids=ids, scope=asked
            )
            for m in core.mounted
            if m.mode.writes and (m.has("touch") or m.down)
        ]
        answers = core.delivery.write("touch", requests, lambda answer: None)
        return tuple(a.outcome for a in answers)

    def _placed(
        self, content: object, scope: Scope | None, fields: Mapping[str, Any]
    ) -> MemoryRecord:
        """The record to store, its id free in its scope; nothing has been written yet.

        What is written down now replaces what is held, whatever the clock says; a whole record
        keeps its time, so that a copy that comes late does not.
        """
        record = self._record(content, scope, fields)
        if not isinstance(content, MemoryRecord) and fields.get("id") is None:
            return record
        held, _ = self._reader.copies(record.id, Scope.EVERYONE)
        if any(copy.scope != record.scope for copy in held):
            raise IdUnavailable("this id cannot be used here; leave it out to get a fresh one")
        if held and not isinstance(content, MemoryRecord) and not _TIMES & fields.keys():
            record = record.later_than(max(copy.updated_at for copy in held))
        return record

    def _record(
        self, content: object, scope: Scope | None, fields: Mapping[str, Any]
    ) -> MemoryRecord:
        """The record of what was given, checked."""
        if isinstance(content, MemoryRecord):
            if fields:
                raise InvalidRecord("fields are given beside a record; set them on the record")
            if scope is not None and not scope.matches(content.scope):
                raise ScopeError("the record's scope is outside the scope that was given")
            return self._checked(content)
        if isinstance(content, str):
            self._check_length(content)
        owner = self._core.scope(scope).require_writable()
        given = {name: value for name, value in fields.items() if value is not None}
        return MemoryRecord.make(content=content, scope=owner, **given)

    def _checked(self, record: MemoryRecord) -> MemoryRecord:
        self._check_length(record.content)
        return record

    def _check_length(self, content: str) -> None:
        limit = self._core.settings.content_limit
        if len(content) > limit:
            raise InvalidRecord(
                f"content has {len(content)} characters, the limit is {limit} "
                "(setting stack.content_limit); split it or raise the limit"
            )

    def _store_request(self, mounted: Mounted, record: MemoryRecord) -> Request:
        return self._core.request(
            mounted,
            "store",
            _accept_native_ids,
            mounted.cannot_hold(record.scope),
            record=record.copy_out(),
        )

    def _keep_ids(self, record_id: str) -> Callable[[Answer], None]:
        def keep(answer: Answer) -> None:
            if isinstance(answer.value, tuple) and answer.value:
                self._core.native.add(answer.outcome.provider, record_id, answer.value)

        return keep

    def _keep_batch_ids(self, answer: Answer) -> None:
        records = answer.request.arguments["records"]
        for record, entry in zip(records, answer.value, strict=True):
            native = () if isinstance(entry, BaseException) else _accept_native_ids(entry).value
            if native:
                self._core.native.add(answer.outcome.provider, record.id, native)

    def _batch(self, records: Sequence[MemoryRecord]) -> list[Receipt]:
        core = self._core
        requests: list[Request] = []
        shares: list[list[str]] = []
        for m in _writers(core):
            share = [record for record in records if m.cannot_hold(record.scope) is None]
            skip = None if share else NotConcerned(f"it is pinned to {m.pinned}")
            accept = _accept_entries(len(share))
            copies = [record.copy_out() for record in share]
            requests.append(core.request(m, "store_many", accept, skip, records=copies))
            shares.append([record.id for record in share])
        answers = core.delivery.write("store_many", requests, self._keep_batch_ids)
        told: dict[str, list[Outcome]] = {record.id: [] for record in records}
        everyone = [record.id for record in records]
        for answer, ids in zip(answers, shares, strict=True):
            for record_id, outcome in _entries(answer, ids, everyone):
                told[record_id].append(outcome)
        return [self._judged(Receipt(record, tuple(told[record.id]))) for record in records]

    def _judged(self, receipt: Receipt) -> Receipt:
        if receipt.stored or self._core.disabled:
            return receipt
        return replace(receipt, error=str(StoreFailed("not stored", outcomes=receipt.outcomes)))

    def _told(self, receipt: Receipt, answers: Sequence[Answer]) -> Receipt:
        """Raise where no provider took it, else tell the listeners."""
        if not receipt.stored and not self._core.disabled:
            errors = [a.outcome.error for a in answers if a.outcome.error is not None]
            if errors and len(errors) == len(answers) and isinstance(errors[0], UsageError):
                raise errors[0]
            what = "no provider writes" if not answers else "no provider took the record"
            raise StoreFailed(what, outcomes=receipt.outcomes) from (errors[0] if errors else None)
        return self._tell(receipt)

    def _tell(self, receipt: Receipt) -> Receipt:
        told = self._core.tell("after_store", receipt=receipt)
        return replace(receipt, outcomes=receipt.outcomes + told) if told else receipt


def _writers(core: Core) -> list[Mounted]:
    return [m for m in core.mounted if m.mode.writes]


def _values(merged: MemoryRecord, changes: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(merged, name) for name in (*changes, "updated_at")}


def _receipt(record: MemoryRecord, answers: Sequence[Answer]) -> Receipt:
    return Receipt(record, tuple(a.outcome for a in answers))


def _accept_native_ids(answer: object) -> Accepted:
    if answer is None:
        return Accepted((), 1)
    if isinstance(answer, str):
        return Accepted((answer,), 1)
    if isinstance(answer, Sequence) and all(isinstance(item, str) for item in answer):
        return Accepted(tuple(answer), 1)
    raise ProviderError(f"store returned {type(answer).__name__}, not ids or None")


def _accept_flag(answer: object) -> Accepted:
    if not isinstance(answer, bool):
        raise ProviderError(f"update returned {type(answer).__name__}, not True or False")
    return Accepted(answer, int(answer))


def _accept_count(answer: object) -> Accepted:
    if isinstance(answer, bool) or not isinstance(answer, int):
        raise ProviderError(f"touch returned {type(answer).__name__}, not a count")
    return Accepted(answer, answer)


def _accept_entries(count: int) -> Callable[[object], Accepted]:
    def accept(answer: object) -> Accepted:
        if not isinstance(answer, Sequence) or isinstance(answer, str) or len(answer) != count:
            raise ProviderError(f"store_many did not return {count} entries")
        taken = sum(not isinstance(entry, BaseException) for entry in answer)
        for entry in answer:
            if not isinstance(entry, BaseException):
                _accept_native_ids(entry)
        return Accepted(list(answer), taken)

    return accept


def _entries(
    answer: Answer, share: Sequence[str], everyone: Sequence[str]
) -> Iterable[tuple[str, Outcome]]:
    """A batch's answer as one outcome per record."""
    outcome = answer.outcome
    if not outcome.ok:
        for record_id in everyone:
            yield record_id, outcome
        return
    entries = dict(zip(share, answer.value, strict=True))
    for record_id in everyone:
        if record_id not in entries:
            skip = replace(outcome, status=Status.SKIPPED, count=0, concerned=False)
            yield record_id, replace(skip, reason="it is pinned to another scope")
            continue
        entry = entries[record_id]
        if isinstance(entry, BaseException):
            failed = replace(outcome, status=Status.FAILED, count=0, error=entry)
            yield record_id, replace(failed, reason=reason_of(entry))
        else:
            yield record_id, replace(outcome, count=1)
