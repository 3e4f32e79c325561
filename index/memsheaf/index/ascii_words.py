"""Numbering the words of ASCII texts in bulk, without a Python object for each of them."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .vocabulary import BREAK, Vocabulary

SLOTS = 1 << 20
"""Places in the table; half of them are used at the most."""
PROBES = 4
"""Places that are looked at for a word."""
_LONGEST = 16
_WHITE = np.zeros(128, bool)
_WHITE[[*range(9, 14), *range(28, 33)]] = True  # what str.split takes for white space
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93], np.uint64)

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class AsciiWords:
    """A table of words of up to 16 bytes, each kept whole as two numbers beside its code.

    All words of many texts are looked up in a few passes. What is not found goes to the vocabulary,
    longer words and texts with other characters always.

    Args:
        vocabulary: it numbers words that are new.
        tokenize: the analyzer's, which for ASCII texts is `str.split`.
    """

    def __init__(self, vocabulary: Vocabulary, tokenize: Callable[[str], list[str]]) -> None:
        self._vocabulary, self._tokenize = vocabulary, tokenize
        self._table = np.zeros((SLOTS, 3), np.uint64)
        self._free = SLOTS // 2

    def number(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the term numbers of texts in order, with a break behind each text."""
        joined = " ".join(texts)
        if joined.isascii() and "\0" not in joined:
            return self._number(joined, texts)
        plain = [text if text.isascii() and "\0" not in text else "" for text in texts]
        codes = self._number(" ".join(plain), plain)
        ends = np.flatnonzero(codes == BREAK)
        others = [n for n, text in enumerate(texts) if text and not plain[n]]
        more = self._vocabulary.number(self._tokenize(texts[n]) for n in others)
        sizes = np.diff(np.flatnonzero(more == BREAK), prepend=-1) - 1
        return np.insert(codes, np.repeat(ends[others], sizes), more[more != BREAK])

    def _number(self, joined: str, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        data = b" " + joined.encode("ascii") + b" " * (_LONGEST + 1)
        characters = np.frombuffer(data, np.uint8)
        white = characters <= ord(" ")
        if np.count_nonzero(white) > data.count(b" "):  # other controls
            white = _WHITE.take(characters)
        edges = np.flatnonzero(white[1:] != white[:-1]) + 1
        codes = self._look_up(data, edges[::2], edges[1::2])
        after = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        before = edges[::2].searchsorted(np.cumsum(after))
        codes = np.insert(codes, before, np.int32(BREAK))
        return self._vocabulary.expanded(codes)

    def _look_up(self, data: bytes, starts: Ints, ends: Ints) -> npt.NDArray[np.int32]:
        """Return the codes of the words at these places."""
        sizes = ends - starts
        bytes_at = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))  # eight from each place on
        first = bytes_at[starts] & _MASKS.take(sizes, mode="clip")
        second = np.zeros(len(starts), np.uint64)
        more = np.flatnonzero(sizes > 8)
        second[more] = bytes_at[starts[more] + 8] & _MASKS.take(sizes[more] - 8, mode="clip")
        slots = _slots(first, second)
        codes = np.zeros(len(starts), np.int32)
        left = np.flatnonzero(sizes <= _LONGEST)
        for step in range(PROBES):
            rows = self._table.take((slots[left] + step) % SLOTS, axis=0)
            hit = (rows[:, 0] == first[left]) & (rows[:, 1] == second[left])
            codes[left[hit]] = rows[hit, 2].astype(np.uint32).view(np.int32)
            left = left[~hit]
        fresh = self._ask(data, starts, ends, left, codes)
        self._keep(slots[fresh], first[fresh], second[fresh], codes[fresh])
        self._ask(data, starts, ends, np.flatnonzero(sizes > _LONGEST), codes)
        return codes

    def _ask(
        self, data: bytes, starts: Ints, ends: Ints, places: Ints, codes: npt.NDArray[np.int32]
    ) -> list[int]:
        """Take the codes of words from the vocabulary; return the first place of each word."""
        known: dict[bytes, int] = {}
        fresh = []
        spans = zip(places.tolist(), starts[places].tolist(), ends[places].tolist(), strict=True)
        for place, start, end in spans:
            word = data[start:end]
            code = known.get(word)
            if code is None:
                code = known[word] = self._vocabulary[word.decode("ascii")]
                fresh.append(place)
            codes[place] = code
        return fresh

    def _keep(self, slots: Ints, first: Words, second: Words, codes: npt.NDArray[np.int32]) -> None:
        """Put each word into the first free of its places, if there is one."""
        left = np.arange(min(len(slots), self._free))
        for step in range(PROBES):
            at = (slots[left] + step) % SLOTS
            free = np.flatnonzero(self._table[at, 0] == 0)
            _, one = np.unique(at[free], return_index=True)  # of several that want a place
            chosen = free[one]
            own = left[chosen]
            self._table[at[chosen]] = np.stack(
                [first[own], second[own], codes[own].view(np.uint32).astype(np.uint64)], axis=1
            )
            self._free -= len(own)
            left = np.delete(left, chosen)


def _slots(first: Words, second: Words) -> Ints:
    """Return the place of each word; its bits depend on all bits of the word."""
    mixed = first * _FACTORS[0] ^ second * _FACTORS[1]
    mixed ^= mixed >> np.uint64(32)
    mixed *= _FACTORS[2]
    mixed >>= np.uint64(65 - SLOTS.bit_length())
    slots: Ints = mixed.view(np.int64)
    return slots
