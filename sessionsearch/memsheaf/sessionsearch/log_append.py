"""What a conversation log takes in: items, at the end of the conversation that the first make."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from memsheaf.stack import IdUnavailable, InvalidRecord, Scope
from memsheaf.stack.text import clean

from .items import Item, NewItem, to_json
from .log_rows import ITEM_FIELDS, Held, find, item_from, micros
from .log_schema import ADD_CHANGE, ADD_CONVERSATION, ADD_ITEM, ERASE_NOTE, GROW

__all__ = ["append", "carried", "encoded", "is_carried"]

_CARRIED = "key of another log: "
_CARRIED_KEY = re.compile(rf"{_CARRIED}([0-9a-f]{{32}})")


def append(
    connection: sqlite3.Connection,
    conversation: str,
    scope: Scope,
    rows: Sequence[dict[str, Any]],
    title: str | None,
    metadata: str | None,
    recorded: int,
) -> tuple[Item, ...]:
    """Append items to a conversation of this scope, and replace what is known of it where given.

    Raises:
        IdUnavailable: The id is another owner's, or a deleted conversation's.
    """
    held = find(connection, conversation)
    if held is None:
        created = min((row["created"] for row in rows), default=recorded)
        try:
            connection.execute(ADD_CONVERSATION, (conversation, *scope.key(), created, created))
        except sqlite3.IntegrityError:  # an erased one keeps its id
            raise _unavailable() from None
        held = find(connection, conversation)
    if held is None or held.deleted or held.conversation.scope != scope:
        raise _unavailable()
    last = held.conversation.last_seq
    first = 0 if last is None else last + 1
    fresh = _only_new(connection, held.row, rows)
    for seq, row in enumerate(fresh, first):
        connection.execute(ADD_ITEM, (held.row, seq, *row.values()))
    if _describe(connection, held, title, metadata) or fresh or last is None:
        high = first + len(fresh) - 1
        connection.execute(ADD_CHANGE, (held.row, first, high, False))
    if fresh:
        times = [row["created"] for row in fresh]
        connection.execute(GROW, (first + len(fresh), min(times), max(times), held.row))
    return tuple(
        item_from(conversation, (seq, *(row[name] for name in ITEM_FIELDS)))
        for seq, row in enumerate(fresh, first)
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


def _only_new(
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


def _describe(
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


def _unavailable() -> IdUnavailable:
    return IdUnavailable("this conversation id cannot be used here; choose another one")
