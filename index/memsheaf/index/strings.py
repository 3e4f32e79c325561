"""Packed strings with look-up, as plain arrays that can be mapped from a file."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt


def digest(text: str) -> int:
    """Return a stable 64-bit hash."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


class Strings:
    """An immutable list of strings; a string is found by its hash in logarithmic time.

    Args:
        arrays: `blob` uint8, `offset` int64 (n + 1), `hashes` uint64 sorted, `order` int32.
    """

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays
        self._blob, self._offset = arrays["blob"], arrays["offset"]
        self._hashes, self._order = arrays["hashes"], arrays["order"]

    @classmethod
    def pack(cls, texts: Sequence[str]) -> "Strings":
        """Pack strings."""
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        offset = np.zeros(len(data) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, data), np.int64, len(data)), out=offset[1:])
        hashes = np.fromiter(
            (int.from_bytes(blake2b(d, digest_size=8).digest(), "little") for d in data),
            np.uint64,
            len(data),
        )
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        blob = np.frombuffer(b"".join(data), np.uint8)
        return cls({"blob": blob, "offset": offset, "hashes": hashes[order], "order": order})

    def select(self, places: npt.NDArray[np.int64]) -> "Strings":
        """Return the strings at the given places, in that order."""
        size = np.diff(self._offset)[places]
        offset = np.zeros(len(places) + 1, np.int64)
        np.cumsum(size, out=offset[1:])
        source = np.repeat(self._offset[places] - offset[:-1], size) + np.arange(offset[-1])
        unsorted = np.empty(len(self), np.uint64)
        unsorted[self._order] = self._hashes
        hashes = unsorted[places]
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        arrays = {"blob": self._blob[source], "offset": offset}
        return Strings({**arrays, "hashes": hashes[order], "order": order})

    @classmethod
    def concatenate(cls, first: "Strings", second: "Strings") -> "Strings":
        """Return the strings of both, in order."""
        a, b = first.arrays, second.arrays
        hashes = np.concatenate([a["hashes"], b["hashes"]])
        order = np.concatenate([a["order"], b["order"] + np.int32(len(first))])
        rank = np.argsort(hashes, kind="stable")
        offset = np.concatenate([a["offset"], b["offset"][1:] + a["offset"][-1]])
        blob = np.concatenate([a["blob"], b["blob"]])
        arrays = {"blob": blob, "offset": offset}
        return cls({**arrays, "hashes": hashes[rank], "order": order[rank]})

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: int) -> str:
        start, stop = self._offset[place], self._offset[place + 1]
        return self._blob[start:stop].tobytes().decode("utf-8", "surrogatepass")

    def find(self, text: str) -> list[int]:
        """Return every place that holds `text`."""
        value = np.uint64(digest(text))
        at = int(self._hashes.searchsorted(value))
        found = []
        while at < len(self._hashes) and self._hashes[at] == value:
            place = int(self._order[at])
            if self[place] == text:
                found.append(place)
            at += 1
        return found
