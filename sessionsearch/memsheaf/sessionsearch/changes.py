"""The change feed of a log: what an index that knows some sequence has to look at again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .items import Conversation, Item
from .log_rows import held_from, item_from
from .log_schema import CHANGED, CHANGED_ITEMS, FIND_ROW

__all__ = ["Change", "Changes", "read_changes"]

_AT_ONCE = 5000  # rows of the feed


@dataclass(frozen=True, slots=True)
class Change:
    """A conversation as it is now, and those of its items that changed.

    Attributes:
        row: The conversation's number in the log, which is never given twice.
        conversation: Whose it is and what is known of it.
        hidden: Whether it is deleted or erased; nothing of it may be found.
        items: The items that may be found, in order.
        removed: The numbers of those that may not.
        erased: Whether text was erased, so that no copy of it may stay.
    """

    row: int
    conversation: Conversation
    hidden: bool
    items: tuple[Item, ...]
    removed: tuple[int, ...]
    erased: bool


@dataclass(frozen=True, slots=True)
class Changes:
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
    """The changes behind a number, as the log is now."""
    rows = connection.execute(CHANGED, (after, _AT_ONCE)).fetchall()
    spans: dict[int, list[list[int]]] = {}
    erasures: set[int] = set()
    size, taken = 0, 0
    for number, row, low, high, erased in rows:
        if taken and size + high - low + 1 > limit:
            break
        size += max(0, high - low + 1)
        taken += 1
        after = number
        known = spans.setdefault(row, [])
        if erased:
            erasures.add(row)
        if known and low <= known[-1][1] + 1 and high >= known[-1][0] - 1:
            known[-1] = [min(low, known[-1][0]), max(high, known[-1][1])]
        else:
            known.append([low, high])
    changes = tuple(_change(connection, row, spans[row], row in erasures) for row in spans)
    return Changes(changes, after, taken < len(rows) or len(rows) == _AT_ONCE)


def _change(
    connection: sqlite3.Connection, row: int, spans: list[list[int]], erased: bool
) -> Change:
    held = held_from(connection.execute(FIND_ROW, (row,)).fetchone())
    items: dict[int, Item] = {}
    removed: set[int] = set()
    for low, high in spans:
        for deleted, *columns in connection.execute(CHANGED_ITEMS, (row, low, high)):
            if deleted or held.deleted:
                removed.add(columns[0])
            else:
                items[columns[0]] = item_from(held.conversation.id, columns)
    found = tuple(items[seq] for seq in sorted(items))
    return Change(row, held.conversation, held.deleted, found, tuple(sorted(removed)), erased)
