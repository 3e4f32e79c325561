"""Export and import: records as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .errors import Incomplete, InvalidRecord, MemsheafError, ScopeError
from .records import MemoryRecord
from .results import ImportReport, Receipt
from .scope import Scope

if TYPE_CHECKING:
    from .memory_stack import MemoryStack

__all__ = ["FORMAT", "export_lines", "import_lines"]

FORMAT = "memsheaf-export"
_VERSION = 1
_PAGE = 500


def export_lines(stack: MemoryStack, scope: Scope) -> Iterator[str]:
    """A header line, then one line per record, oldest first.

    Raises:
        Incomplete: A provider could not be listed, so the export would not be whole.
    """
    yield json.dumps({"format": FORMAT, "version": _VERSION})
    after: str | None = None
    while True:
        page = stack.list(scope, limit=_PAGE, after=after, order="oldest")
        if page.partial:
            raise Incomplete("the export would not be whole", outcomes=page.outcomes)
        for record in page:
            yield record.to_json()
        if page.next is None:
            return
        after = page.next


def import_lines(stack: MemoryStack, lines: Iterable[str | bytes], scope: Scope) -> ImportReport:
    """Store what `export_lines` wrote, keeping ids, times and counts.

    A line that is not a record, or whose record lies outside the scope, is refused by its number
    and the rest goes on.
    """
    imported, partial = 0, False
    refused: list[tuple[int, str]] = []
    batch: list[tuple[int, MemoryRecord]] = []

    def flush() -> None:
        nonlocal imported, partial
        for (number, _), receipt in zip(batch, _store(stack, batch, refused), strict=False):
            if receipt.error is None:
                imported += 1
                partial = partial or receipt.partial
            else:
                refused.append((number, receipt.error))
        batch.clear()

    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = _read(line, first=number == 1)
            if record is None:
                continue
            if not scope.matches(record.scope):
                raise ScopeError("its scope is outside the scope of the import")
        except MemsheafError as error:
            refused.append((number, str(error)))
            continue
        if any(record.id == held.id for _, held in batch):
            flush()
        batch.append((number, record))
        if len(batch) >= _PAGE:
            flush()
    flush()
    return ImportReport(imported, tuple(sorted(refused)), partial)


def _store(
    stack: MemoryStack,
    batch: list[tuple[int, MemoryRecord]],
    refused: list[tuple[int, str]],
) -> list[Receipt]:
    """Store a batch; where it is refused as a whole, record by record."""
    try:
        return stack.store_many(record for _, record in batch)
    except MemsheafError:
        receipts = []
        for number, record in list(batch):
            try:
                receipts.extend(stack.store_many([record]))
            except MemsheafError as error:
                refused.append((number, str(error)))
                batch.remove((number, record))
        return receipts


def _read(line: str | bytes, first: bool) -> MemoryRecord | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord("it is not JSON") from error
    if first and isinstance(document, dict) and document.get("format") == FORMAT:
        if document.get("version") != _VERSION:
            raise InvalidRecord(f"this export's version is not {_VERSION}; use a newer Memsheaf")
        return None
    if not isinstance(document, dict):
        raise InvalidRecord("it is not a record")
    return MemoryRecord.make(**document)
