"""What the local store derives from its log: the text index and the catalogue of times."""

from __future__ import annotations

import json
import shutil
import zipfile
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

    def apply(self, rows: list[Row]) -> None:
        """Take in the next rows; doing it twice changes nothing."""
        documents: list[Document] = []
        for row in rows:
            if row.text is None:
                self.index.remove(row.id)
                self.catalog.remove(row.id)
                continue
            try:
                data = json.loads(row.text)
                scope = Scope(**data["scope"])
                fields = {"content": data["content"], "tags": " ".join(data["tags"])}
                created, updated = parse_time(data["created_at"]), parse_time(data["updated_at"])
            except (ValueError, KeyError, TypeError) as error:
                raise StoreCorrupt(
                    f"row {row.sequence} of the log is not a record; restore a backup"
                ) from error
            documents.append(Document(row.id, fields, partition_of(scope)))
            self.catalog.put(row.id, scope, micros(created), micros(updated))
        self.index.add_many(documents)
        if rows:
            self.sequence = rows[-1].sequence

    def save(self, folder: Path, identity: str) -> None:
        """Write a snapshot; the caller holds the log, so that nothing is forgotten meanwhile."""
        target = folder / _FOLDER
        target.mkdir(mode=0o700, exist_ok=True)
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
