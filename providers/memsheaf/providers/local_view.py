"""What the local store derives from its log: the text index and the catalogue of times."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from memsheaf.index import BM25Index, Document, Partition, SnapshotError
from memsheaf.stack import Scope

from .catalog import Catalog
from .local_records import Records, read_row
from .oplog import Log, Row

__all__ = ["TextSettings", "View", "drop_snapshot", "partition_of"]

_FOLDER = "index"
_KEPT = 16_384  # records at hand, of 1.2 kB and their texts each
_FIELD_WEIGHTS = {"content": 1.0, "tags": 1.0}


class TextSettings(NamedTuple):
    """How text is indexed.

    Attributes:
        analyzer: Name of a text analyzer.
        k1: BM25's saturation.
        b: BM25's length normalisation.
    """

    analyzer: str
    k1: float
    b: float

    def empty(self) -> BM25Index:
        """An empty index; refuses settings that do not work."""
        return BM25Index(self.analyzer, k1=self.k1, b=self.b, field_weights=_FIELD_WEIGHTS)


class View:
    """The index and the catalogue as of one sequence number; `apply` moves it on.

    Attributes:
        index: Finds ids by text.
        catalog: Orders ids by time.
        records: Reads the records of ids.
        sequence: The number of the newest row that was taken in.
        saved: The number as of which the view is saved.

    Args:
        log: Where the rows are from.
        text: How text is indexed.
    """

    def __init__(self, log: Log, text: TextSettings) -> None:
        self.records = Records(log, _KEPT)
        self.index = text.empty()
        self.catalog = Catalog()
        self.sequence = 0
        self.saved = 0

    def apply(self, batches: Iterable[list[Row]]) -> None:
        """Take in the next rows; doing it twice changes nothing. A view that fails is of no use."""
        gone: dict[str, None] = {}
        last = self.sequence

        def documents() -> Iterator[Document]:
            nonlocal last
            for rows in batches:
                for row in rows:
                    if row.text is None:
                        gone[row.id] = None
                        self.catalog.remove(row.id)
                        self.records.drop(row.id)
                        continue
                    gone.pop(row.id, None)
                    document = self._document(row)
                    if document is not None:
                        yield document
                last = rows[-1].sequence if rows else last

        self.index.add_many(documents())
        for record_id in gone:
            self.index.remove(record_id)
        self.sequence = last

    def _document(self, row: Row) -> Document | None:
        """Put a row into the catalogue; what is to be indexed, None where that is known."""
        record = read_row(row)
        fields = {"content": record.content, "tags": " ".join(record.tags)}
        indexed = "\0".join((*fields.values(), repr(record.scope.key())))
        is_new = self.catalog.put(record, row.sequence, indexed)
        self.records.keep(row, record)
        return Document(row.id, fields, partition_of(record.scope)) if is_new else None

    def save(self, folder: Path, identity: str) -> None:
        """Write a snapshot; the caller holds the log, so that nothing is forgotten meanwhile."""
        target = folder / _FOLDER
        target.mkdir(mode=0o700, exist_ok=True)
        self.index.compact()  # of what was forgotten or replaced not even numbers stay
        self.index.save(target / "text", sequence=self.sequence)
        self.catalog.save(target / "catalog.npz", sequence=self.sequence, identity=identity)
        for file in target.rglob("*"):
            file.chmod(0o700 if file.is_dir() else 0o600)
        self.saved = self.sequence

    @classmethod
    def restore(cls, folder: Path, log: Log, last: int, text: TextSettings) -> View | None:
        """Map a snapshot of this store that is not newer than its log, or None."""
        source = folder / _FOLDER
        made = cls(log, text)
        try:
            catalog, sequence, owner = Catalog.load(source / "catalog.npz")
            index = BM25Index.load(source / "text", **text._asdict())
            index.verify()
        except FileNotFoundError:
            return None
        except (SnapshotError, ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
            drop_snapshot(folder)
            return None
        fits = (owner, index.sequence) == (log.identity, sequence) and sequence <= last
        if not fits or index.field_weights != _FIELD_WEIGHTS:
            drop_snapshot(folder)
            return None
        made.index, made.catalog = index, catalog
        made.sequence = made.saved = sequence
        return made


def drop_snapshot(folder: Path) -> None:
    """Delete the snapshot, whose vocabulary may hold words of a forgotten record."""
    target = folder / _FOLDER
    if target.exists():
        with suppress(FileNotFoundError, PermissionError):
            shutil.rmtree(target)


def partition_of(scope: Scope) -> Partition:
    """A scope in the index's order: user, agent, namespace, session."""
    return (scope.user_id, scope.agent_id, scope.namespace, scope.session_id)
