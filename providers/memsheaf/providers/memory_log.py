"""The log of a store that is kept nowhere."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .oplog import Row, Writer

__all__ = ["MemoryLog"]


class MemoryLog:
    """The log of an ephemeral store."""

    def __init__(self) -> None:
        self.identity = uuid.uuid4().hex
        self._rows: dict[str, Row] = {}
        self._order: dict[int, str] = {}
        self._last = 0
        self._lock = threading.RLock()

    def last(self) -> int:
        """The newest number."""
        return self._last

    def tail(self, after: int) -> Iterator[list[Row]]:
        """The rows after a number."""
        with self._lock:
            recent = []
            for sequence in reversed(self._order):
                if sequence <= after:
                    break
                recent.append(self._rows[self._order[sequence]])
        yield recent[::-1]

    def find(self, record_ids: Sequence[str]) -> dict[str, Row]:
        """The newest row of each id that has one."""
        rows = ((record_id, self._rows.get(record_id)) for record_id in record_ids)
        return {record_id: row for record_id, row in rows if row is not None}

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """A transaction."""
        with self._lock:
            pending: dict[str, str | None] = {}
            yield _MemoryWriter(self._rows, pending)
            for record_id, text in pending.items():
                old = self._rows.get(record_id)
                if old is not None:
                    del self._order[old.sequence]
                row = Row(self._last + 1, record_id, text)
                self._rows[record_id], self._order[row.sequence] = row, record_id
                self._last = row.sequence

    def erase(self) -> bool:
        """Nothing to do."""
        return True

    def close(self) -> None:
        """Nothing to do."""

    def quiesce(self) -> None:
        """Take the lock."""
        self._lock.acquire()

    def resume(self) -> None:
        """Release the lock."""
        self._lock.release()


class _MemoryWriter:
    def __init__(self, rows: dict[str, Row], pending: dict[str, str | None]) -> None:
        self._rows, self._pending = rows, pending

    def find(self, record_id: str) -> Row | None:
        if record_id in self._pending:
            return Row(0, record_id, self._pending[record_id])
        return self._rows.get(record_id)

    def push(self, record_id: str, text: str | None, old: Row | None) -> None:
        self._pending.pop(record_id, None)
        self._pending[record_id] = text
