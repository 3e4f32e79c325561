"""What the user does to a profile: correct, forget; each is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from memsheaf.sessionsearch import Item
from memsheaf.stack import NotFound

from .codec import Tombstone
from .context import RankedCache
from .correcting import corrected, holds_statement, without_statement
from .desk import load_desk
from .profile import Line, LineKind
from .profiles import delete_profile, read_profile, write_forget_mark, write_profile
from .queue import RefreshQueue
from .rows import RowStore
from .unsourcing import is_gone_test, without_sources

__all__ = ["Editor", "Forgotten"]

BY_USER = "user"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten.

    Attributes:
        lines: Lines that were deleted, ended ones included.
        items: Items that waited, and will not be derived.
        erased: Whether the bytes are gone from the files as well; if not, another process was
            reading, and the next forget, opening or closing erases them.
    """

    lines: int
    items: int
    erased: bool


class Editor:
    """The changes of the profiles in a store that no deriver makes.

    Args:
        store: Where profiles and queue are kept.
        queue: What waits is forgotten with what is known.
        prepared: Texts that are held in memory.
        clock: Unix time in seconds.
    """

    def __init__(
        self,
        store: RowStore,
        queue: RefreshQueue,
        prepared: RankedCache,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._queue, self._prepared, self._clock = store, queue, prepared, clock

    def correct(
        self, user_id: str, line_id: str | None, text: str, kind: LineKind | str | None
    ) -> Line:
        """See `UserModel.correct`."""
        user, now = self._queue.name_of(user_id), self._now()
        with self._store.writing() as rows:
            before, tombstones = read_profile(rows, user, user_id)
            after, line = corrected(before, line_id, text, kind, now)
            write_profile(rows, user, before, after, tombstones, now, BY_USER)
        return line

    def forget_line(self, user_id: str, line_id: str) -> Forgotten:
        """Delete a line, and what says the same."""
        user, now = self._queue.name_of(user_id), self._now()
        with self._store.writing() as rows:
            before, tombstones = read_profile(rows, user, user_id)
            line = before.find(line_id)
            if line is None:
                raise NotFound(f"the profile has no line {line_id!r}")
            items = self._queue.forget(rows, user, partial(holds_statement, line.text))
            after = without_statement(before, line)
            if load_desk(rows, user) is not None:  # a batch may say it again
                tomb = Tombstone(self._queue.statement(line.text), self._clock())
                tombstones = (*tombstones, tomb)
            write_profile(rows, user, before, after, tombstones, now, BY_USER)
            write_forget_mark(rows, user)
            self._store.owe_erasure(rows)
        return self._erased(user, len(before.lines) - len(after.lines), items)

    def forget_user(self, user_id: str) -> Forgotten:
        """Delete a profile, its history and what waits."""
        user = self._queue.name_of(user_id)
        with self._store.writing() as rows:
            lines = len(read_profile(rows, user, user_id)[0].lines)
            items = self._queue.forget(rows, user, lambda item: True)
            delete_profile(rows, user)
            write_forget_mark(rows, user)
            self._store.owe_erasure(rows)
        return self._erased(user, lines, items)

    def forget_sources(
        self, user_id: str, items: Iterable[Item | str], conversations: Iterable[str]
    ) -> Forgotten:
        """See `UserModel.forget_sources`."""
        user, now = self._queue.name_of(user_id), self._now()
        is_gone = is_gone_test(items, conversations)
        with self._store.writing() as rows:
            before, tombstones = read_profile(rows, user, user_id)
            after = without_sources(before, is_gone)
            waiting = self._queue.forget(rows, user, lambda item: is_gone(item.id))
            if after != before:
                write_profile(rows, user, before, after, tombstones, now, BY_USER)
                write_forget_mark(rows, user)
            self._store.owe_erasure(rows)
        return self._erased(user, len(before.lines) - len(after.lines), waiting)

    def _erased(self, user: str, lines: int, items: int) -> Forgotten:
        self._prepared.drop(user)
        return Forgotten(lines, items, self._store.erase())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)
