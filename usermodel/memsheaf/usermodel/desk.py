"""What the queue knows of a user: how much waits, when it is due, who holds it, what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .codec import QueuedRow, decode_fields, decode_item, to_json
from .rows import Reader, Writer
from .said import count_tokens
from .settings import RefreshSettings

__all__ = ["END_OF_DUE", "START_OF_DUE", "Desk", "due_key", "due_time", "load_desk", "save_desk"]

START_OF_DUE, END_OF_DUE = "due/", "due0"


@dataclass(slots=True)
class Desk:
    """A user's place in the queue; times are Unix times in seconds.

    Attributes:
        user_id: Whose it is.
        waiting: How many items wait or are being derived.
        tokens: How long they are together.
        oldest: When the first of them was handed over.
        hurry: Whether they are due at once, since their session ended.
        lease: Who derives a batch, or None.
        until: When that lease ends, unless it is renewed.
        last: The number of the batch's last row.
        attempts: How often the batch at the head failed.
        retry_at: When it is tried again.
        error: Why it failed last.
        error_at: When.
        aside: How many items were set aside.
        due: The key under which the user is listed by time.
    """

    user_id: str
    waiting: int = 0
    tokens: int = 0
    oldest: float = 0.0
    hurry: bool = False
    lease: str | None = None
    until: float = 0.0
    last: int = 0
    attempts: int = 0
    retry_at: float = 0.0
    error: str | None = None
    error_at: float = 0.0
    aside: int = 0
    due: str | None = None

    def is_held(self, now: float, settings: RefreshSettings) -> bool:
        """Whether somebody derives a batch."""
        return self.lease is not None and now < self.until <= now + settings.horizon

    def due_at(self, settings: RefreshSettings) -> float | None:
        """When the next batch is to be taken; None where nothing waits."""
        if not self.waiting:
            return None
        if self.lease is not None:
            return self.until  # whoever looks then finds it abandoned
        if self.attempts:
            return self.retry_at
        whole = self.tokens >= settings.batch_tokens or self.waiting >= settings.batch_items
        return self.oldest if self.hurry or whole else self.oldest + settings.max_age

    def failed(self, error: str, now: float, settings: RefreshSettings) -> None:
        """Note a failure, and when to try again."""
        self.lease = None
        self.error, self.error_at = error, now
        wait = settings.backoff * 2.0 ** min(self.attempts, 60)
        self.attempts += 1
        self.retry_at = now + min(wait, settings.max_backoff)

    def took(self, rows: Reader, user: str, gone: Sequence[QueuedRow]) -> None:
        """Note that items no longer wait, and that nobody holds a batch."""
        self.lease = None
        self.attempts = 0
        self.waiting -= len(gone)
        self.tokens -= sum(count_tokens(each.item.text) for each in gone)
        first = rows.tagged(f"queue/{user}", 1)
        self.oldest = decode_item(first[0].value).taken_at if first else 0.0
        self.hurry = self.hurry and bool(first)

    def recount(self, rows: Reader, user: str) -> None:
        """Count what waits anew."""
        held = [decode_item(row.value) for row in rows.tagged(f"queue/{user}")]
        self.waiting = len(held)
        self.tokens = sum(count_tokens(each.item.text) for each in held)
        self.oldest = held[0].taken_at if held else 0.0
        self.hurry = self.hurry and bool(held)


def load_desk(rows: Reader, user: str) -> Desk | None:
    """A user's desk, or None where nothing waits and nothing was set aside."""
    text = rows.get(f"desk/{user}")
    return None if text is None else decode_fields(Desk, text)


def save_desk(rows: Writer, user: str, desk: Desk, settings: RefreshSettings) -> None:
    """Write a desk and list it under the time at which it is due; an empty one is deleted."""
    moment = desk.due_at(settings)
    due = None if moment is None else due_key(moment, user)
    if due != desk.due:
        if desk.due is not None:
            rows.delete(desk.due)
        if due is not None:
            rows.put(due, "")
        desk.due = due
    if desk.waiting or desk.aside:
        rows.put(f"desk/{user}", to_json(asdict(desk)), "desk")
    else:
        rows.delete(f"desk/{user}")


def due_key(moment: float, user: str = "") -> str:
    """The key that lists a user by time, in milliseconds."""
    return f"{START_OF_DUE}{int(moment * 1000):015d}/{user}"


def due_time(key: str) -> float:
    """The time in a key of `due_key`."""
    return int(key.split("/")[1]) / 1000
