"""Files of arrays that are never changed; each array is checked when it is first read."""

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from .errors import SnapshotError

Array = npt.NDArray[Any]

FORMAT = 3
_MAGIC = b"MEMSHEAF"
_ALIGNED = 64
_HEAD = 24
_PAGE = 512  # words of eight bytes
_TYPES = {
    "blob": "<u1", "offset": "<i8", "hashes": "<u8", "places": "<i4",
    "terms": "<i4", "start": "<i8", "docs": "<i4", "codes": "<u2", "odd_at": "<i8", "odd": "<f8",
    "tokens": "<i4", "token_start": "<i8", "lengths": "<f8", "weights": "<f8", "order": "<i8",
    "first": "<i8", "df": "<i8", "dead": "<i8",
}  # fmt: skip


def write_arrays(path: Path, meta: Any, arrays: Mapping[str, Array]) -> None:
    """Write arrays behind a header; the file is whole and on the disk, or absent."""
    layout: list[tuple[str, int, int, int]] = []
    bodies: list[memoryview | bytes] = []
    end = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, _TYPES[name]).data.cast("B")
        padding = bytes(-len(data) % _ALIGNED)
        layout.append((name, len(array), end, checksum(data, padding)))
        bodies += [data, padding]
        end += len(data) + len(padding)
    described = {"format": FORMAT, "name": path.name, "meta": meta, "arrays": layout, "end": end}
    header = json.dumps(described).encode()
    header += b" " * (-(_HEAD + len(header)) % _ALIGNED)
    head = _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little")
    partial = path.with_name(f"{uuid4().hex}.tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for part in (head, header, *bodies):
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


class ArrayFile(dict[str, Array]):
    """The arrays of a file, mapped: `file[name]`. An array is checked when it is first asked for.

    Args:
        path: the file.

    Attributes:
        meta: what was written beside the arrays.
        lengths: number of elements per array.

    Raises:
        SnapshotError: the file is absent, cut short, foreign or damaged; also when an array is
            asked for that is.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        try:
            with path.open("rb") as file:
                header = self._header(file.read(_HEAD), file)
                begin, size = file.tell(), os.fstat(file.fileno()).st_size
                if size != begin + header["end"]:
                    raise SnapshotError(f"{path} is cut short; rebuild it")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise SnapshotError(f"no saved index at {path}: {error.strerror}") from error
        self.meta = header["meta"]
        self.lengths: dict[str, int] = {name: count for name, count, _, _ in header["arrays"]}
        edges = [begin + at for _, _, at, _ in header["arrays"]] + [size]
        self._places = {
            row[0]: (lo, hi, row[3])
            for row, (lo, hi) in zip(header["arrays"], pairwise(edges), strict=True)
        }

    def _header(self, head: bytes, file: Any) -> dict[str, Any]:
        size = int.from_bytes(head[8:16], "little")
        if head[:8] != _MAGIC or size + _HEAD > os.fstat(file.fileno()).st_size:
            raise SnapshotError(f"{self._path} is not a saved index; rebuild it")
        header = file.read(size)
        if zlib.crc32(header) != int.from_bytes(head[16:24], "little"):
            raise SnapshotError(f"{self._path} is damaged; rebuild it")
        content: dict[str, Any] = json.loads(header)
        if content["format"] != FORMAT:
            raise SnapshotError(
                f"{self._path} has format {content['format']}, not {FORMAT}; rebuild it"
            )
        if content["name"] != self._path.name:
            raise SnapshotError(f"{self._path} was written as {content['name']}; rebuild it")
        return content

    def __missing__(self, name: str) -> Array:
        lo, hi, expected = self._places[name]
        kind = np.dtype(_TYPES[name])
        data = memoryview(self._map)[lo:hi]
        size = self.lengths[name] * kind.itemsize
        if checksum(data[:size], data[size:]) != expected:
            raise SnapshotError(f"{self._path} is damaged; rebuild it")
        page = lo - lo % mmap.PAGESIZE
        self._map.madvise(mmap.MADV_DONTNEED, page, hi - page)  # they need not stay in memory
        array = self[name] = np.frombuffer(data, kind, self.lengths[name])
        return array

    def verify(self) -> None:
        """Check every array now.

        Raises:
            SnapshotError: one is damaged.
        """
        for name in self._places:
            self[name]


def checksum(data: memoryview, padding: memoryview | bytes = b"") -> int:
    """A checksum of an array's bytes: the crc of the sums of its pages, several times faster."""
    whole = len(data) // 8 * 8
    words = np.frombuffer(data[:whole], np.uint64)
    sums = np.add.reduceat(words, np.arange(0, len(words), _PAGE)) if whole else words
    return zlib.crc32(padding, zlib.crc32(data[whole:], zlib.crc32(sums.tobytes())))
