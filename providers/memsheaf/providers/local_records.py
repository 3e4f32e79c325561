"""The records of a local store, out of its log or, where they were read before, out of memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import islice

from memsheaf.stack import Filter, InvalidRecord, MemoryRecord, Scope, StoreCorrupt
from memsheaf.stack.times import now

from .catalog import Catalog
from .oplog import Log, Row
from .stored import read_stored

__all__ = ["Records", "read_row"]


class Records:
    """Reads records, and keeps those that were used last.

    Each is kept with the number of its row. What a row says never changes, so a record is the
    right one for as long as its row is the newest of its id.

    Args:
        log: Where they are.
        most: How many are kept.
    """

    def __init__(self, log: Log, most: int) -> None:
        self._log, self._most = log, most
        self._held: dict[str, tuple[int, MemoryRecord]] = {}
        self._lock = threading.Lock()

    def newest(self, record_ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Records as the log has them now; forgotten and unknown ones are missing."""
        rows = self._log.find(record_ids)
        return {i: self.read(row) for i, row in rows.items() if row.text is not None}

    def listed(self, catalog: Catalog, record_ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Records at least as new as a catalogue, which saves asking the log for those at hand."""
        rows = catalog.rows(record_ids)
        known = {record_id: self._known(record_id, row) for record_id, row in rows.items()}
        found = {record_id: record for record_id, record in known.items() if record is not None}
        if len(found) < len(known):
            found |= self.newest([record_id for record_id in known if record_id not in found])
        return found

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
                if (
                    record is not None
                    and scope.matches(record.scope)
                    and not record.is_expired(moment)
                    and (filters is None or filters.matches(record))
                ):
                    yield record

    def read(self, row: Row) -> MemoryRecord:
        """See `read_row`; only rows that were committed may be kept."""
        known = self._known(row.id, row.sequence)
        if known is not None:
            return known
        record = read_row(row)
        with self._lock:
            self._held[row.id] = row.sequence, record
            if len(self._held) > self._most:
                del self._held[next(iter(self._held))]
        return record.copy_out() if record.metadata else record

    def drop(self, record_id: str) -> None:
        """Keep nothing of a record."""
        with self._lock:
            self._held.pop(record_id, None)

    def _known(self, record_id: str, sequence: int) -> MemoryRecord | None:
        with self._lock:
            held = self._held.pop(record_id, None)
            if held is None:
                return None
            self._held[record_id] = held  # the latest last
        if held[0] != sequence:
            return None
        return held[1].copy_out() if held[1].metadata else held[1]


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
