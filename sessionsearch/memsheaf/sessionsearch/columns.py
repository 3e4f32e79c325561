"""Arrays that grow together, and are mapped from a file."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsheaf.index.array_file import checksum

__all__ = ["Columns", "load_columns", "save_columns"]

Array = npt.NDArray[Any]
Types = Mapping[str, tuple[str, int]]

_MAGIC = b"MSHFCOL3"
_ALIGNED = 64
_ROOM = 1024
"""Places that a file has to grow into: adding a few does not copy what is mapped."""


class Columns:
    """Named arrays of one length, with room to grow.

    Args:
        types: Type by name, and what a new place holds: `("<i4", -1)`.
    """

    def __init__(self, types: Types) -> None:
        self.types = dict(types)
        self.size = 0
        self._arrays = {name: np.full(64, fill, kind) for name, (kind, fill) in types.items()}

    def __getitem__(self, name: str) -> Array:
        """A column, without its room to grow."""
        return self._arrays[name][: self.size]

    def ended(self, name: str) -> Array:
        """A column and one place more, so that place -1 holds what a new place does."""
        return self._arrays[name][: self.size + 1]

    def set(self, place: int, values: Mapping[str, Any]) -> None:
        """Write into a place."""
        for name, value in values.items():
            self._arrays[name][place] = value

    def grow(self, size: int) -> None:
        """Make it at least this long."""
        room = len(next(iter(self._arrays.values())))
        if size >= room:
            for name, (kind, fill) in self.types.items():
                more = np.full(max(size + 1, 2 * room), fill, kind)
                more[: self.size] = self._arrays[name][: self.size]
                self._arrays[name] = more
        self.size = max(size, self.size)

    def use(self, size: int, arrays: Mapping[str, Array]) -> None:
        """Take arrays that are longer than this instead of its own."""
        self.size, self._arrays = size, dict(arrays)


def save_columns(path: Path, columns: Mapping[str, Columns], about: Mapping[str, Any]) -> None:
    """Write columns and a JSON object into one file, which is whole and on the disk, or absent."""
    layout: dict[str, Any] = {}
    bodies: list[bytes] = []
    at = 0
    for name, each in columns.items():
        places = {}
        for column, (kind, fill) in each.types.items():
            body = np.concatenate([each[column], np.full(_ROOM, fill, kind)]).tobytes()
            bodies.append(body + bytes(-len(body) % _ALIGNED))
            places[column] = at
            at += len(bodies[-1])
        layout[name] = [each.size, each.size + _ROOM, places]
    data = b"".join(bodies)
    check = checksum(memoryview(data))
    content = {"about": about, "columns": layout, "size": at, "check": check}
    header = json.dumps(content).encode()
    head = _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little")
    partial = path.with_name(f"{path.name}.tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(head + header + bytes(-(len(head) + len(header)) % _ALIGNED))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load_columns(path: Path, columns: Mapping[str, Columns]) -> dict[str, Any]:
    """Map what `save_columns` wrote; writing into the arrays does not reach the file.

    Returns:
        The JSON object.

    Raises:
        ValueError: It is not that.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(24)
        size = int.from_bytes(head[8:16], "little")
        if head[:8] != _MAGIC or size > os.fstat(file.fileno()).st_size:
            raise ValueError("not a file of columns")
        header = file.read(size)
    if zlib.crc32(header) != int.from_bytes(head[16:24], "little"):
        raise ValueError("the head of a file of columns is damaged")
    content = json.loads(header)
    begin = -(-(24 + size) // _ALIGNED) * _ALIGNED
    if path.stat().st_size != begin + content["size"]:
        raise ValueError("a file of columns is cut short")
    data = np.asarray(np.memmap(path, np.uint8, "c"))
    if checksum(data[begin:].data) != content["check"]:
        raise ValueError("a file of columns is damaged")
    for name, each in columns.items():
        size, length, places = content["columns"][name]
        arrays = {}
        for column, (kind, _) in each.types.items():
            start = begin + places[column]
            arrays[column] = data[start : start + length * np.dtype(kind).itemsize].view(kind)
        each.use(size, arrays)
    about: dict[str, Any] = content["about"]
    return about
