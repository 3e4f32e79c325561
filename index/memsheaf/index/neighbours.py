"""The terms near a word: by edit distance, for words that nothing holds, or by prefix."""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from .vocabulary import Vocabulary

Near = list[tuple[int, float]]
_REMEMBERED = 1_024


class Neighbours:
    """Finds the terms near a word; `update` takes in what the vocabulary has gained.

    All terms lie in flat arrays. The set of characters, first in sixteen bits, and the length leave
    a few that may be near, and these are compared all at once.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lengths = np.zeros(1024, np.int16)
        self._masks = np.zeros(1024, np.uint64)
        self._signs = np.zeros(1024, np.uint16)
        self._starts = np.zeros(1024, np.int64)
        self._chars = np.zeros(8192, np.uint32)
        self._size = 0
        self._known: dict[str, tuple[int, Near]] = {}
        self._lock = threading.Lock()

    def update(self, vocabulary: Vocabulary) -> None:
        """Take in the newest terms."""
        with self._lock:
            texts = list(vocabulary.texts(self.count))
            if not texts:
                return
            chars = _characters("".join(texts))
            lengths = np.fromiter(map(len, texts), np.int64, len(texts))
            starts = np.cumsum(lengths) - lengths
            bits = np.left_shift(np.uint64(1), (chars & np.uint32(63)).astype(np.uint64))
            masks = np.bitwise_or.reduceat(np.append(bits, np.uint64(0)), starts)  # not for ""
            self._lengths = _put(self._lengths, self.count, lengths)
            self._masks = _put(self._masks, self.count, masks)
            self._signs = _put(self._signs, self.count, _folded(masks))
            self._starts = _put(self._starts, self.count, starts + self._size)
            self._chars = _put(self._chars, self._size, chars)
            self._size += len(chars)
            self.count += len(texts)

    def similar(self, word: str) -> Near:
        """Return terms one edit away (two from eight characters on), with 1 - edits / length."""
        most = 0 if len(word) < 3 else 1 if len(word) < 8 else 2
        if not most:
            return []
        first, found = self._known.get(word, (0, []))
        count = self.count
        if first < count:
            own = _mask(word)
            near = _alike(self._signs[first:count], _folded(own), most).nonzero()[0] + first
            near = near[np.abs(self._lengths.take(near) - len(word)) <= most]
            near = near[_alike(self._masks.take(near), own, most)]
            edits = self._edits(word, near, len(word) + most)
            chosen = edits <= most
            rows = zip(near[chosen].tolist(), edits[chosen].tolist(), strict=True)
            found = found + [(number, 1 - edit / len(word)) for number, edit in rows]
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[word] = count, found
        return found

    def starting(self, word: str) -> Near:
        """Return the terms that begin with `word`, with the share of the term that it covers."""
        if not word:
            return []
        own = _mask(word)
        longer = self._lengths[: self.count] > len(word)
        near = np.flatnonzero(longer & (self._masks[: self.count] & own == own))
        for place, char in enumerate(_characters(word)):
            near = near[self._chars[self._starts[near] + place] == char]
        shares = len(word) / self._lengths[near]
        return list(zip(near.tolist(), shares.tolist(), strict=True))

    def _edits(self, word: str, terms: npt.NDArray[np.int64], width: int) -> npt.NDArray[Any]:
        """Return the edit distance of a word to terms no longer than `width`.

        Neighbour swaps count once. One bit per character of the word (Hyyrö 2003, "A bit-vector
        algorithm for computing Levenshtein and Damerau edit distances"), and the bits of all terms
        side by side in one whole number: numpy would spend most of the time on its calls.
        """
        lane = -(-(len(word) + 2) // 8)  # bytes: a bit per character, and room for a carry
        held: dict[int, int] = {}
        for place, char in enumerate(word):
            held[ord(char)] = held.get(ord(char), 0) | 1 << place
        alphabet = np.array(sorted(held), np.uint32)
        bits = _packed([*(held[char] for char in sorted(held)), 0], lane)
        columns = np.arange(width)[:, None]
        chars = self._chars.take(self._starts.take(terms) + columns, mode="clip")
        at = alphabet.searchsorted(chars)
        at[alphabet.take(at, mode="clip") != chars] = len(alphabet)
        within = _packed([0, 1], lane).take(self._lengths.take(terms) > columns)
        ones = int.from_bytes((1).to_bytes(lane, "little") * len(terms), "little")
        full, top = ones * ((1 << len(word)) - 1), len(word) - 1
        plus, score = full, ones * len(word)
        minus = diagonal = before = 0
        for match, there in zip(map(_whole, bits.take(at)), map(_whole, within), strict=True):
            swapped = ((full ^ diagonal) & match) << 1 & before
            diagonal = ((((match & plus) + plus) ^ plus) | match | minus | swapped) & full
            more, less = minus | (full ^ (diagonal | plus)), diagonal & plus
            score += (more >> top & there) - (less >> top & there)
            more, less = (more << 1 | ones) & full, less << 1 & full
            plus, minus = less | (full ^ (diagonal | more)), more & diagonal
            before = match
        rows = np.frombuffer(score.to_bytes(lane * len(terms), "little"), np.uint8)
        rows = rows.reshape(len(terms), lane)
        return np.where(rows[:, 1:].any(axis=1), len(word), rows[:, 0])


def _characters(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _mask(word: str) -> np.uint64:
    mask = 0
    for char in word:
        mask |= 1 << (ord(char) & 63)
    return np.uint64(mask)


def _folded(masks: Any) -> Any:
    """Return sets of characters in sixteen bits."""
    masks = masks | masks >> np.uint64(32)
    return (masks | masks >> np.uint64(16)).astype(np.uint16)


def _alike(masks: npt.NDArray[Any], own: Any, most: int) -> npt.NDArray[np.bool_]:
    """Return which sets lack no more than so many of a set, and have no more others."""
    return _at_most(masks & ~own, most) & _at_most(own & ~masks, most)


def _at_most(bits: npt.NDArray[Any], most: int) -> npt.NDArray[np.bool_]:
    """Return which numbers have no more than so many bits."""
    one = bits.dtype.type(1)
    for _ in range(most):
        bits = bits & (bits - one)
    few: npt.NDArray[np.bool_] = bits == 0
    return few


def _packed(numbers: list[int], size: int) -> npt.NDArray[Any]:
    """Return whole numbers of so many bytes each."""
    return np.frombuffer(b"".join([n.to_bytes(size, "little") for n in numbers]), f"V{size}")


def _whole(row: npt.NDArray[Any]) -> int:
    return int.from_bytes(row.tobytes(), "little")


def _put(array: npt.NDArray[Any], size: int, more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array with values behind its first `size`, grown if there is no room."""
    while size + len(more) > len(array):
        array = np.concatenate([array, np.zeros_like(array)])
    array[size : size + len(more)] = more
    return array
