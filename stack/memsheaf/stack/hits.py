"""What providers return is checked before it is believed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import datetime
from math import isfinite

from .errors import ProviderError
from .fanout import Accepted
from .filters import Filter
from .mount import Mounted
from .records import MemoryRecord
from .results import Hit
from .scope import Scope
from .times import now

__all__ = ["accept_hits", "accept_record", "accept_records", "stamped"]


_NUMBERS = (float, int)


def accept_hits(
    mounted: Mounted, scope: Scope, filters: Filter | None, limit: int
) -> Callable[[object], Accepted]:
    """A check for the answer of ``search``: hits in the scope, unexpired, that the filter lets by.

    The accepted value is ``(hits, was_full)``; each drop is told in the notes.
    """

    def accept(answer: object) -> Accepted:
        dropped: dict[str, int] = {}
        kept: list[Hit] = []
        received = 0
        moment = now()
        for hit in itertools.islice(_iterate(answer), limit + 1):
            received += 1
            if received > limit:
                dropped["more than were asked for"] = 1
                break
            reason = _fault(hit, mounted, scope, filters, moment)
            if reason is not None:
                dropped[reason] = dropped.get(reason, 0) + 1
                continue
            assert isinstance(hit, Hit)
            kept.append(hit if mounted.pinned is None else stamped(hit, mounted))
        notes = [f"{count} dropped: {reason}" for reason, count in dropped.items()]
        if "more than were asked for" in dropped:
            notes = [n for n in notes if not n.endswith("more than were asked for")]
            notes.append(f"cut to the {limit} that were asked for")
        if filters is not None and not mounted.filters_natively:
            notes.append("filtered by the stack")
        return Accepted((kept, received >= limit), len(kept), tuple(notes))

    return accept


def accept_record(mounted: Mounted, scope: Scope) -> Callable[[object], Accepted]:
    """A check for the answer of ``get``: a record in the scope, or None."""

    def accept(answer: object) -> Accepted:
        if answer is None:
            return Accepted(None)
        if not isinstance(answer, MemoryRecord):
            raise ProviderError(f"get returned {type(answer).__name__}, not a record or None")
        record = _stamp(answer, mounted)
        if not scope.matches(record.scope) or record.is_expired():
            return Accepted(None, notes=("a record outside the scope or expired was dropped",))
        return Accepted(record, 1)

    return accept


def accept_records(
    mounted: Mounted, scope: Scope, filters: Filter | None, limit: int
) -> Callable[[object], Accepted]:
    """A check for the answer of ``list``; the accepted value is ``(records, was_full)``."""

    def accept(answer: object) -> Accepted:
        moment = now()
        received = list(itertools.islice(_iterate(answer), limit))
        kept = [
            stamped_record
            for record in received
            if isinstance(record, MemoryRecord)
            for stamped_record in (_stamp(record, mounted),)
            if scope.matches(stamped_record.scope)
            and not stamped_record.is_expired(moment)
            and (filters is None or filters.matches(stamped_record))
        ]
        lost = len(received) - len(kept)
        notes = (f"{lost} dropped: outside the scope or filter, or expired",) if lost else ()
        return Accepted((kept, received, len(received) >= limit), len(kept), notes)

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


def _fault(
    hit: object, mounted: Mounted, scope: Scope, filters: Filter | None, moment: datetime
) -> str | None:
    """Why a hit is dropped, or None."""
    if not isinstance(hit, Hit) or not isinstance(record := hit.record, MemoryRecord):
        return "not a Hit with a MemoryRecord"
    if not isinstance(hit.score, _NUMBERS) or not isfinite(hit.score):
        return "its score is not a finite number"
    share = hit.relevance
    if share is not None and not (isinstance(share, _NUMBERS) and 0 <= share <= 1):
        return "its relevance is not in [0, 1]"
    if not isinstance(record.content, str):
        return "its content is not text"
    if mounted.pinned is not None:
        record = _stamp(record, mounted)
    if not scope.matches(record.scope):
        return "outside the scope"
    if record.expires_at is not None and record.is_expired(moment):
        return "expired"
    if filters is not None and not filters.matches(record):
        return "refused by the filter"
    return None
