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

    All terms lie in flat arrays. Length, then the set of characters, leave a few that may be near,
    and these are compared all at once.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lengths = np.zeros(1024, np.int16)
        self._masks = np.zeros(1024, np.uint64)
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
            near = np.flatnonzero(np.abs(self._lengths[first:count] - len(word)) <= most) + first
            own, masks = _mask(word), self._masks[near]
            near = near[_at_most(masks & ~own, most) & _at_most(own & ~masks, most)]
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
        algorithm for computing Levenshtein and Damerau edit distances").
        """
        lengths = self._lengths[terms]
        places = self._starts[terms] + np.arange(width)[:, None]
        columns = self._chars.take(places, mode="clip")
        kind = np.uint64 if len(word) <= 64 else object
        zero, one = (np.array(value, kind)[()] for value in (0, 1))
        last = one << np.array(len(word) - 1, kind)[()]
        alphabet, inverse = np.unique(_characters(word), return_inverse=True)
        held = np.array([zero] * len(alphabet), kind)
        for place, char in enumerate(inverse.tolist()):
            held[char] |= one << np.array(place, kind)[()]
        at = np.minimum(alphabet.searchsorted(columns), len(alphabet) - 1)
        match = np.where(alphabet[at] == columns, held[at], zero)
        plus = np.full(len(terms), last | (last - one), kind)
        minus = diagonal = before = np.full(len(terms), zero, kind)
        score = np.full(len(terms), len(word))
        result = score.copy()
        for column in range(width):
            same = match[column]
            swapped = ((~diagonal & same) << one) & before
            diagonal = (((same & plus) + plus) ^ plus) | same | minus | swapped
            more, less = minus | ~(diagonal | plus), diagonal & plus
            score += (more & last != 0).astype(np.int64) - (less & last != 0)
            more, less = (more << one) | one, less << one
            plus, minus = less | ~(diagonal | more), more & diagonal
            before = same
            result = np.where(lengths == column + 1, score, result)
        return result


def _characters(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _mask(word: str) -> np.uint64:
    mask = 0
    for char in word:
        mask |= 1 << (ord(char) & 63)
    return np.uint64(mask)


def _at_most(bits: npt.NDArray[np.uint64], most: int) -> npt.NDArray[np.bool_]:
    """Return which numbers have no more than so many bits."""
    for _ in range(most):
        bits = bits & (bits - np.uint64(1))
    few: npt.NDArray[np.bool_] = bits == 0
    return few


def _put(array: npt.NDArray[Any], size: int, more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array with values behind its first `size`, grown if there is no room."""
    while size + len(more) > len(array):
        array = np.concatenate([array, np.zeros_like(array)])
    array[size : size + len(more)] = more
    return array
