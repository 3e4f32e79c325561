"""What the local store derives from its log: the text index and the catalogue of times."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from memsheaf.index import BM25Index, Document, Partition, SnapshotError
from memsheaf.stack import Scope, StoreCorrupt, parse_time

from .catalog import Catalog, micros
from .oplog import Row

__all__ = ["View", "drop_snapshot", "partition_of"]

_FOLDER = "index"
_FIELD_WEIGHTS = {"content": 1.0, "tags": 1.0}


class View:
    """The index and the catalogue as of one sequence number; `apply` moves it on."""

    def __init__(self, analyzer: str, k1: float, b: float) -> None:
        self.index = BM25Index(analyzer, k1=k1, b=b, field_weights=_FIELD_WEIGHTS)
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
                        continue
                    gone.pop(row.id, None)
                    document = self._document(row, row.text)
                    if document is not None:
                        yield document
                last = rows[-1].sequence if rows else last

        self.index.add_many(documents())
        for record_id in gone:
            self.index.remove(record_id)
        self.sequence = last

    def _document(self, row: Row, text: str) -> Document | None:
        """Put a row into the catalogue; what is to be indexed, None where that is known."""
        try:
            data = json.loads(text)
            scope = Scope(**data["scope"])
            fields = {"content": data["content"], "tags": " ".join(data["tags"])}
            created, updated = parse_time(data["created_at"]), parse_time(data["updated_at"])
        except (ValueError, KeyError, TypeError) as error:
            raise StoreCorrupt(
                f"row {row.sequence} of the log is not a record; restore a backup"
            ) from error
        indexed = "\0".join((*fields.values(), repr(scope.key())))
        if self.catalog.put(row.id, scope, micros(created), micros(updated), indexed):
            return Document(row.id, fields, partition_of(scope))
        return None

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
    def restore(
        cls, folder: Path, identity: str, last: int, analyzer: str, k1: float, b: float
    ) -> View | None:
        """Map a snapshot of this store that is not newer than its log, or None."""
        source = folder / _FOLDER
        made = cls(analyzer, k1, b)
        try:
            catalog, sequence, owner = Catalog.load(source / "catalog.npz")
            index = BM25Index.load(source / "text", analyzer=analyzer, k1=k1, b=b)
            index.verify()
        except FileNotFoundError:
            return None
        except (SnapshotError, ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
            drop_snapshot(folder)
            return None
        fits = (owner, index.sequence) == (identity, sequence) and sequence <= last
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
