"""The durable queue: items wait here until a deriver has read them, each exactly once.

Every item that was handed over leaves a row under the keyed hash of its id, so that it is never
taken twice; the row holds the text only as long as the item waits. A batch is held by a lease.
What a batch changes in the profile and the end of its items are one transaction, which checks the
lease: a process that lost it, by a kill or by hanging, changes nothing.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from memsheaf.sessionsearch import Item
from memsheaf.stack import UsageError

from .applying import apply
from .batches import Batch, Handover, Held, Settled, Unfinished
from .codec import decode_item, encode_item
from .desk import END_OF_DUE, START_OF_DUE, Desk, due_key, due_time, load_desk, save_desk
from .errors import QueueFull
from .operations import Operation
from .owners import check_owner
from .profiles import read_profile, write_profile
from .rows import Reader, Row, RowStore, Writer
from .said import count_tokens, said
from .settings import RefreshSettings
from .sifting import sift
from .similar import statement_key

__all__ = ["RefreshQueue"]

_TICK = 0.001  # seconds; times in keys are whole milliseconds
_ABANDONED = "the process that derived this batch ended, or the derivation hung"


class RefreshQueue:
    """The queue of one folder, for any number of threads and processes.

    Args:
        store: Where it is kept.
        settings: Batches, leases, tries and capacity.
        clock: Unix time in seconds.
    """

    def __init__(
        self, store: RowStore, settings: RefreshSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._settings, self._clock = store, settings, clock

    def put(self, user_id: str, items: Iterable[Item]) -> Handover:
        """Take items, all or none, durably.

        Raises:
            QueueFull: They would not fit.
        """
        user, now = self.name_of(user_id), self._clock()
        given = list(items)
        if wrong := [each for each in given if not isinstance(each, Item)]:
            raise UsageError(f"observe takes items of a log, not {type(wrong[0]).__name__}")
        mine: dict[str, tuple[Item, str]] = {}
        ignored = 0
        for item in given:
            if (text := said(item)) is None:
                ignored += 1
            else:
                mine[f"item/{user}/{self._store.digest(item.id)}"] = (item, text)
        if not mine:
            return Handover(ignored=ignored)
        with self._store.writing() as rows:
            fresh = [(key, *pair) for key, pair in mine.items() if rows.get(key) is None]
            if fresh:
                self._count(rows, len(fresh))
                desk = load_desk(rows, user) or Desk(user_id)
                if not desk.waiting:
                    desk.oldest = now
                for key, item, text in fresh:
                    rows.put(key, encode_item(item, text, now), f"queue/{user}")
                    desk.tokens += count_tokens(text)
                desk.waiting += len(fresh)
                save_desk(rows, user, desk, self._settings)
        repeated = len(given) - ignored - len(fresh)
        return Handover(len(fresh), repeated, ignored)

    def claim(self) -> Batch | None:
        """The next batch that is due, under a lease; None where none is."""
        while (wait := self.seconds_to_next()) is not None and wait < _TICK:
            now = self._clock()
            with self._store.writing() as rows:
                due = self._first_due(rows, now)
                if due is None or self._wait(due, now) >= 2 * _TICK:
                    return None
                batch = self._take(rows, due.key.rpartition("/")[2], now)
            if batch is not None:
                return batch
        return None

    def claim_user(self, user_id: str) -> Batch | Held | None:
        """A user's next batch, due or not; None where nothing waits."""
        user, now = self.name_of(user_id), self._clock()
        with self._store.writing() as rows:
            desk = load_desk(rows, user)
            if desk is None or not desk.waiting:
                return None
            if desk.is_held(now, self._settings):
                return Held(desk.until)
            return self._take(rows, user, now)

    def unfinished(self, user_id: str | None = None) -> Unfinished:
        """What waits, of one user or of all."""
        now = self._clock()
        with self._store.reading() as rows:
            if user_id is None:
                users = [row.key.rpartition("/")[2] for row in rows.tagged("desk")]
            else:
                users = [self.name_of(user_id)]
            desks = [desk for user in users if (desk := load_desk(rows, user)) is not None]
        ready = [
            desk
            for desk in desks
            if desk.lease is not None or (desk.due_at(self._settings) or now + 1) < now + _TICK
        ]
        return Unfinished(sum(desk.waiting for desk in desks), len(ready))

    def settle(self, batch: Batch, operations: Sequence[Operation], by: str) -> Settled | None:
        """Apply what a batch brought and end its items, in one transaction.

        Items that were forgotten in the meantime support nothing any more.

        Returns:
            None where the lease was lost; then nothing changed.
        """
        user, now = batch.user, datetime.fromtimestamp(self._clock(), UTC)
        with self._store.writing() as rows:
            desk = load_desk(rows, user)
            if desk is None or desk.lease != batch.lease:
                return None
            held = self._held(rows, batch)
            queued = [decode_item(row.value) for row in held]
            before, tombstones = read_profile(rows, user, batch.user_id)
            allowed, forgotten = sift(operations, queued, tombstones, self.statement)
            after, rejections = apply(before, allowed, [each.item for each in queued], now)
            for row in held:
                rows.put(row.key, "")
            desk.took(rows, user, queued)
            desk.error = desk.error if desk.aside else None
            self._count(rows, -len(held))
            kept = tombstones if desk.waiting or desk.aside else ()
            if after != before or kept != tombstones:
                write_profile(rows, user, before, after, kept, now, by)
            save_desk(rows, user, desk, self._settings)
        return Settled(after, (*forgotten, *rejections))

    def fail(self, batch: Batch, error: str, *, outage: bool = False) -> None:
        """Note that a batch failed: it is tried again later, in smaller parts, then set aside.

        Args:
            batch: What failed.
            error: Why, without text of the user.
            outage: Whether the model could not be reached: that is no fault of the batch, which
                is then never set aside.
        """
        with self._store.writing() as rows:
            desk = load_desk(rows, batch.user)
            if desk is None or desk.lease != batch.lease:
                return
            desk.failed(error, self._clock(), self._settings)
            if desk.attempts >= self._settings.attempts and not outage:
                self._set_aside(rows, batch.user, desk, self._held(rows, batch))
            save_desk(rows, batch.user, desk, self._settings)

    def release(self, batches: Iterable[Batch]) -> None:
        """Give batches back untouched."""
        self._change_leases(batches, 0.0)

    def renew(self, batches: Iterable[Batch]) -> None:
        """A sign of life: keep the leases of batches."""
        self._change_leases(batches, self._clock() + self._settings.lease)

    def hurry(self, user_id: str | None = None) -> None:
        """Make what waits due now, of one user or of all; a wait after a failure stays."""
        with self._store.writing() as rows:
            if user_id is None:
                users = [row.key.rpartition("/")[2] for row in rows.tagged("desk")]
            else:
                users = [self.name_of(user_id)]
            for user in users:
                desk = load_desk(rows, user)
                if desk is not None and desk.waiting and not desk.hurry:
                    desk.hurry, desk.oldest = True, min(desk.oldest, self._clock())
                    save_desk(rows, user, desk, self._settings)

    def retry(self, user_id: str) -> int:
        """Put what was set aside into the queue again; returns how many items."""
        user = self.name_of(user_id)
        with self._store.writing() as rows:
            desk = load_desk(rows, user)
            if desk is None or not desk.aside:
                return 0
            found = rows.tagged(f"aside/{user}")
            for row in found:
                held = decode_item(row.value)
                rows.delete(row.key)  # a new row is the last one in the order
                text = encode_item(held.item, held.item.text, held.taken_at)
                rows.put(row.key, text, f"queue/{user}")
            desk.aside, desk.attempts, desk.hurry = 0, 0, True
            desk.recount(rows, user)
            desk.hurry = True
            save_desk(rows, user, desk, self._settings)
            return len(found)

    def forget(self, rows: Writer, user: str, is_meant: Callable[[Item], bool]) -> int:
        """Delete items that wait or were set aside, inside a transaction.

        Args:
            rows: The transaction.
            user: The user's name in keys.
            is_meant: Which of them.

        Returns:
            How many items will not be derived.
        """
        gone = 0
        for row in (*rows.tagged(f"queue/{user}"), *rows.tagged(f"aside/{user}")):
            if is_meant(decode_item(row.value).item):
                rows.put(row.key, "")
                gone += 1
        desk = load_desk(rows, user)
        if desk is not None:
            desk.aside = len(rows.tagged(f"aside/{user}"))
            desk.recount(rows, user)
            desk.error = None
            save_desk(rows, user, desk, self._settings)
            self._count(rows, -gone)
        return gone

    def seconds_to_next(self) -> float | None:
        """Seconds until a batch is due; None where nothing waits."""
        now = self._clock()
        with self._store.reading() as rows:
            first = self._first_due(rows, now)
        return None if first is None else self._wait(first, now)

    def _first_due(self, rows: Reader, now: float) -> Row | None:
        """Who comes first: whoever a wrong clock put off, else whoever waits longest."""
        late = due_key(now + self._settings.horizon)
        found = rows.between(late, END_OF_DUE, 1) or rows.between(START_OF_DUE, late, 1)
        return found[0] if found else None

    def _wait(self, due: Row, now: float) -> float:
        """Seconds until a batch is due; none where a clock that was wrong named the time."""
        wait = due_time(due.key) - now
        return wait if 0.0 < wait <= self._settings.horizon else 0.0

    def name_of(self, user_id: str) -> str:
        """The user's name in keys: a keyed hash, so that no id is part of another one."""
        return self._store.digest(check_owner(user_id))

    def _take(self, rows: Writer, user: str, now: float) -> Batch | None:
        desk = load_desk(rows, user)
        if desk is None or desk.is_held(now, self._settings):
            return None
        if desk.lease is not None:
            desk.failed(_ABANDONED, now, self._settings)
            if desk.attempts >= self._settings.attempts:
                lost = [row for row in rows.tagged(f"queue/{user}") if row.number <= desk.last]
                self._set_aside(rows, user, desk, lost)
        found = rows.tagged(f"queue/{user}", self._size(desk.attempts))
        room = self._settings.batch_tokens
        items: list[Item] = []
        for row in found:
            item = decode_item(row.value).item
            room -= count_tokens(item.text)
            if items and room < 0:
                break
            items.append(item)
        found = found[: len(items)]
        if not found:
            save_desk(rows, user, desk, self._settings)
            return None
        desk.lease, desk.until = secrets.token_hex(8), now + self._settings.lease
        desk.last = found[-1].number
        save_desk(rows, user, desk, self._settings)
        profile, _ = read_profile(rows, user, desk.user_id)
        keys = tuple(row.key for row in found)
        return Batch(desk.user_id, user, desk.lease, desk.last, keys, tuple(items), profile)

    def _size(self, attempts: int) -> int:
        """Items of a batch: a quarter of them after each failure, to single out what fails."""
        return max(1, self._settings.batch_items >> min(2 * attempts, 60))

    def _held(self, rows: Writer, batch: Batch) -> list[Row]:
        found = rows.tagged(f"queue/{batch.user}", len(batch.keys))
        return [row for row in found if row.number <= batch.last]

    def statement(self, text: str) -> str:
        """The keyed hash of what a line says."""
        return self._store.digest(statement_key(text))

    def _set_aside(self, rows: Writer, user: str, desk: Desk, held: Sequence[Row]) -> None:
        queued = [decode_item(row.value) for row in held]
        for row, each in zip(held, queued, strict=True):
            text = encode_item(each.item, each.item.text, each.taken_at, desk.error)
            rows.put(row.key, text, f"aside/{user}")
        desk.aside += len(held)
        desk.took(rows, user, queued)

    def _change_leases(self, batches: Iterable[Batch], until: float) -> None:
        with self._store.writing() as rows:
            for batch in batches:
                desk = load_desk(rows, batch.user)
                if desk is not None and desk.lease == batch.lease:
                    desk.until = until
                    if not until:
                        desk.lease = None
                    save_desk(rows, batch.user, desk, self._settings)

    def _count(self, rows: Writer, change: int) -> None:
        """Keep the number of items that are held, within the capacity."""
        total = int(rows.get("total") or 0) + change
        if change > 0 and total > self._settings.capacity:
            raise QueueFull(
                f"the queue of the user model holds {total - change} of "
                f"{self._settings.capacity} items; nothing was taken, see status()"
            )
        rows.put("total", str(total))
