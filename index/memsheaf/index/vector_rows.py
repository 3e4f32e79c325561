"""Blocks of vectors: what one search sees, and how it is kept in a file."""

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .errors import SnapshotError

BLOCK_ROWS: Final = 65_536
"""Most rows of a block: its product is one matrix call, and no write moves more rows."""

_FILE = "vectors.bin"
_MAGIC = b"MEMSHEAF-VECTORS"
_VERSION = 1
_ALIGNMENT = 64
_WIDENED = 512
_OUT = -2.0  # below any cosine
_ROUNDING = 1e-5  # more than float32 errs in a product of two unit vectors

Matrix = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows with their ids; a write makes a new block that shares the arrays.

    Attributes:
        number: name of the block within its index.
        vectors: the stored vectors; rows from `count` on are free.
        scale: 1 / length of each stored vector, 0 for a zero vector.
        codes: the codes of each row's partition names, one column a field.
        ids: the id of each row; may be longer than `count`.
        alive: False where the row was removed or replaced; never changed in place.
        count: rows in use.
    """

    number: int
    vectors: Matrix
    scale: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]
    ids: list[str]
    alive: npt.NDArray[np.bool_]
    count: int

    @classmethod
    def empty(cls, number: int, dimensions: int, dtype: Any, fields: int) -> "Block":
        """Return a block without rows."""
        return cls(
            number,
            np.empty((0, dimensions), dtype),
            np.empty(0, np.float32),
            np.empty((0, fields), np.int32),
            [],
            np.zeros(0, np.bool_),
            0,
        )

    def grown(self, rows: int) -> "Block":
        """Return the block with room for `rows` more, or as many as a block may have."""
        size = min(BLOCK_ROWS, max(self.count + rows, 2 * self.count))
        larger = [np.empty((size, *c.shape[1:]), c.dtype) for c in self._columns]
        for column, old in zip(larger, self._columns, strict=True):
            column[: self.count] = old[: self.count]
        vectors, scale, codes = larger
        return replace(self, vectors=vectors, scale=scale, codes=codes)

    @property
    def _columns(self) -> tuple[Matrix, ...]:
        return self.vectors, self.scale, self.codes

    @property
    def room(self) -> int:
        """Rows that can still be appended."""
        return len(self.vectors) - self.count

    @property
    def live(self) -> int:
        """Rows that a search can find."""
        return int(np.count_nonzero(self.alive))

    def append(
        self, ids: Sequence[str], vectors: Matrix, scale: npt.NDArray[np.float32], codes: Matrix
    ) -> "Block":
        """Return the block with more rows; blocks made earlier do not see them."""
        end = self.count + len(ids)
        self.vectors[self.count : end] = vectors
        self.scale[self.count : end] = scale
        self.codes[self.count : end] = codes
        self.ids.extend(ids)
        alive = np.append(self.alive, np.ones(len(ids), np.bool_))
        return replace(self, alive=alive, count=end)

    def without(self, rows: list[int]) -> "Block":
        """Return the block with `rows` removed."""
        alive = self.alive.copy()
        alive[rows] = False
        return replace(self, alive=alive)

    def matching(self, wanted: Sequence[int | None]) -> npt.NDArray[np.bool_]:
        """Return the live rows whose partition has the wanted codes, None being any."""
        mask = self.alive
        for field, code in enumerate(wanted):
            if code is not None:
                mask = mask & (self.codes[: self.count, field] == code)
        return mask

    def cosines(
        self, query: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float32]:
        """Return each row's cosine with the unit vector `query` in float32, `_OUT` off the mask."""
        chosen = np.count_nonzero(mask)
        if 4 * chosen < self.count:
            scores = np.full(self.count, _OUT, np.float32)
            rows = np.flatnonzero(mask)
            part = self.vectors[rows].astype(np.float32, copy=False)
            scores[rows] = (part @ query) * self.scale[rows]
            return scores
        if self.vectors.dtype == np.float32:
            scores = self.vectors[: self.count] @ query
        else:
            scores = np.empty(self.count, np.float32)
            wide = np.empty((_WIDENED, len(query)), np.float32)  # small enough for the cache
            for start in range(0, self.count, _WIDENED):
                narrow = self.vectors[start : min(start + _WIDENED, self.count)]
                wide[: len(narrow)] = narrow
                np.matmul(wide[: len(narrow)], query, out=scores[start : start + len(narrow)])
        scores *= self.scale[: self.count]
        if chosen < self.count:
            scores[~mask] = _OUT
        return scores

    def exact(self, rows: npt.NDArray[np.intp], query: npt.NDArray[np.float64]) -> list[float]:
        """Return the cosines of `rows` in float64: equal vectors get equal scores, wherever."""
        part = self.vectors[rows].astype(np.float64)
        lengths = np.sqrt((part * part).sum(axis=1))
        scores = (part * query).sum(axis=1)
        cosines = np.divide(scores, lengths, out=scores, where=lengths > 0)
        exact: list[float] = cosines.clip(-1.0, 1.0).tolist()  # rounding may step over 1
        return exact


def best(
    blocks: Sequence[Block],
    masks: Sequence[npt.NDArray[np.bool_]],
    query: npt.NDArray[np.float64],
    limit: int,
) -> list[tuple[float, str]]:
    """Return the exact best rows as (cosine, id), best first, ties by id.

    One float32 product finds all rows that can be among the best; those are scored in float64.
    """
    single = query.astype(np.float32)
    floor = -1.5
    top = np.empty(0, np.float32)
    pool: list[tuple[Block, npt.NDArray[np.intp], npt.NDArray[np.float32]]] = []
    for block, mask in zip(blocks, masks, strict=True):
        cosines = block.cosines(single, mask)
        rows = np.flatnonzero(cosines >= floor - _ROUNDING)
        scores = cosines[rows]
        pool.append((block, rows, scores))
        top = np.append(top, scores)
        if limit <= len(top):
            top = np.partition(top, -limit)[-limit:]
            floor = float(top[0])
    found: list[tuple[float, str]] = []
    for block, rows, scores in pool:
        rows = rows[scores >= floor - _ROUNDING]
        for start in range(0, len(rows), 4096):
            some = rows[start : start + 4096]
            found.extend(
                zip(block.exact(some, query), (block.ids[row] for row in some), strict=True)
            )
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))[:limit]


def write(path: str | os.PathLike[str], blocks: Sequence[Block], header: dict[str, Any]) -> None:
    """Write the live rows of `blocks` and `header` into the folder `path`, all or nothing."""
    rows = [np.flatnonzero(block.alive) for block in blocks]
    ids = [block.ids[row] for block, some in zip(blocks, rows, strict=True) for row in some]
    folder = Path(path)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = folder / f"{_FILE}.{os.getpid()}.tmp"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        meta = json.dumps({**header, "version": _VERSION, "ids": ids}).encode()
        lead = _MAGIC + len(meta).to_bytes(8, "little") + meta
        data = lead + bytes(-len(lead) % _ALIGNMENT)
        checksum = zlib.crc32(data)
        file.write(data)
        for column in ("vectors", "scale", "codes"):
            size = 0
            for block, some in zip(blocks, rows, strict=True):
                data = getattr(block, column)[some].tobytes()
                checksum = zlib.crc32(data, checksum)
                size += file.write(data)
            padding = bytes(-size % _ALIGNMENT)
            checksum = zlib.crc32(padding, checksum)
            file.write(padding)
        file.write(checksum.to_bytes(4, "little"))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / _FILE)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Block]]:
    """Map the file in the folder `path`; the vectors stay on disk until they are read.

    Raises:
        SnapshotError: there is none, or it is torn, truncated, foreign or of another version.
    """
    file = Path(path) / _FILE
    try:
        data = np.memmap(file, np.uint8, mode="r")
    except (OSError, ValueError) as error:  # numpy refuses an empty file with ValueError
        raise SnapshotError(f"no vectors can be read from {file}: rebuild them") from error
    start = len(_MAGIC) + 8
    if (
        len(data) < start + 4
        or data[: len(_MAGIC)].tobytes() != _MAGIC
        or zlib.crc32(data[:-4].data).to_bytes(4, "little") != data[-4:].tobytes()
    ):
        raise SnapshotError(f"{file} is no whole file of vectors: rebuild it")
    end = start + int.from_bytes(data[start - 8 : start].tobytes(), "little")
    header = json.loads(data[start:end].tobytes())
    if header["version"] != _VERSION:
        raise SnapshotError(f"{file} has format {header['version']}, not {_VERSION}: rebuild it")
    ids = header.pop("ids")
    columns: list[Matrix] = []
    for dtype, width in (
        (np.dtype(header["dtype"]), header["dimensions"]),
        (np.dtype(np.float32), None),
        (np.dtype(np.int32), len(header["names"])),
    ):
        shape = (len(ids),) if width is None else (len(ids), width)
        begin = end + -end % _ALIGNMENT
        end = begin + dtype.itemsize * len(ids) * (1 if width is None else width)
        columns.append(np.asarray(data[begin:end]).view(dtype).reshape(shape))
    blocks: list[Block] = []
    for first in range(0, len(ids), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        some = ids[rows]
        alive = np.ones(len(some), np.bool_)
        vectors, scale, codes = (column[rows] for column in columns)
        blocks.append(Block(len(blocks), vectors, scale, codes, some, alive, len(some)))
    return header, blocks
