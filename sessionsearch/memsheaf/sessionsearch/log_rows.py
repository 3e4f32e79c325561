"""Rows of a conversation log: what goes in, what comes out, and who may see it."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, cast

from memsheaf.stack import InvalidRecord, Scope
from memsheaf.stack.text import clean

from .items import Conversation, Item, ItemOrigin, NewItem, to_json
from .log_schema import CONVERSATIONS_AT, ERASE_NOTE, FIND, ITEMS_AT

__all__ = [
    "ITEM_FIELDS",
    "Held",
    "at_positions",
    "carried",
    "describe",
    "encoded",
    "find",
    "held_from",
    "is_carried",
    "item_from",
    "micros",
    "only_new",
    "read",
    "visible",
]

_CARRIED = "key of another log: "
_CARRIED_KEY = re.compile(rf"{_CARRIED}([0-9a-f]{{32}})")
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


def encoded(item: object, recorded: int) -> dict[str, Any]:
    """The columns of an item, in the order of `ADD_ITEM`."""
    if not isinstance(item, NewItem):
        raise InvalidRecord(f"append takes NewItem, not {type(item).__name__}")
    created = cast("datetime | None", item.created_at)  # a new item has read it
    return {
        "type": item.type,
        "role": item.role,
        "origin": item.origin.value,
        "status": item.status,
        "response_id": item.response_id,
        "created": recorded if created is None else micros(created),
        "recorded": recorded,
        "key": None if item.key is None else _digest(item.key),
        "text": item.text,
        "data": to_json("data", item.data),
        "metadata": to_json("metadata", item.metadata),
    }


def carried(digest: bytes) -> str:
    """A key of which only the hash is known, as `NewItem.key` takes it."""
    return f"{_CARRIED}{digest.hex()}"


def is_carried(key: object) -> bool:
    """Whether it is what `carried` gives."""
    return isinstance(key, str) and _CARRIED_KEY.fullmatch(key) is not None


def _digest(key: str) -> bytes:
    if found := _CARRIED_KEY.fullmatch(key):
        return bytes.fromhex(found[1])
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def only_new(
    connection: sqlite3.Connection, row: int, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Those whose key the conversation does not have, each key once."""
    seen: set[bytes] = set()
    fresh = []
    for values in rows:
        key = values["key"]
        if key is not None:
            known = connection.execute(
                "SELECT 1 FROM items WHERE conversation = ? AND key = ?", (row, key)
            ).fetchone()
            if known or key in seen:
                continue
            seen.add(key)
        fresh.append(values)
    return fresh


def describe(
    connection: sqlite3.Connection, held: Held, title: str | None, metadata: str | None
) -> bool:
    """Replace title and metadata where they are given, and overwrite the old ones."""
    old = held.conversation
    kept = (old.title, to_json("metadata", old.metadata))
    wanted = (kept[0] if title is None else clean(title), kept[1] if metadata is None else metadata)
    if wanted == kept:
        return False
    note = connection.execute("INSERT INTO notes (title, metadata) VALUES (?, ?)", wanted).lastrowid
    connection.execute("UPDATE conversations SET note = ? WHERE row = ?", (note, held.row))
    connection.execute(ERASE_NOTE, {"note": held.note})
    return True


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
    """The items at these positions that the scope may read."""
    rows = connection.execute(ITEMS_AT, (json.dumps(list(positions)),)).fetchall()
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
