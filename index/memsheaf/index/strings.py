"""Packed strings with look-up, as plain arrays that can be mapped from a file."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def digest(text: str) -> np.uint64:
    """Return a stable 64-bit hash."""
    data = text.encode("utf-8", "surrogatepass")
    return np.uint64(int.from_bytes(blake2b(data, digest_size=8).digest(), "little"))


def _digests(data: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    joined = b"".join([blake2b(each, digest_size=8).digest() for each in data])
    return np.frombuffer(joined, "<u8")


class Strings:
    """An immutable list of strings; a string is found by its hash in logarithmic time.

    Args:
        arrays: `blob` uint8, `offset` int64 (n + 1), `hashes` uint64 sorted, `places` int32.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays

    @classmethod
    def pack(cls, texts: Sequence[str]) -> "Strings":
        """Pack strings."""
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        offset = np.zeros(len(data) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, data), np.int64, len(data)), out=offset[1:])
        hashes = _digests(data)
        order = np.argsort(hashes)
        blob = np.frombuffer(b"".join(data), np.uint8)
        places = order.astype(np.int32)
        return cls({"blob": blob, "offset": offset, "hashes": hashes[order], "places": places})

    def __len__(self) -> int:
        return len(self.arrays["offset"]) - 1

    def __getitem__(self, place: int) -> str:
        offset = self.arrays["offset"]
        start, stop = offset.item(place), offset.item(place + 1)
        return self.arrays["blob"][start:stop].tobytes().decode("utf-8", "surrogatepass")

    def texts(self) -> list[str]:
        """Return all strings."""
        blob = self.arrays["blob"]
        before = np.zeros(len(blob) + 1, np.int64)
        np.cumsum((blob & 0xC0) != 0x80, out=before[1:])  # bytes that begin a character
        text = blob.tobytes().decode("utf-8", "surrogatepass")
        return [text[b:e] for b, e in pairwise(before[self.arrays["offset"]].tolist())]

    def find(self, text: str, value: np.uint64 | None = None) -> list[int]:
        """Return every place that holds `text`, whose digest is `value` if that is known."""
        value = digest(text) if value is None else value
        hashes = self.arrays["hashes"]
        at = int(hashes.searchsorted(value))
        found = []
        while at < len(hashes) and hashes[at] == value:
            place = int(self.arrays["places"][at])
            if self[place] == text:
                found.append(place)
            at += 1
        return found

    def shared(self, other: "Strings") -> Ints:
        """Return the places of the strings that another list holds too."""
        hashes, wanted = self.arrays["hashes"], other.arrays["hashes"]
        at = hashes.searchsorted(wanted)
        near = np.flatnonzero(hashes.take(at, mode="clip") == wanted) if len(hashes) else at[:0]
        sizes = hashes.searchsorted(wanted[near], "right") - at[near]
        mine = self.arrays["places"][spread(at[near], sizes)].astype(np.int64)
        theirs = np.repeat(other.arrays["places"][near], sizes).astype(np.int64)
        start, other_start = self.arrays["offset"], other.arrays["offset"]
        length = start[mine + 1] - start[mine]
        same = length == other_start[theirs + 1] - other_start[theirs]
        mine, theirs, length = mine[same], theirs[same], length[same]
        differ = np.zeros(int(length.sum()) + 1, np.int64)
        own = self.arrays["blob"][spread(start[mine], length)]
        np.cumsum(own != other.arrays["blob"][spread(other_start[theirs], length)], out=differ[1:])
        ends = np.cumsum(length)
        shared: Ints = mine[differ[ends] == differ[ends - length]]
        return shared


def spread(start: Ints, sizes: Ints) -> Ints:
    """Return start[0], start[0] + 1, … for each run."""
    ends = np.cumsum(sizes)
    return np.repeat(start - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sort values, and return the distinct ones; several times faster than `np.unique`."""
    values.sort()
    fresh = np.empty(len(values), bool)
    fresh[:1] = True
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    return values[fresh]
