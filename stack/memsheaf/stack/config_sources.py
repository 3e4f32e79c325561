"""Configuration files: where they are looked for, and how they are read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ConfigError, ProviderUnavailable

__all__ = [
    "DATA_FOLDER",
    "FILE_NAME",
    "Document",
    "find_workspace",
    "is_mine",
    "read_document",
    "refuse_links",
    "user_config_folder",
    "user_data_folder",
]

FILE_NAME = "memsheaf.toml"
DATA_FOLDER = ".memsheaf"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """One configuration file as it was read; the hash is of the very bytes that were parsed."""

    path: Path
    sha256: str
    data: Mapping[str, Any] = field(repr=False)
    text: str = field(repr=False)
    prefix: tuple[str, ...] = ()

    def where(self, key: tuple[str, ...]) -> str:
        """For messages: file, line where it can be found, and the dotted key."""
        return f"{self.at(key)}: {dotted((*self.prefix, *key))}"

    def at(self, key: tuple[str, ...]) -> str:
        """File, and line where it can be found."""
        line = _line_of(self.text, (*self.prefix, *key))
        return f"{self.path}:{line}" if line else str(self.path)


def dotted(key: tuple[str, ...]) -> str:
    """``("providers", "0", "type")`` as ``providers[0].type``."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(key))


def user_config_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's file and what the user trusts are kept."""
    home = environ.get("MEMSHEAF_HOME")
    if home:
        return Path(home).expanduser()
    import platformdirs  # here and below: most commands need no more than one of these

    return Path(platformdirs.user_config_dir("memsheaf"))


def user_data_folder(environ: Mapping[str, str]) -> Path:
    """Where memories are kept outside of a workspace."""
    home = environ.get("MEMSHEAF_HOME")
    if home:
        return Path(home).expanduser() / "data"
    import platformdirs

    return Path(platformdirs.user_data_dir("memsheaf"))


def find_workspace(start: Path) -> tuple[Path, Document | None] | None:
    """The nearest folder, from `start` upward, with a file or data folder of ours.

    Returns:
        The folder and its file, which is None where only the data folder is there.

    Raises:
        ConfigError: The nearest file cannot be read.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        document = read_document(folder / FILE_NAME) or _from_pyproject(folder)
        if document is not None or (folder / DATA_FOLDER).is_dir():
            return folder, document
    return None


def read_document(path: Path) -> Document | None:
    """Read a TOML file; None where there is none.

    Raises:
        ConfigError: It cannot be read, is not UTF-8, too large, or not TOML; says where.
    """
    raw = _bytes(path)
    if raw is None:
        return None
    import hashlib
    import tomllib

    try:
        text = raw.decode("utf-8-sig")
        data = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply") from error
    return Document(path, hashlib.sha256(raw).hexdigest(), data, text)


def is_mine(path: Path) -> bool:
    """Whether this user, or root, owns a file; somebody else's is not believed."""
    if not hasattr(os, "geteuid"):
        return True
    return path.stat().st_uid in (os.geteuid(), 0)


def refuse_links(folder: Path) -> None:
    """Refuse a folder of a data folder that leads out, itself or anything in it.

    A cloned repository may bring links, through which its files would be somebody else's.

    Raises:
        ProviderUnavailable: Names the link.
    """
    data = folder.parent
    places = [folder]
    for above, folders, files in os.walk(folder):
        places += [Path(above, name) for name in (*folders, *files)]
    for place in places:
        if os.path.islink(place) and not place.resolve().is_relative_to(data.resolve()):
            raise ProviderUnavailable(f"{place} is a link out of {data}; remove the link")


def _from_pyproject(folder: Path) -> Document | None:
    path = folder / "pyproject.toml"
    raw = _bytes(path)
    # Most of these files are not for us; a broken one must not stop anybody.
    if raw is None or b"memsheaf" not in raw:
        return None
    try:
        document = read_document(path)
    except ConfigError:
        if b"[tool.memsheaf" in raw:
            raise
        return None
    tool = document.data.get("tool") if document else None
    if document is None or not isinstance(tool, dict) or "memsheaf" not in tool:
        return None
    table = tool["memsheaf"]
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.memsheaf must be a table")
    return Document(path, document.sha256, table, document.text, ("tool", "memsheaf"))


def _bytes(path: Path) -> bytes | None:
    """A regular file's bytes; None where there is none. A pipe of that name does not block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        if state.st_size > _MAX_BYTES:
            raise ConfigError(f"{path}: larger than {_MAX_BYTES:,} bytes")
        return file.read(_MAX_BYTES + 1)


def _line_of(text: str, key: tuple[str, ...]) -> int | None:
    """The line of a key, or of the table that should hold it; None where it is not plain."""
    best: tuple[int, int] | None = None
    table: tuple[str, ...] = ()
    counts: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*(\[\[?)\s*([\w.\-\"' ]+?)\s*\]\]?\s*(?:#.*)?$", line)
        pair = re.match(r"\s*([\w\-.\"']+)\s*=", line)
        if header:
            table = _steps(header[2], counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
            here = table
        elif pair:
            here = (*table, *_steps(pair[1], {}))
        else:
            continue
        if here == key[: len(here)] and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def _steps(name: str, counts: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """A dotted name as path, entering the latest element of an array of tables."""
    path: tuple[str, ...] = ()
    parts = [part.strip().strip("\"'") for part in name.split(".")]
    for place, part in enumerate(parts):
        path = (*path, part)
        if place < len(parts) - 1 and path in counts:
            path = (*path, str(counts[path]))
    return path
