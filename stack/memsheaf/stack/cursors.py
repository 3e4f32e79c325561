"""Cursors of `list`: a place between two records in the order of (created_at, id)."""

from __future__ import annotations

import json
from datetime import datetime

from .errors import InvalidQuery
from .records import MemoryRecord
from .times import parse_time

__all__ = ["cursor_of", "read_cursor", "write_cursor"]


def cursor_of(record: MemoryRecord) -> str:
    """The cursor that stands right after a record."""
    return write_cursor((record.created_at, record.id))


def write_cursor(place: tuple[datetime, str]) -> str:
    """The cursor that stands right after a place, given as ``created_at`` and id."""
    return json.dumps([place[0].isoformat(), place[1]])


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """The ``created_at`` and id of the record that a cursor stands after.

    Raises:
        InvalidQuery: It is not a cursor of ours.
    """
    try:
        moment, record_id = json.loads(cursor)
        if not (isinstance(moment, str) and isinstance(record_id, str)):
            raise ValueError("wrong types")
        return parse_time(moment), record_id
    except (ValueError, TypeError) as error:
        raise InvalidQuery("after: not a cursor; use the `next` of a page") from error
