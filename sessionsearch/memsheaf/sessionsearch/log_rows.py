"""Rows of a conversation log: what comes out, and who may see it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from memsheaf.stack import InvalidQuery, Scope
from memsheaf.stack.text import clean

from .items import Conversation, Item, ItemOrigin
from .log_schema import CONVERSATIONS_AT, FIND, ITEMS_AT

__all__ = [
    "ITEM_FIELDS",
    "Held",
    "at_positions",
    "find",
    "held_from",
    "item_from",
    "micros",
    "read",
    "visible",
]

_LAST = 2**63 - 1  # SQLite's largest number of a row
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ORIGINS = {origin.value: origin for origin in ItemOrigin}


class Held(NamedTuple):
    """A conversation as the file has it."""

    row: int
    conversation: Conversation
    deleted: bool
    note: int | None


ITEM_FIELDS = (
    "type",
    "text",
    "role",
    "origin",
    "data",
    "metadata",
    "created",
    "recorded",
    "status",
    "response_id",
)


def find(connection: sqlite3.Connection, conversation: str) -> Held | None:
    """A conversation that was not erased, whoever owns it."""
    if not isinstance(conversation, str) or clean(conversation) != conversation:
        return None
    row = connection.execute(FIND, (conversation,)).fetchone()
    return None if row is None else held_from(row)


def visible(connection: sqlite3.Connection, conversation: str, scope: Scope) -> Held | None:
    """A conversation that the scope may read."""
    held = find(connection, conversation)
    return held if held is not None and _may_read(scope, held) else None


def at_positions(
    connection: sqlite3.Connection, positions: Iterable[int], scope: Scope
) -> dict[int, tuple[Conversation, Item]]:
    """The items at these positions that the scope may read.

    Raises:
        InvalidQuery: A position is not a whole number.
    """
    places = list(positions)
    if not all(type(place) is int for place in places):
        raise InvalidQuery("the positions of items must be whole numbers, as `changes` tells them")
    places = [place for place in places if 0 < place <= _LAST]
    rows = connection.execute(ITEMS_AT, (json.dumps(places),)).fetchall()
    wanted = json.dumps(list({row for row, *_ in rows}))
    held = [held_from(row) for row in connection.execute(CONVERSATIONS_AT, (wanted,))]
    owners = {each.row: each.conversation for each in held if _may_read(scope, each)}
    return {
        position: (owners[row], item_from(owners[row].id, columns))
        for row, position, *columns in rows
        if row in owners
    }


def _may_read(scope: Scope, held: Held) -> bool:
    return not held.deleted and scope.matches(held.conversation.scope)


def held_from(row: Sequence[Any]) -> Held:
    """A conversation from the columns of `FIND`."""
    conversation = Conversation(
        id=row[1],
        scope=_scope(*row[2:6]),
        title=row[6],
        metadata={} if row[7] == "{}" else json.loads(row[7]),
        created_at=moment_of(row[8]),
        updated_at=moment_of(row[9]),
        last_seq=row[10] - 1 if row[10] else None,
        item_count=row[10] - row[11],
    )
    return Held(row[0], conversation, bool(row[12]), row[13])


@lru_cache(maxsize=256)
def _scope(*fields: str | None) -> Scope:
    """A scope that was checked when it was written."""
    return Scope(*fields)


def read(
    connection: sqlite3.Connection, held: Held | None, statement: str, values: dict[str, Any]
) -> list[Item]:
    """The items that a statement of `ITEMS` finds; none without a conversation."""
    if held is None:
        return []
    rows = connection.execute(statement, values | {"conversation": held.row})
    return [item_from(held.conversation.id, row) for row in rows]


def item_from(conversation: str, row: Sequence[Any]) -> Item:
    """An item from its number and `ITEM_FIELDS`."""
    seq, kind, text, role, origin, data, metadata, created, recorded, status, response_id = row
    said = moment_of(created)
    return Item(
        conversation,
        seq,
        kind,
        text,
        role,
        _ORIGINS[origin],
        {} if data == "{}" else json.loads(data),
        {} if metadata == "{}" else json.loads(metadata),
        said,
        said if recorded == created else moment_of(recorded),
        status,
        response_id,
    )


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(micros: int) -> datetime:
    return _EPOCH + timedelta(0, 0, micros)
