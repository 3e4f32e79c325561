"""The terms of an index by number."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from .strings import Strings

MEMO = 1 << 19
"""Raw tokens that are remembered."""
BREAK = -1
"""Stands between the fields of a document."""
_BREAKS = repeat((None,))


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

    def known(self, token: str) -> tuple[int | None, ...]:
        """Return the numbers of the terms of a token of a query, None for an unknown term."""
        code = self.get(token)
        if code is None:
            terms = self._expand(token)
            numbers = tuple(map(self.find, terms))
            if len(numbers) == 1 and numbers[0] is not None and len(self) < MEMO:
                self[token] = numbers[0]
            return numbers
        return (code,) if code >= 0 else self._several[-2 - code]

    def _number(self, term: str) -> int:
        number = self.find(term)
        if number is None:
            number = self.count
            self._texts.append(term)  # counted before it can be found
            self._numbers[term] = number
        return number

    def number(self, texts: Iterable[Sequence[str]]) -> npt.NDArray[np.int32]:
        """Return the term numbers of the texts' raw tokens in order, a break behind each text."""
        tokens = chain.from_iterable(chain.from_iterable(zip(texts, _BREAKS, strict=False)))
        codes = self.expanded(np.fromiter(map(self.__getitem__, tokens), np.int32))
        if len(self) > MEMO:
            self.clear()
        return codes

    def expanded(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Put the terms of tokens that have several, or none, in their places."""
        if codes.min(initial=0) >= BREAK:
            return codes
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
            if number is not None:
                self._numbers[term] = number
        return number

    def text(self, number: int) -> str:
        """Return the term of a number."""
        known = len(self.frozen)
        return self.frozen[number] if number < known else self._texts[number - known]

    def texts(self, first: int = 0) -> Iterator[str]:
        """Return the terms from a number on, in order of their numbers."""
        known = len(self.frozen)
        if first < known:
            yield from self.frozen.texts()[first:]
        yield from self._texts[max(0, first - known) :]
