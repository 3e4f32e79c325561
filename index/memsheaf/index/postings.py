"""What the words of a query hold, document by document: for a ranking of one's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .bm25 import BM25Index
from .head import Head

__all__ = ["Postings", "postings"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Postings:
    """The live documents that hold one word of a query.

    Attributes:
        times: How often the query has the word.
        rows: The documents by their number of insertion, from 0, never reused.
        frequencies: How often each has the word.
        lengths: Their lengths in terms.
    """

    times: float
    rows: Ints
    frequencies: Floats
    lengths: Floats


def postings(index: BM25Index, text: str) -> list[Postings]:
    """Return the postings of each distinct word of a text, one that no document has included.

    >>> index = BM25Index("plain")
    >>> index.add("a", "sea and salt sea")
    >>> [(p.rows.tolist(), p.frequencies.tolist()) for p in postings(index, "salt sea")]
    [([0], [1.0]), ([0], [2.0])]
    """
    sources, query, _, _ = index._prepare(text, None, None, None, False, False)
    found = []
    for slot in query.slots:
        columns: list[tuple[Ints, Floats, Floats]] = []
        for place, _ in slot:
            for source in sources:
                begin, end = source.bounds[place]
                docs = source.docs[begin:end].astype(np.int64)
                at = np.arange(begin, end) if source.at is None else source.at[begin:end]
                part = source.part
                if isinstance(part, Head):
                    frequencies, order = part.tf[at], part.order
                else:
                    frequencies, order = part.frequencies(at), part.insertion()
                alive = source.alive(docs)
                if alive is not None:
                    docs, frequencies = docs[alive], frequencies[alive]
                columns.append((order[docs], frequencies, source.lengths[docs]))
        empty = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        rows, frequencies, lengths = (np.concatenate(c) for c in zip(empty, *columns, strict=True))
        times = float(query.factors[slot[0][0]]) if slot else 1.0
        found.append(Postings(times, rows, frequencies, lengths))
    return found
