"""Times, owners and rows of every record in arrays, for what is asked by time and not by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from memsheaf.stack import MemoryRecord, Scope

__all__ = ["Catalog", "micros"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = {"key": ("u8", ()), "created": ("i8", ()), "updated": ("i8", ()), "row": ("i8", ()),
            "owner": ("u8", (4,)), "text": ("u8", ()), "alive": ("?", ())}  # fmt: skip
_FIRST_CHUNK = 64


class Catalog:
    """Of each record its times, hashes of its scope's fields and of what is indexed, and its row.

    Rows that came from a snapshot are sorted by the hash of their id, so that opening a large
    store builds no dictionary; later rows are found through one.
    """

    def __init__(self) -> None:
        self._sorted = self._count = 0
        self._offsets: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self._packed: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._new_ids: list[str] = []
        self._places: dict[str, int] = {}
        self._data: dict[str, npt.NDArray[Any]] = {
            name: np.zeros((64, *shape), kind) for name, (kind, shape) in _COLUMNS.items()
        }

    def put(self, record: MemoryRecord, row: int, indexed: str) -> bool:
        """Add or replace a record and its row's number; True where what is indexed is new."""
        record_id = record.id
        place = self._find(record_id)
        text = np.uint64(_digest(indexed))
        known = place is not None and self._data["alive"][place]
        known = known and self._data["text"][place] == text
        if place is None:
            place = self._count
            if place == len(self._data["key"]):
                self._data = {
                    name: np.concatenate([old, np.zeros_like(old)])
                    for name, old in self._data.items()
                }
            self._count += 1
            self._new_ids.append(record_id)
            self._places[record_id] = place
            self._data["key"][place] = _hash(record_id)
        owner = [_hash(value) if value else 0 for value in record.scope.key()]
        self._data["created"][place] = micros(record.created_at)
        self._data["updated"][place] = micros(record.updated_at)
        self._data["row"][place], self._data["alive"][place] = row, True
        self._data["owner"][place] = np.array(owner, np.uint64)
        self._data["text"][place] = text
        return not known

    def remove(self, record_id: str) -> None:
        """Remove a record, if it is there."""
        place = self._find(record_id)
        if place is not None:
            self._data["alive"][place] = False

    def rows(self, record_ids: Sequence[str]) -> dict[str, int]:
        """The numbers of the rows of those records that are there."""
        places = self._find_all(record_ids)  # first: another thread may be making the arrays longer
        alive, rows = self._data["alive"], self._data["row"]
        found = zip(record_ids, places, strict=True)
        return {i: int(rows[place]) for i, place in found if place is not None and alive[place]}

    def ordered(
        self,
        scope: Scope,
        by: Literal["created", "updated"],
        *,
        newest: bool,
        ceiling: int | None = None,
        after: tuple[int, str] | None = None,
    ) -> Iterator[str]:
        """Ids of a scope's records by time, then id; a later time than the ceiling counts as it.

        Newest first orders ids upwards for ``updated`` (ties of a search) and downwards for
        ``created`` (a listing read backwards). Hashes may collide: the caller checks the scope.
        """
        count = self._count
        keep = np.array(self._data["alive"][:count], np.bool_)
        for column, value in enumerate(scope.key()):
            if value is not None:
                keep &= self._data["owner"][:count, column] == np.uint64(_hash(value))
        places = np.flatnonzero(keep)
        times = np.array(self._data[by][places], np.int64)
        if ceiling is not None:
            times = np.minimum(times, ceiling)
        if after is not None:
            passed = times >= after[0] if not newest else times <= after[0]
            places, times = places[passed], times[passed]
        if newest:
            times = -times
        backwards = newest and by == "created"
        edge = None if after is None else -after[0] if newest else after[0]
        chunk = _FIRST_CHUNK
        while len(places):
            now = np.ones(len(places), np.bool_)
            if len(places) > chunk:
                now = times <= np.partition(times, chunk - 1)[chunk - 1]
            pairs = zip(times[now].tolist(), places[now].tolist(), strict=True)
            found = [(moment, self._id(place)) for moment, place in pairs]
            found.sort(key=lambda pair: pair[1], reverse=backwards)
            found.sort(key=lambda pair: pair[0])
            for moment, record_id in found:
                if after is None or moment != edge or _follows(record_id, after[1], backwards):
                    yield record_id
            places, times = places[~now], times[~now]
            chunk *= 4

    def save(self, path: Path, *, sequence: int, identity: str) -> None:
        """Write the rows that are alive, sorted by the hash of their id."""
        places = np.flatnonzero(self._data["alive"][: self._count])
        places = places[np.argsort(self._data["key"][places], kind="stable")]
        ids = [self._id(int(place)).encode() for place in places]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(i) for i in ids], out=offsets[1:])
        columns = {name: array[places] for name, array in self._data.items()}
        with path.open("wb") as file:
            np.savez(
                file,
                sequence=np.int64(sequence),
                identity=np.frombuffer(identity.encode(), np.uint8),
                offsets=offsets,
                ids=np.frombuffer(b"".join(ids), np.uint8),
                **columns,  # type: ignore[arg-type]
            )

    @classmethod
    def load(cls, path: Path) -> tuple[Catalog, int, str]:
        """Read what `save` wrote: the catalogue, its sequence and its store's identity.

        Raises:
            ValueError, KeyError, OSError, zipfile.BadZipFile: It is not such a file.
        """
        made = cls()
        with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
            sequence, identity = int(saved["sequence"]), saved["identity"].tobytes().decode()
            made._offsets, made._packed = saved["offsets"], saved["ids"]
            size = len(made._offsets) - 1
            for name, (kind, shape) in _COLUMNS.items():
                column = saved[name]
                if column.shape != (size, *shape) or column.dtype != np.dtype(kind):
                    raise ValueError("columns do not fit together")
                made._data[name] = column if size else made._data[name]
        made._sorted = made._count = size
        return made, sequence, identity

    def _find(self, record_id: str) -> int | None:
        return self._find_all((record_id,))[0]

    def _find_all(self, record_ids: Sequence[str]) -> list[int | None]:
        places = [self._places.get(record_id) for record_id in record_ids]
        if not self._sorted or None not in places:
            return places
        keys = self._data["key"][: self._sorted]
        wanted = np.fromiter(map(_hash, record_ids), np.uint64, len(record_ids))
        for number, at in enumerate(np.searchsorted(keys, wanted).tolist()):
            if places[number] is None:
                places[number] = self._sorted_place(record_ids[number], wanted[number], at)
        return places

    def _sorted_place(self, record_id: str, key: np.uint64, at: int) -> int | None:
        """The place of an id, from where its hash is first; hashes may collide."""
        while at < self._sorted and self._data["key"][at] == key:
            if self._id(at) == record_id:
                return at
            at += 1
        return None

    def _id(self, place: int) -> str:
        if place >= self._sorted:
            return self._new_ids[place - self._sorted]
        return self._packed[self._offsets[place] : self._offsets[place + 1]].tobytes().decode()


def _follows(record_id: str, other: str, backwards: bool) -> bool:
    return record_id < other if backwards else record_id > other


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _digest(value: str) -> int:
    return int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little") or 1


_hash = lru_cache(maxsize=65_536)(_digest)
