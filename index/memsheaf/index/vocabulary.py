"""The terms of an index by number."""

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt

from .strings import Strings

MEMO = 1 << 19
"""Raw tokens that are remembered."""
BREAK = -1
"""Stands between the fields of a document."""


class Vocabulary(dict[str | None, int]):
    """Numbers terms, and remembers what each raw token stands for: `vocabulary[token]`.

    That is the number of its only term, or, where it has several or none, -2 - n for the n-th of
    the tuples that are kept for good, so that forgetting tokens never invalidates a code. None is a
    break.

    Args:
        expand: the analyzer's expansion of a raw token.
        frozen: terms read from a file, which keep their numbers.
    """

    def __init__(
        self, expand: Callable[[str], tuple[str, ...]], frozen: Strings | None = None
    ) -> None:
        super().__init__()
        self._expand = expand
        self.frozen = frozen or Strings.pack([])
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._several: list[tuple[int, ...]] = []
        self._codes: dict[tuple[int, ...], int] = {}
        self._lock = threading.Lock()

    def __missing__(self, token: str | None) -> int:
        """Number the terms of a token that is to be indexed."""
        if token is None:
            self[None] = BREAK
            return BREAK
        terms = self._expand(token)
        with self._lock:
            numbers = tuple(map(self._number, terms))
            code = numbers[0] if len(numbers) == 1 else self._codes.get(numbers)
            if code is None:
                code = self._codes[numbers] = -2 - len(self._several)
                self._several.append(numbers)
        self[token] = code
        return code

    def _number(self, term: str) -> int:
        number = self.find(term)
        if number is None:
            number = self.count
            self._texts.append(term)  # counted before it can be found
            self._numbers[term] = number
        return number

    def number(self, tokens: Iterable[str | None]) -> npt.NDArray[np.int32]:
        """Return the term numbers of raw tokens in order, and a break for each None."""
        codes = np.fromiter(map(self.__getitem__, tokens), np.int32)
        if codes.min(initial=0) < BREAK:
            codes = self._expanded(codes)
        if len(self) > MEMO:
            self.clear()
        return codes

    def _expanded(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Put the terms of tokens that have several, or none, in their places."""
        places = np.flatnonzero(codes < BREAK)
        terms = [self._several[-2 - code] for code in codes[places].tolist()]
        sizes = np.ones(len(codes), np.int64)
        sizes[places] = np.fromiter(map(len, terms), np.int64, len(terms))
        result = np.repeat(codes, sizes)
        result[result < BREAK] = np.fromiter(chain.from_iterable(terms), np.int32)
        return result

    @property
    def count(self) -> int:
        """Number of terms."""
        return len(self.frozen) + len(self._texts)

    def find(self, term: str) -> int | None:
        """Return the number of a term, None if it was never indexed."""
        number = self._numbers.get(term)
        if number is None and len(self.frozen):
            number = next(iter(self.frozen.find(term)), None)
        return number

    def text(self, number: int) -> str:
        """Return the term of a number."""
        known = len(self.frozen)
        return self.frozen[number] if number < known else self._texts[number - known]

    def texts(self, first: int = 0) -> Iterator[str]:
        """Return the terms from a number on, in order of their numbers."""
        known = len(self.frozen)
        for number in range(first, known):
            yield self.frozen[number]
        yield from self._texts[max(0, first - known) :]


class Neighbours:
    """Finds the terms near a word, by edit distance or by prefix; made for one vocabulary size."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.count = vocabulary.count
        texts = list(vocabulary.texts())[: self.count]
        by_length: dict[int, list[int]] = {}
        for number, text in enumerate(texts):
            by_length.setdefault(len(text), []).append(number)
        self._tables = {
            length: (
                np.array(numbers),
                np.frombuffer(
                    "".join(texts[n] for n in numbers).encode("utf-32-le", "surrogatepass"),
                    np.uint32,
                ).reshape(len(numbers), length),
            )
            for length, numbers in by_length.items()
            if length
        }

    def similar(self, word: str) -> list[tuple[int, float]]:
        """Return terms one edit away (two from eight characters on), with 1 - edits / length."""
        most = 0 if len(word) < 3 else 1 if len(word) < 8 else 2
        query = np.frombuffer(word.encode("utf-32-le", "surrogatepass"), np.uint32)
        found: list[tuple[int, float]] = []
        for length in range(max(1, len(word) - most), len(word) + most + 1):
            if most and length in self._tables:
                numbers, table = self._tables[length]
                edits = _edits(query, table)
                for at in np.flatnonzero(edits <= most).tolist():
                    found.append((int(numbers[at]), 1 - int(edits[at]) / len(word)))
        return found

    def starting(self, word: str) -> list[tuple[int, float]]:
        """Return the terms that begin with `word`, with the share of the term that it covers."""
        query = np.frombuffer(word.encode("utf-32-le", "surrogatepass"), np.uint32)
        found: list[tuple[int, float]] = []
        for length, (numbers, table) in self._tables.items():
            if length > len(word) > 0:
                hit = np.flatnonzero((table[:, : len(word)] == query).all(axis=1))
                found.extend((n, len(word) / length) for n in numbers[hit].tolist())
        return found


def _edits(query: npt.NDArray[np.uint32], table: npt.NDArray[np.uint32]) -> npt.NDArray[np.int16]:
    """Return the edit distance (neighbour swaps count once) of `query` to each row."""
    rows, length = table.shape
    before = last = np.zeros((rows, 0), np.int16)
    row = np.broadcast_to(np.arange(length + 1, dtype=np.int16), (rows, length + 1)).copy()
    for i, char in enumerate(query.tolist()):
        before, last, row = last, row, np.empty_like(row)
        row[:, 0] = i + 1
        for j in range(length):
            step = last[:, j] + (table[:, j] != char)
            step = np.minimum(step, np.minimum(last[:, j + 1], row[:, j]) + 1)
            if i and j:
                swap = (table[:, j] == query[i - 1]) & (table[:, j - 1] == char)
                step = np.where(swap, np.minimum(step, before[:, j - 1] + 1), step)
            row[:, j + 1] = step
    return row[:, -1]
