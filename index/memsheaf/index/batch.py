"""Documents on their way into the index: cut, numbered, and laid out in flat arrays."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from .documents import Document, Partition, fill
from .vocabulary import BREAK, Vocabulary

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BLOCK = 250
"""Documents whose tokens are looked up at once, while they are in the processor's cache."""
_BREAK = (None,)


@dataclass(slots=True)
class Batch:
    """Analysed documents, no two of one id.

    Attributes:
        ids: key per document.
        partitions: the distinct partitions.
        groups: per document the place of its partition in `partitions`.
        weights: score factor per document.
        lengths: weighted length per document.
        sizes: number of tokens per document.
        tokens: term numbers of all documents, a break between fields.
        factors: weight per token, None where all are 1.
    """

    ids: list[str]
    partitions: list[Partition]
    groups: Ints
    weights: Floats
    lengths: Floats
    sizes: Ints
    tokens: npt.NDArray[np.int32]
    factors: Floats | None

    def __len__(self) -> int:
        return len(self.ids)


def analyze(
    documents: Sequence[Document],
    vocabulary: Vocabulary,
    tokenize: Callable[[str], list[str]],
    field_weights: Mapping[str, float],
    partition_fields: int,
) -> Batch:
    """Return documents, one at least, as a batch; the last of an id wins, at its own place.

    Raises:
        ValueError: a weight or a partition is none.
    """
    last = {document.id: n for n, document in enumerate(documents)}
    if len(last) < len(documents):
        documents = [documents[n] for n in sorted(last.values())]
    distinct: dict[Partition, int] = {}
    groups = [distinct.setdefault(d.partition, len(distinct)) for d in documents]
    for document in documents:
        if not 0 < document.weight < math.inf:
            raise ValueError(f"weight of {document.id!r} must be above 0")
    partitions = [fill(partition, partition_fields) for partition in distinct]
    counts: list[int] = []
    names: list[str] = []
    parts = [
        vocabulary.number(chain.from_iterable(_cut(block, tokenize, counts, names)))
        for block in _blocks(documents)
    ]
    codes = np.concatenate(parts)
    ends = (codes == BREAK).nonzero()[0]
    words = _lengths(ends)
    after: Ints = np.array(counts).cumsum()
    doc_ends = ends[after - 1]
    real = np.ones(len(codes), bool)
    real[doc_ends] = False
    weighted, factors = words.astype(np.float64), None
    if any(field_weights.get(name, 1.0) != 1.0 for name in dict.fromkeys(names)):
        each = np.array([field_weights.get(name, 1.0) for name in names])
        factors = np.repeat(each, words + 1)[real]
        weighted *= each
    return Batch(
        [document.id for document in documents],
        partitions,
        np.array(groups, np.int64),
        np.array([document.weight for document in documents], np.float64),
        np.add.reduceat(weighted, after - counts),
        _lengths(doc_ends),
        codes[real],
        factors,
    )


def _lengths(ends: Ints) -> Ints:
    """Return how many entries lie before each end, after the one before it."""
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    lengths[1:] -= 1
    return lengths


def _blocks(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), _BLOCK):
        yield documents[start : start + _BLOCK]


def _cut(
    block: Sequence[Document],
    tokenize: Callable[[str], list[str]],
    counts: list[int],
    names: list[str],
) -> Iterator[Sequence[str | None]]:
    """Yield the raw tokens of each field and a break; note the fields and their number."""
    for document in block:
        fields = document.fields
        if isinstance(fields, str):
            fields = {"": fields}
        for name, text in fields.items():
            names.append(name)
            yield tokenize(text)
            yield _BREAK
        if not fields:
            names.append("")
            yield _BREAK
        counts.append(len(fields) or 1)
