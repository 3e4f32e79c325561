"""The tail of every search: from ids with scores to hits that may be returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .filters import Filter
from .records import MemoryRecord
from .results import Hit
from .scope import Scope
from .times import now

__all__ = ["finish"]


def finish(
    hits: Iterable[tuple[str, float, float | None]],
    records: Mapping[str, MemoryRecord] | Callable[[str], MemoryRecord | None],
    scope: Scope,
    filters: Filter | None,
    limit: int,
) -> list[Hit]:
    """Turn an index's answer into hits, for a provider that is an index plus a table of records.

    Ids without a record (ghosts), records of another scope, expired ones and those that the
    filter refuses are dropped before the cut, so that `limit` counts what may be returned.

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
    kept: list[Hit] = []
    for record_id, score, relevance in sorted(hits, key=lambda hit: -hit[1]):
        if len(kept) >= limit:
            break
        record = look_up(record_id)
        if (
            record is not None
            and scope.matches(record.scope)
            and not record.is_expired(moment)
            and (filters is None or filters.matches(record))
        ):
            kept.append(Hit(record, score, relevance))
    return kept
