"""The tail of every search: from ids with scores to hits that may be returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import inf
from operator import itemgetter

from .filters import Filter, refusal
from .plain import are_plain
from .records import MemoryRecord
from .results import Hit
from .scope import Scope
from .times import now

__all__ = ["Finished", "finish"]


class Finished(tuple[Hit, ...]):
    """Hits that `finish` has checked, so that the stack need not check each of them again.

    Attributes:
        scope: For whom; None where nothing was checked.
        filters: Under which conditions.
        until: When the first of them expires.
        notes: What was dropped before there was an order.
    """

    scope: Scope | None = None
    filters: Filter | None = None
    until: datetime | None = None
    notes: tuple[str, ...] = ()

    def holds(self, scope: Scope, filters: Filter | None) -> bool:
        """Whether it was checked for this very question, and none has expired since."""
        return (
            self.scope is scope
            and self.filters is filters
            and (self.until is None or self.until > now())
        )


def finish(
    hits: Iterable[tuple[str, float, float | None]],
    records: Mapping[str, MemoryRecord] | Callable[[str], MemoryRecord | None],
    scope: Scope,
    filters: Filter | None,
    limit: int,
) -> Sequence[Hit]:
    """Turn an index's answer into hits, for a provider that is an index plus a table of records.

    Ids without a record (ghosts), records of another scope, expired ones and those that the
    filter refuses are dropped before the cut, so that `limit` counts what may be returned. So are
    scores that are not finite, which have no place in an order; the stack tells them.
    A search that returns the result as it is saves the stack from checking every hit again.

    Args:
        hits: Record id, score (larger is better) and relevance in [0, 1] or None.
        records: The table, or a function that looks an id up.
        scope: Who asks.
        filters: Conditions, or None.
        limit: How many hits at the most.

    Returns:
        Hits by falling score; equal scores keep their order.
    """
    look_up = records.get if isinstance(records, Mapping) else records
    moment = now()
    until: datetime | None = None
    kept: list[Hit] = []
    given = [*hits]
    scored = [hit for hit in given if -inf < hit[1] < inf]
    for record_id, score, relevance in sorted(scored, key=itemgetter(1), reverse=True):
        if len(kept) >= limit:
            break
        record = look_up(record_id)
        if record is None or refusal(record, scope, filters, moment) is not None:
            continue
        expires = record.expires_at
        if expires is not None and (until is None or expires < until):
            until = expires
        kept.append(Hit(record, score, relevance))
    finished = Finished(kept)
    if lost := len(given) - len(scored):
        finished.notes = (f"{lost} dropped: its score is not a finite number",)
    if are_plain(kept):  # else the stack mends or drops each, and tells
        finished.scope, finished.filters, finished.until = scope, filters, until
    return finished
