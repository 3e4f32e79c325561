"""What waits, what is being derived, what was set aside, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from .codec import decode_item
from .desk import Desk, load_desk
from .rows import Reader, RowStore

__all__ = ["QueueStatus", "QueuedItem", "read_status"]


@dataclass(frozen=True, slots=True)
class QueuedItem:
    """An item that no profile shows yet.

    Attributes:
        item_id: Its id.
        user_id: Who said it.
        state: It waits, is being derived, or was set aside after its last attempt.
        since: When it was handed over; aware UTC.
        due: When it is derived or tried again; None while it is derived or set aside.
        attempts: How often deriving it failed in a row.
        error: Why, the last time.
    """

    item_id: str
    user_id: str
    state: Literal["waiting", "deriving", "set aside"]
    since: datetime
    due: datetime | None = None
    attempts: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The state of the queue.

    Attributes:
        waiting: Items that wait or are being derived.
        set_aside: Items that could not be derived; `retry` puts them back.
        capacity: The most items that the queue holds.
        items: The first of them, user by user in order.
        last_error: The newest error of the users in `items`, or of the background work itself.
    """

    waiting: int
    set_aside: int
    capacity: int
    items: tuple[QueuedItem, ...]
    last_error: str | None = None


def read_status(
    store: RowStore, user: str | None, limit: int, capacity: int, trouble: str | None
) -> QueueStatus:
    """Read the state of one user's items, or of everybody's."""
    with store.reading() as rows:
        if user is None:
            users = [row.key.rpartition("/")[2] for row in rows.tagged("desk")]
        else:
            users = [user]
        desks = [(each, desk) for each in users if (desk := load_desk(rows, each)) is not None]
        items: list[QueuedItem] = []
        for each, desk in desks:
            if len(items) < limit:
                items.extend(_items(rows, each, desk, limit - len(items)))
    failed = [desk for _, desk in desks if desk.error is not None]
    newest = max(failed, key=lambda desk: desk.error_at, default=None)
    return QueueStatus(
        sum(desk.waiting for _, desk in desks),
        sum(desk.aside for _, desk in desks),
        capacity,
        tuple(items),
        trouble or (newest.error if newest else None),
    )


def _items(rows: Reader, user: str, desk: Desk, limit: int) -> Iterator[QueuedItem]:
    due = None
    if desk.due is not None:
        due = datetime.fromtimestamp(int(desk.due.split("/")[1]) / 1000, UTC)
    for row in rows.tagged(f"aside/{user}", limit):
        held = decode_item(row.value)
        since = datetime.fromtimestamp(held.taken_at, UTC)
        yield QueuedItem(held.item.id, desk.user_id, "set aside", since, error=held.error)
    for row in rows.tagged(f"queue/{user}", limit):
        held = decode_item(row.value)
        since = datetime.fromtimestamp(held.taken_at, UTC)
        tried = (desk.attempts, desk.error if desk.attempts else None)
        if desk.lease is not None and row.number <= desk.last:
            yield QueuedItem(held.item.id, desk.user_id, "deriving", since, None, *tried)
        else:
            yield QueuedItem(held.item.id, desk.user_id, "waiting", since, due, *tried)
