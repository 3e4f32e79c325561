"""Packed strings with look-up, as plain arrays that can be mapped from a file."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt


def digest(text: str) -> np.uint64:
    """Return a stable 64-bit hash."""
    return _digests([text.encode("utf-8", "surrogatepass")])[0]  # type: ignore[no-any-return]


def _digests(data: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    joined = b"".join([blake2b(each, digest_size=8).digest() for each in data])
    return np.frombuffer(joined, "<u8")


class Strings:
    """An immutable list of strings; a string is found by its hash in logarithmic time.

    Args:
        arrays: `blob` uint8, `offset` int64 (n + 1), `hashes` uint64 sorted, `order` int32.
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
        return cls({"blob": blob, "offset": offset, "hashes": hashes[order], "order": places})

    def __len__(self) -> int:
        return len(self.arrays["offset"]) - 1

    def __getitem__(self, place: int) -> str:
        start, stop = self.arrays["offset"][place : place + 2].tolist()
        return self.arrays["blob"][start:stop].tobytes().decode("utf-8", "surrogatepass")

    def find(self, text: str, value: np.uint64 | None = None) -> list[int]:
        """Return every place that holds `text`, whose digest is `value` if that is known."""
        value = digest(text) if value is None else value
        hashes = self.arrays["hashes"]
        at = int(hashes.searchsorted(value))
        found = []
        while at < len(hashes) and hashes[at] == value:
            place = int(self.arrays["order"][at])
            if self[place] == text:
                found.append(place)
            at += 1
        return found

    def shared(self, other: "Strings") -> list[tuple[int, int]]:
        """Return the places of the strings that both hold: in this list, and in the other."""
        hashes, wanted = self.arrays["hashes"], other.arrays["hashes"]
        if not len(hashes) or not len(wanted):
            return []
        place = np.minimum(hashes.searchsorted(wanted), len(hashes) - 1)
        theirs = other.arrays["order"][hashes[place] == wanted].tolist()
        return [(mine, their) for their in theirs for mine in self.find(other[their])]
