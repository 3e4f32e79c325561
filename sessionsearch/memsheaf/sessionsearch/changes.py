"""The change feed of a log: what an index that knows some sequence has to look at again."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

from .items import Conversation, Item
from .log_rows import Held, held_from, item_from
from .log_schema import CHANGED, CHANGED_ITEMS, FIND_ROW

__all__ = ["Change", "Changes", "read_changes"]

_AT_ONCE = 5000  # rows of the feed
_TEXT = 16_000_000  # characters


class Change(NamedTuple):
    """A conversation as it is now, and those of its items that changed.

    Attributes:
        row: The conversation's number in the log, which is never given twice.
        conversation: Whose it is and what is known of it.
        hidden: Whether it is deleted or erased; nothing of it may be found.
        items: The items that may be found, in order.
        positions: By the number of each of these where the log has it, for `ConversationLog.at`.
        removed: The numbers of those that may not.
        erased: Whether text was erased, so that no copy of it may stay.
    """

    row: int
    conversation: Conversation
    hidden: bool
    items: tuple[Item, ...]
    positions: Mapping[int, int]
    removed: tuple[int, ...]
    erased: bool


class Changes(NamedTuple):
    """A part of the feed; doing it twice changes nothing.

    Attributes:
        changes: What changed, the oldest first.
        sequence: The number of the latest change in it.
        more: Whether there are later ones.
    """

    changes: tuple[Change, ...]
    sequence: int
    more: bool


def read_changes(connection: sqlite3.Connection, after: int, limit: int) -> Changes:
    """The changes behind a number as the log is now: about so many items, not too much text."""
    rows = connection.execute(CHANGED, (after, _AT_ONCE)).fetchall()
    found: dict[int, _Changed] = {}
    taken = items = size = 0
    for number, row, low, high, erased in rows:
        if taken and (items >= limit or size >= _TEXT):
            break
        taken, after = taken + 1, number
        changed = found.get(row)
        if changed is None:
            held = held_from(connection.execute(FIND_ROW, (row,)).fetchone())
            changed = found[row] = _Changed(held)
        changed.erased = changed.erased or bool(erased)
        for deleted, position, *columns in connection.execute(CHANGED_ITEMS, (row, low, high)):
            items += 1
            if deleted or changed.held.deleted:
                changed.removed.add(columns[0])
            else:
                size += len(columns[2]) + len(columns[5])
                changed.items[columns[0]] = columns
                changed.positions[columns[0]] = position
    more = taken < len(rows) or len(rows) == _AT_ONCE
    return Changes(tuple(_change(row, changed) for row, changed in found.items()), after, more)


class _Changed:
    def __init__(self, held: Held) -> None:
        self.held = held
        self.items: dict[int, list[Any]] = {}
        self.positions: dict[int, int] = {}
        self.removed: set[int] = set()
        self.erased = False


def _change(row: int, changed: _Changed) -> Change:
    about = changed.held.conversation
    items = tuple(item_from(about.id, changed.items[seq]) for seq in sorted(changed.items))
    removed = tuple(sorted(changed.removed))
    return Change(
        row, about, changed.held.deleted, items, changed.positions, removed, changed.erased
    )
