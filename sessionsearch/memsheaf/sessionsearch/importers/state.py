"""What was imported already: per file its stamp and the place where reading ended."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from memsheaf.stack import Scope, StoreCorrupt
from memsheaf.stack.disk import DBNAME, SETTINGS, SharedCache, our_errors
from memsheaf.stack.disk_files import make_cache

from .source import HEAD, Position

__all__ = ["FileState", "ImportState", "fingerprint"]

_TAIL = 4096


@dataclass(frozen=True, slots=True)
class FileState:
    """The last import of a file.

    Args:
        stamp: What the file looked like; empty while an import is under way.
        reading: The format and the options.
        position: Where reading ended.
        fingerprint: A hash of what lies before that place.
        witness: A conversation that the log holds because of it; None where it gave nothing.
    """

    stamp: str
    reading: str
    position: Position = field(default_factory=Position)
    fingerprint: str = ""
    witness: str | None = None


class ImportState:
    """The states of all files, for one scope, kept on disk beside the log.

    It is written after the items, never before. It holds hashed paths, positions and ids of
    conversations, and no text.

    Args:
        folder: Where; made with mode 0700.
        scope: Whose imports.
        timeout: Seconds to wait for another process.
    """

    def __init__(self, folder: Path, scope: Scope, timeout: float = 10.0) -> None:
        self._scope = json.dumps(scope.key())
        try:
            self._rows = _opened(folder, timeout)
        except StoreCorrupt:  # without it an import only takes longer
            with our_errors("removing the damaged state of imports"):
                shutil.rmtree(folder)
            self._rows = _opened(folder, timeout)

    def get(self, path: Path) -> FileState | None:
        """The state of a file, or None before its first import, and where it cannot be read."""
        try:
            with our_errors("reading the state of imports"):
                text = self._rows.get(self._key(path))
            row = json.loads(text or "{}")
            return FileState(**{**row, "position": Position(**row["position"])})
        except (StoreCorrupt, ValueError, TypeError, KeyError):
            return None

    def set(self, path: Path, state: FileState) -> None:
        """Keep the state of a file."""
        text = json.dumps(asdict(state))
        with our_errors("keeping the state of imports"):
            self._rows.set(self._key(path), text, retry=True)

    def close(self) -> None:
        """Close the file."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _key(self, path: Path) -> str:
        name = f"{self._scope}{os.path.realpath(path)}"
        return hashlib.blake2b(os.fsencode(name), digest_size=20).hexdigest()


def _opened(folder: Path, timeout: float) -> SharedCache:
    with our_errors("opening the state of imports"):
        make_cache(folder, timeout)
        if (folder / DBNAME).stat().st_mode & 0o077:  # made by an earlier version
            (folder / DBNAME).chmod(0o600)
        rows = SharedCache(str(folder), timeout, **SETTINGS)
        try:
            rows.get("")
        except BaseException:
            rows.close()
            raise
        return rows


def fingerprint(path: Path, offset: int) -> str:
    """A hash of the head of a file and of what lies right before an offset."""
    hashed = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        hashed.update(file.read(min(HEAD, offset)))
        file.seek(max(0, offset - _TAIL))
        hashed.update(file.read(min(_TAIL, offset)))
    return hashed.hexdigest()
