"""Which files lie under the given paths: each once, without endless loops."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FoundFile", "Unreadable", "walk"]

_OUTPUTS = {"tool-results", "tool-outputs"}  # where agents put what a tool answered: others' words
_LEFT_OUT = {".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"} | _OUTPUTS


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file.

    Args:
        path: Where it was found.
        size: Its bytes.
        stamp: Changes when it changes; a write-ahead log beside it counts.
    """

    path: Path
    size: int
    stamp: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that cannot be read, and why."""

    path: Path
    reason: str


def walk(paths: Iterable[str | Path]) -> Iterator[FoundFile | Unreadable]:
    """Every regular file under the paths, in the order of names.

    A file or folder that is reached twice, by links or by overlapping paths, counts once.
    Folders of version control, of installed packages and of tools' results are left out, unless
    named.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        yield from _under(Path(os.path.expanduser(path)), seen)


def _under(top: Path, seen: set[tuple[int, int]]) -> Iterator[FoundFile | Unreadable]:
    waiting = [top]
    while waiting:
        path = waiting.pop()
        try:
            about = path.stat()
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            if stat.S_ISDIR(about.st_mode):
                names = sorted(os.listdir(path), reverse=True)
                waiting += [path / name for name in names if name not in _LEFT_OUT]
            elif stat.S_ISREG(about.st_mode):
                yield FoundFile(path, about.st_size, _stamp(path, about))
            elif path == top:
                yield Unreadable(path, "neither a file nor a folder")
        except OSError as error:
            if path != top and not os.path.lexists(path):
                continue  # it went between two looks, as drafts of files do
            yield Unreadable(path, error.strerror or type(error).__name__)


def _stamp(path: Path, about: os.stat_result) -> str:
    # The time of the last change tells rights that were given, and a time that was set back.
    stamp = f"{about.st_size}.{about.st_mtime_ns}.{about.st_ctime_ns}.{about.st_ino}"
    try:  # a database in use is written there
        beside = os.stat(f"{path}-wal")
    except OSError:
        return stamp
    return f"{stamp}.{beside.st_size}.{beside.st_mtime_ns}"
