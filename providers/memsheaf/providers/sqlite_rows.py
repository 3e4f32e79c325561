"""Rows of the table of records: which a query selects, and the record that each holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memsheaf.stack import Filter, MemoryRecord, Scope

from .stored import read_stored

__all__ = [
    "COLUMNS",
    "FILTERED",
    "filter_values",
    "micros",
    "owner_condition",
    "read_record",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

COLUMNS = "records.row, records.body, records.access_count, records.accessed"

FILTERED = """
    (:kinds IS NULL OR records.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:since IS NULL OR records.created >= :since)
    AND (:until IS NULL OR records.created <= :until)
    AND (:tags_any IS NULL OR EXISTS (
        SELECT 1 FROM json_each(records.body, '$.tags')
        WHERE value IN (SELECT value FROM json_each(:tags_any))))
    AND (:tags_all IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:tags_all) AS wanted WHERE wanted.value NOT IN (
            SELECT value FROM json_each(records.body, '$.tags'))))
"""

# The narrowest field first: SQLite takes the index of the first, as + hides the others from it.
_BY_FIELD = {
    "session_id": "records.session_id = :session_id",
    "user_id": "records.user_id = :user_id",
    "agent_id": "records.agent_id = :agent_id",
    "namespace": "records.namespace = :namespace",
}


def owner_condition(scope: Scope) -> str:
    """The SQL condition of a scope, made of constants; its values are parameters."""
    conditions = [text for name, text in _BY_FIELD.items() if name in scope.set_fields()]
    if not conditions:
        return "TRUE" if scope.is_everyone else "FALSE"
    return " AND +".join(conditions)


def filter_values(filters: Filter | None) -> dict[str, Any]:
    """The parameters of `FILTERED`."""
    given = filters or Filter()
    return {
        "kinds": json.dumps(given.kinds) if given.kinds else None,
        "tags_any": json.dumps(given.tags_any) if given.tags_any else None,
        "tags_all": json.dumps(given.tags_all) if given.tags_all else None,
        "since": micros(given.since),
        "until": micros(given.until),
    }


def micros(moment: datetime | None) -> int | None:
    """A time as microseconds since 1970."""
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def read_record(found: Sequence[Any]) -> MemoryRecord:
    """A record from `COLUMNS`; what `touch` counts lies beside the body."""
    record = read_stored(found[1])
    touched = {
        "access_count": found[2],
        "last_accessed_at": _EPOCH + timedelta(microseconds=found[3]),
    }
    return record.model_copy(update=touched)
