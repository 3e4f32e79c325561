"""What providers return is checked before it is believed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence

from .errors import ProviderError
from .fanout import Accepted
from .filters import Filter, refusal
from .finishing import Finished
from .mount import Mounted
from .plain import are_plain, plain_hit, plain_record
from .records import MemoryRecord
from .results import Hit
from .scope import Scope
from .times import now

__all__ = ["accept_hits", "accept_record", "accept_records", "stamped"]


def accept_hits(
    mounted: Mounted, scope: Scope, filters: Filter | None, limit: int
) -> Callable[[object], Accepted]:
    """A check for the answer of ``search``: hits in the scope, unexpired, that the filter lets by.

    The accepted value is ``(hits, was_full)``; each drop is told in the notes.
    """

    def accept(answer: object) -> Accepted:
        notes: list[str] = []
        hits: Sequence[Hit]
        if type(answer) is Finished:
            notes += answer.notes
        if (
            type(answer) is Finished  # a subclass may hold anything
            and len(answer) <= limit
            and mounted.pinned is None
            and answer.holds(scope, filters)
        ):
            hits, full = answer, len(answer) == limit
        else:
            handed = iter(_iterate(answer))
            given = [*itertools.islice(handed, limit)]
            full = len(given) == limit
            hits = _believed(given, notes, mounted, scope, filters)
            if full and next(handed, handed) is not handed:
                notes.append(f"cut to the {limit} that were asked for")
        if filters is not None and not mounted.filters_natively:
            notes.append("filtered by the stack")
        return Accepted((hits, full), len(hits), tuple(notes))

    return accept


def _believed(
    given: Sequence[object],
    notes: list[str],
    mounted: Mounted,
    scope: Scope,
    filters: Filter | None,
) -> list[Hit]:
    """The hits that may be shown; how many may not is added to the notes."""
    kept: list[Hit] = []
    dropped: list[str] = []
    moment = now()
    for hit in given if are_plain(given) else map(plain_hit, given):
        if isinstance(hit, str):
            dropped.append(hit)
            continue
        if mounted.pinned is not None:
            hit = stamped(hit, mounted)
        reason = refusal(hit.record, scope, filters, moment)
        if reason is None:
            kept.append(hit)
        else:
            dropped.append(reason)
    notes += (f"{dropped.count(reason)} dropped: {reason}" for reason in dict.fromkeys(dropped))
    return kept


def accept_record(
    mounted: Mounted, scope: Scope, ids: Collection[str]
) -> Callable[[object], Accepted]:
    """A check for the answer of ``get``: one of the ids, in the scope, or None."""

    def accept(answer: object) -> Accepted:
        if answer is None:
            return Accepted(None)
        if not issubclass(type(answer), MemoryRecord):
            raise ProviderError(f"get returned {type(answer).__name__}, not a record or None")
        record = plain_record(answer)
        if record is None:
            raise ProviderError("get returned a record that breaks the rules of records")
        record = _stamp(record, mounted)
        asked = record.id in ids
        reason = refusal(record, scope, None, now()) if asked else "not the one that was asked for"
        if reason is not None:
            return Accepted(None, notes=(f"1 dropped: {reason}",))
        return Accepted(record, 1)

    return accept


def accept_records(
    mounted: Mounted, scope: Scope, filters: Filter | None, limit: int
) -> Callable[[object], Accepted]:
    """A check for the answer of ``list``; the accepted value is ``(records, was_full)``."""

    def accept(answer: object) -> Accepted:
        moment = now()
        received: list[MemoryRecord] = []
        kept: list[MemoryRecord] = []
        count = 0
        for given in itertools.islice(_iterate(answer), limit):
            count += 1
            record = plain_record(given)
            if record is not None:
                received.append(record := _stamp(record, mounted))
                if refusal(record, scope, filters, moment) is None:
                    kept.append(record)
        lost = count - len(kept)
        notes = (f"{lost} dropped: no records, outside the scope or filter, or expired",)
        return Accepted((kept, received, count >= limit), len(kept), notes if lost else ())

    return accept


def stamped(hit: Hit, mounted: Mounted) -> Hit:
    """The hit with the scope fields that its provider is pinned to."""
    record = _stamp(hit.record, mounted)
    if record is hit.record:
        return hit
    return Hit(record, hit.score, hit.relevance, hit.native_ids)


def _stamp(record: MemoryRecord, mounted: Mounted) -> MemoryRecord:
    if mounted.pinned is None:
        return record
    missing = {
        name: value
        for name, value in mounted.pinned.set_fields().items()
        if getattr(record.scope, name) is None
    }
    if not missing:
        return record
    scope = Scope(**{**record.scope.set_fields(), **missing})
    return record.model_copy(update={"scope": scope})


def _iterate(answer: object) -> Iterable[object]:
    if answer is None or isinstance(answer, str | bytes | dict) or not isinstance(answer, Iterable):
        raise ProviderError(f"returned {type(answer).__name__}, not a list")
    return answer
