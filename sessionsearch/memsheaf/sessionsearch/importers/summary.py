"""What an import did: one report per file, and their sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .source import Problem

__all__ = ["FileReport", "ImportSummary", "Progress", "ProgressCallback"]

FileStatus = Literal["imported", "unchanged", "unknown", "failed"]


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file, or of one member of an archive.

    Attributes:
        path: The file; a member stands behind `!`.
        status: `imported`; `unchanged` since the last import, and not read; `unknown`: no
            importer knows its content; `failed`: it could not be read to its end.
        format: The name of the importer.
        conversations: How many conversations it added to or knew.
        added: Items that are new in the log.
        known: Items that the log had.
        refused: Items of conversations that were forgotten, or that another scope owns.
        skipped: How many records of which kind are no part of a conversation.
        problems: The first ones, with their lines.
        problem_count: How many there are.
        bytes: How many were read.
    """

    path: str
    status: FileStatus
    format: str | None = None
    conversations: int = 0
    added: int = 0
    known: int = 0
    refused: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What became of all files of an import.

    Attributes:
        files: One report per file, in the order of reading.
        broken: The importers that could not be loaded, with the reason.
        seconds: How long it took.
    """

    files: tuple[FileReport, ...] = ()
    broken: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def added(self) -> int:
        """Items that are new in the log."""
        return sum(file.added for file in self.files)

    @property
    def known(self) -> int:
        """Items that the log had."""
        return sum(file.known for file in self.files)

    @property
    def refused(self) -> int:
        """Items of conversations that were forgotten, or that another scope owns."""
        return sum(file.refused for file in self.files)

    @property
    def problem_count(self) -> int:
        """How many problems there were in all files."""
        return sum(file.problem_count for file in self.files)

    @property
    def bytes(self) -> int:
        """How many bytes were read."""
        return sum(file.bytes for file in self.files)

    @property
    def warnings(self) -> bool:
        """Whether something could not be read or loaded."""
        failed = any(file.status == "failed" for file in self.files)
        return bool(failed or self.problem_count or self.broken)

    def count(self, status: FileStatus) -> int:
        """How many files have a status."""
        return sum(file.status == status for file in self.files)

    def formats(self) -> Counter[str]:
        """How many files of each format were read."""
        return Counter(f.format for f in self.files if f.format and f.status != "unchanged")

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object; unchanged and unknown files are only counted."""
        shown = [asdict(f) for f in self.files if f.status in ("imported", "failed")]
        return {
            "files": shown,
            "unchanged": self.count("unchanged"),
            "unknown": self.count("unknown"),
            "added": self.added,
            "known": self.known,
            "refused": self.refused,
            "problems": self.problem_count,
            "bytes": self.bytes,
            "broken": list(self.broken),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an import is.

    Attributes:
        path: The file that is being read.
        bytes: Bytes that are done, over all files.
        total_bytes: Bytes of all files.
        files: Files that are done.
        total_files: All files.
        added: Items that are new in the log.
    """

    path: str
    bytes: int
    total_bytes: int
    files: int
    total_files: int
    added: int


ProgressCallback = Callable[[Progress], None]
