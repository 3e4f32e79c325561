"""The records of a local store, out of its log or, where they were read before, out of memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import islice

from memsheaf.stack import Filter, InvalidRecord, MemoryRecord, Scope, StoreCorrupt
from memsheaf.stack.filters import refusal
from memsheaf.stack.times import now

from .catalog import Catalog
from .oplog import Log, Row
from .stored import read_stored

__all__ = ["Records", "read_row"]

_LONGEST = 4_096  # characters of a row that is kept, so that few long ones do not fill the memory


class Records:
    """Reads records, and keeps those that were used last.

    Whoever moves the catalogue on says so here afterwards, with `keep` or `drop`. So what is kept
    is never older than the catalogue, and needs no look into the log.

    Args:
        log: Where they are.
        most: How many are kept.
    """

    def __init__(self, log: Log, most: int) -> None:
        self._log, self._most = log, most
        self._held: dict[str, tuple[int, MemoryRecord]] = {}
        self._lock = threading.Lock()

    def listed(self, catalog: Catalog, record_ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Records at least as new as a catalogue; forgotten and unknown ones are missing."""
        found = {}
        with self._lock:
            for record_id in record_ids:
                held = self._held.pop(record_id, None)
                if held is not None:
                    self._held[record_id] = held  # the latest last
                    found[record_id] = held[1]
        if len(found) < len(record_ids):
            missing = [record_id for record_id in record_ids if record_id not in found]
            rows = [row for row in self._log.find(missing).values() if row.text is not None]
            read = [(row, read_row(row)) for row in rows]
            found |= {row.id: record for row, record in read}
            with self._lock:
                newest = catalog.rows([row.id for row in rows])
                for row, record in read:
                    if newest.get(row.id) == row.sequence:  # else it is about to be replaced
                        self._put(row, record)
        return {record_id: record.copy_out() for record_id, record in found.items()}

    def usable(
        self,
        catalog: Catalog,
        record_ids: Iterator[str],
        limit: int,
        scope: Scope,
        filters: Filter | None,
    ) -> Iterator[MemoryRecord]:
        """Records in the order of their ids: those of a scope, unexpired, that the filter lets by.

        Args:
            catalog: Where the ids are from.
            record_ids: The ids.
            limit: How many are wanted about; as many are read at once.
            scope: Who asks.
            filters: Conditions, or None.
        """
        moment = now()
        while batch := list(islice(record_ids, max(limit, 16))):
            records = self.listed(catalog, batch)
            for record_id in batch:
                record = records.get(record_id)
                if record is not None and refusal(record, scope, filters, moment) is None:
                    yield record

    def keep(self, row: Row, record: MemoryRecord) -> None:
        """Take a row's record, which the catalogue has just been given."""
        with self._lock:
            self._put(row, record)

    def drop(self, record_id: str) -> None:
        """Keep nothing of a record, which the catalogue has just lost."""
        with self._lock:
            self._held.pop(record_id, None)

    def _put(self, row: Row, record: MemoryRecord) -> None:
        self._held.pop(row.id, None)
        if len(row.text or "") <= _LONGEST:
            self._held[row.id] = row.sequence, record
        if len(self._held) > self._most:
            del self._held[next(iter(self._held))]


def read_row(row: Row) -> MemoryRecord:
    """The record of a row.

    Raises:
        StoreCorrupt: The row holds no record, or another one.
    """
    try:
        record = read_stored(row.text or "")
        if record.id == row.id:
            return record
        raise InvalidRecord("another id than that of its row")
    except InvalidRecord as error:
        raise StoreCorrupt(
            f"row {row.sequence} of the log is not a record; restore a backup"
        ) from error
