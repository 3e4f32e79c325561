"""Exact nearest vectors by cosine, over vectors that come and go."""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Literal

import numpy as np
import numpy.typing as npt

from . import vector_rows
from .documents import Partition, fill
from .errors import IndexingError, SnapshotError
from .filters import Allow
from .vector_rows import BLOCK_ROWS, Block

Storage = Literal["float32", "float16", "int8"]
_BATCH = 8_192  # rows for which a writer holds the lock


@dataclass(frozen=True, slots=True)
class VectorHit:
    """One found vector.

    Attributes:
        id: its key.
        score: cosine with the query, in [-1, 1].
    """

    id: str
    score: float


class VectorIndex:
    """An exact, incremental cosine index; readers work on a snapshot and wait for no writer.

    Args:
        space: name of the vector space, for instance the embedder's id: vectors of different
            spaces never meet.
        dimensions: numbers of a vector.
        storage: `float16` halves the memory and `int8` quarters it, for a rounding error of about
            0.0005 and 0.005 in the cosine and more time; scores are exact for what is stored.
        partition_fields: names that a partition has.

    >>> index = VectorIndex("toy", 2)
    >>> index.add("north", [0.0, 1.0], partition=("ann",))
    >>> index.add("east", [2.0, 0.0], partition=("bob",))
    >>> [(hit.id, round(hit.score, 3)) for hit in index.search([3.0, 4.0])]
    [('north', 0.8), ('east', 0.6)]
    >>> [hit.id for hit in index.search([3.0, 4.0], where=("bob",))]
    ['east']
    """

    def __init__(
        self,
        space: str,
        dimensions: int,
        *,
        storage: Storage = "float32",
        partition_fields: int = 4,
    ) -> None:
        if dimensions < 1:
            raise IndexingError(f"a vector needs at least one dimension, not {dimensions}")
        self.space, self.dimensions, self.storage = space, dimensions, storage
        self.partition_fields = partition_fields
        self.sequence = 0
        self._lock = Lock()  # held by writers, for one block of rows at a time
        self._blocks: tuple[Block, ...] = ()
        self._places: dict[str, tuple[int, int]] = {}  # id -> number of the block, row
        self._names: list[dict[str, int]] = [{} for _ in range(partition_fields)]
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: object) -> bool:
        return id in self._places

    def ids(self) -> Iterator[str]:
        """Return the ids of all vectors."""
        return (
            block.ids[row] for block in self._blocks for row in np.flatnonzero(block.alive).tolist()
        )

    def add(self, id: str, vector: npt.ArrayLike, *, partition: Partition = ()) -> None:
        """Add or replace a vector; the next search sees it.

        Raises:
            IndexingError: the vector has another dimension or a number that is not finite.
        """
        self._add([id], self._checked(vector)[None, :], [fill(partition, self.partition_fields)])

    def add_many(
        self,
        ids: Collection[str],
        vectors: npt.ArrayLike,
        *,
        partitions: Iterable[Partition] | None = None,
    ) -> None:
        """Add or replace many vectors, one row each; of an id given twice the last one stays.

        Raises:
            IndexingError: numbers of ids, rows and partitions differ, or a row is not valid.
        """
        matrix = self._checked(vectors, rows=len(ids))
        filled = [fill(p, self.partition_fields) for p in partitions or [()] * len(ids)]
        if len(filled) != len(ids):
            raise IndexingError(f"{len(ids)} ids came with {len(filled)} partitions")
        last = {id: row for row, id in enumerate(ids)}
        names, rows = list(last), list(last.values())
        for start in range(0, len(rows), _BATCH):
            some = rows[start : start + _BATCH]
            self._add(names[start : start + _BATCH], matrix[some], [filled[row] for row in some])

    def remove(self, id: str) -> bool:
        """Remove a vector; False if there was none."""
        with self._lock:
            place = self._places.pop(id, None)
            if place is None:
                return False
            blocks = {block.number: block for block in self._blocks}
            self._drop(blocks, [place])
            self._publish(blocks)
            return True

    def search(
        self,
        vector: npt.ArrayLike,
        limit: int = 10,
        *,
        where: Partition | None = None,
        allow: Allow | None = None,
        min_score: float = -1.0,
    ) -> list[VectorHit]:
        """Return the vectors nearest to `vector`, best first, ties by id.

        Args:
            vector: the query; the zero vector is near to nothing.
            limit: how many at most.
            where: names that the partition must have, None standing for any.
            allow: the only ids that may be found, a mask with an entry per vector in the order of
                `ids()`, or a test on an id.
            min_score: least cosine.

        Raises:
            IndexingError: the vector has another dimension or a number that is not finite, or the
                mask another length than the index.
        """
        query = self._checked(vector).astype(np.float64)
        length = float(np.sqrt((query * query).sum()))
        if limit < 1 or length == 0.0:
            return []
        # A name that no vector has gets a code that no vector has.
        wanted = [
            None if name is None else names.get(name, -2)
            for name, names in zip(
                fill(where or (), self.partition_fields), self._names, strict=True
            )
        ]
        blocks, masks = self._selected(wanted, allow)
        found = vector_rows.best(blocks, masks, query / length, limit)
        asked = limit
        while callable(allow):  # only the best are asked about
            passed = [(score, id) for score, id in found if allow(id)]
            if len(passed) >= limit or len(found) < asked:
                found = passed[:limit]
                break
            asked *= 8
            found = vector_rows.best(blocks, masks, query / length, asked)
        return [VectorHit(id, score) for score, id in found if score >= min_score]

    def save(self, path: str | os.PathLike[str], *, sequence: int = 0) -> None:
        """Save into the folder `path`; `sequence` says up to where the source is contained."""
        with self._lock:
            blocks, names = self._blocks, [list(names) for names in self._names]
        header = {
            "space": self.space,
            "dimensions": self.dimensions,
            "dtype": self.storage,
            "sequence": sequence,
            "names": names,
        }
        vector_rows.write(path, blocks, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, space: str, dimensions: int) -> "VectorIndex":
        """Open a saved index; its `sequence` says what it contains.

        Raises:
            SnapshotError: there is none, it is damaged, or it holds vectors of another space.
        """
        header, blocks = vector_rows.read(path)
        if (header["space"], header["dimensions"]) != (space, dimensions):
            raise SnapshotError(
                f"the saved vectors are of space {header['space']!r} with {header['dimensions']} "
                f"dimensions, not of {space!r} with {dimensions}: embed the texts again"
            )
        names = header["names"]
        index = cls(space, dimensions, storage=header["dtype"], partition_fields=len(names))
        index.sequence = header["sequence"]
        index._blocks = tuple(blocks)
        index._next_number = len(blocks)
        index._names = [{name: code for code, name in enumerate(some)} for some in names]
        index._places = {
            id: (block.number, row) for block in blocks for row, id in enumerate(block.ids)
        }
        return index

    def _checked(self, vector: npt.ArrayLike, rows: int | None = None) -> npt.NDArray[np.float32]:
        array = np.asarray(vector, np.float32)
        shape = (self.dimensions,) if rows is None else (rows, self.dimensions)
        if array.shape != shape and not (rows == 0 and array.size == 0):
            raise IndexingError(
                f"space {self.space!r} takes arrays of shape {shape}, this one has {array.shape}"
            )
        if not np.isfinite(array).all():
            raise IndexingError("a vector has a number that is not finite in float32")
        return array

    def _stored(
        self, matrix: npt.NDArray[np.float32]
    ) -> tuple[vector_rows.Matrix, npt.NDArray[np.float32]]:
        """Return the rows as they are stored, and 1 / length of what is stored."""
        # By the largest number first: squares of huge or tiny ones leave float32.
        peak = np.abs(matrix).max(axis=1, keepdims=True)
        rows: vector_rows.Matrix = np.divide(
            matrix, peak, out=np.zeros_like(matrix), where=peak > 0
        )
        if self.storage == "int8":
            rows = np.rint(rows * 127).astype(np.int8)
        else:
            lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
            np.divide(rows, lengths, out=rows, where=lengths > 0)
            rows = rows.astype(self.storage, copy=False)
        lengths = np.sqrt((rows.astype(np.float32) ** 2).sum(axis=1))
        scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return rows, scale

    def _add(
        self, ids: list[str], matrix: npt.NDArray[np.float32], partitions: list[Partition]
    ) -> None:
        rows, scale = self._stored(matrix)
        with self._lock:
            codes = np.array(
                [
                    [
                        -1 if name is None else names.setdefault(name, len(names))
                        for name, names in zip(partition, self._names, strict=True)
                    ]
                    for partition in partitions
                ],
                np.int32,
            ).reshape(len(ids), self.partition_fields)
            blocks = {block.number: block for block in self._blocks}
            self._drop(blocks, [self._places[id] for id in ids if id in self._places])
            self._append(blocks, ids, rows, scale, codes)
            self._publish(blocks)

    def _append(
        self,
        blocks: dict[int, Block],
        ids: list[str],
        rows: vector_rows.Matrix,
        scale: npt.NDArray[np.float32],
        codes: npt.NDArray[np.int32],
    ) -> None:
        done = 0
        while done < len(ids):
            block = blocks.get(self._next_number - 1)
            if block is None or block.count >= BLOCK_ROWS:
                block = Block.empty(
                    self._next_number, self.dimensions, rows.dtype, self.partition_fields
                )
                self._next_number += 1
            if not block.room:
                block = block.grown(len(ids) - done)
            some = slice(done, done + block.room)
            done += block.room
            for row, id in enumerate(ids[some], block.count):
                self._places[id] = (block.number, row)
            blocks[block.number] = block.append(ids[some], rows[some], scale[some], codes[some])

    def _drop(self, blocks: dict[int, Block], places: list[tuple[int, int]]) -> None:
        rows: dict[int, list[int]] = {}
        for number, row in places:
            rows.setdefault(number, []).append(row)
        for number, some in rows.items():
            blocks[number] = blocks[number].without(some)

    def _publish(self, blocks: dict[int, Block]) -> None:
        """Make `blocks` what the next search sees; first move the rest out of a block of holes."""
        for block in list(blocks.values()):
            if 2 * block.live > block.count:
                continue
            del blocks[block.number]
            if rows := np.flatnonzero(block.alive).tolist():
                ids = [block.ids[row] for row in rows]
                columns = block.vectors[rows], block.scale[rows], block.codes[rows]
                self._append(blocks, ids, *columns)
                break  # one a write: nobody waits long
        self._blocks = tuple(blocks.values())

    def _selected(
        self, wanted: list[int | None], allow: Allow | None
    ) -> tuple[tuple[Block, ...], list[npt.NDArray[np.bool_]]]:
        """Return one state of the blocks, and the rows in it that may be found."""
        if allow is None or callable(allow):
            blocks = self._blocks
            return blocks, [block.matching(wanted) for block in blocks]
        with self._lock:  # places and blocks of the same moment
            blocks = self._blocks
            if isinstance(allow, np.ndarray):
                chosen = _spread(allow, blocks)
            else:
                places = [self._places[id] for id in allow if id in self._places]
                chosen = {block.number: np.zeros(block.count, np.bool_) for block in blocks}
                for number, row in places:
                    chosen[number][row] = True
        return blocks, [block.matching(wanted) & chosen[block.number] for block in blocks]


def _spread(
    mask: npt.NDArray[np.bool_], blocks: tuple[Block, ...]
) -> dict[int, npt.NDArray[np.bool_]]:
    """Return the rows of each block that a mask over all living rows chooses."""
    edges = np.cumsum([0, *(block.live for block in blocks)]).tolist()
    if edges[-1] != len(mask):
        raise IndexingError(
            f"the mask has {len(mask)} entries and the index {edges[-1]} vectors: "
            "make one with an entry per vector in the order of ids()"
        )
    chosen = {}
    for block, start, stop in zip(blocks, edges, edges[1:], strict=False):
        chosen[block.number] = np.zeros(block.count, np.bool_)
        chosen[block.number][block.alive] = mask[start:stop]
    return chosen
