"""The lists of a query that are added posting by posting."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from .impacts import Table
from .segment import Array
from .sources import Source

_NO_PLACES, _NO_CODES = np.zeros(0, np.int64), np.zeros(0, np.uint16)


class Lists:
    """The lists of all sources end to end: one pass over them costs less than many short ones.

    Args:
        sources: whose lists, as planned.
        factors: weight per term.
    """

    def __init__(self, sources: Sequence[Source], factors: Sequence[float]) -> None:
        docs: list[Array] = [_NO_PLACES]
        codes: list[Array] = [_NO_CODES]
        ends = [0]
        sizes: list[int] = []
        weights: list[float] = []
        for source in sources:
            rows, own_docs, own_codes = source.scattered, source.docs, source.codes
            docs += [own_docs[b:e] for _, b, e in rows]
            codes += [own_codes[b:e] for _, b, e in rows]
            weights += [factors[i] for i, _, _ in rows]
            sizes += [e - b for _, b, e in rows]
            ends.append(len(sizes))
        stops = [0, *accumulate(sizes)]
        edges = [stops[end] for end in ends]
        self._parts = list(zip(sources, map(slice, edges, edges[1:]), strict=False))
        self._places = np.concatenate(docs, dtype=np.int64)
        self._codes = np.concatenate(codes)
        self._factors = np.array(weights, np.float32).repeat(sizes)
        for source, part in self._parts:
            if source.base != source.lo:
                self._places[part] += source.base - source.lo

    def add(self, sums: Array, table: Table, weighted: bool) -> None:
        """Add the weights of all postings, times the factors and rounded up, to the sums."""
        gain = table.weights.take(self._codes)
        if weighted:
            for source, part in self._parts:
                gain[part] *= source.weights.take(self._places[part] - (source.base - source.lo))
        units = np.empty(len(gain), sums.dtype)
        np.multiply(gain, self._factors, out=units, casting="unsafe")
        units += 1
        np.add.at(sums, self._places, units)
