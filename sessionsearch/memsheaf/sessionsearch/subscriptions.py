"""Following a conversation: a snapshot, then each later item exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from memsheaf.stack import InvalidQuery

from .items import Item
from .log_file import LogFile

__all__ = ["Fetch", "Subscription"]

_POLL = 0.05  # seconds between two looks for what other processes appended

Fetch = Callable[[int, int], tuple[list[Item], int]]
"""Takes a cursor and a limit; returns the items behind the cursor, and the next cursor."""


class Subscription:
    """A place in a conversation. Made by `ConversationLog.subscribe`.

    It holds a number and no queue: what follows is read from the log when it is asked for. So a
    slow reader, or one that was forgotten, holds no writer and no memory. An item that is
    deleted before it is read does not arrive. Iteration waits for items and ends when the
    subscription or the log is closed.

    Attributes:
        snapshot: The items that were there at the start.
        last_seq: The last number that the snapshot covers; None where there was nothing.
    """

    def __init__(
        self, file: LogFile, fetch: Fetch, snapshot: tuple[Item, ...], cursor: int
    ) -> None:
        self.snapshot = snapshot
        self.last_seq = None if cursor < 0 else cursor
        self._file, self._fetch, self._cursor = file, fetch, cursor
        self._turn = threading.Lock()
        self._closed = False

    def read(self, timeout: float | None = None, limit: int = 1000) -> list[Item]:
        """The next items, in order.

        Args:
            timeout: Seconds to wait for the first one; None waits until there is one.
            limit: At most this many, at least one.

        Returns:
            The items; empty after the timeout, and when the subscription or the log is closed.

        Raises:
            InvalidQuery: The limit is below one.
        """
        if limit < 1:
            raise InvalidQuery("limit must be at least 1")
        until = None if timeout is None else time.monotonic() + timeout
        while not self._closed and not self._file.closed:
            commits = self._file.commits
            with self._turn:  # two threads share the items of one subscription
                items, self._cursor = self._fetch(self._cursor, limit)
            left = _POLL if until is None else until - time.monotonic()
            if items or left <= 0:
                return items
            self._file.wait(commits, min(_POLL, left))
        return []

    def close(self) -> None:
        """End it; again: nothing. A reader that waits comes back at once or shortly after."""
        self._closed = True

    def __iter__(self) -> Iterator[Item]:
        while found := self.read(limit=1):
            yield from found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
