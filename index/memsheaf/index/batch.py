"""Documents on their way into the index: cut, numbered, and laid out in flat arrays."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .documents import Document, Partition, fill
from .vocabulary import BREAK

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BLOCK = 2_000
"""Texts whose words are looked up at once, while they are in the processor's cache."""


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
    number: Callable[[Sequence[str]], npt.NDArray[np.int32]],
    field_weights: Mapping[str, float],
    partition_fields: int,
) -> Batch:
    """Return documents, one at least, as a batch; the last of an id wins, at its own place.

    Args:
        documents: what to index.
        number: gives the term numbers of texts in order, with a break behind each.
        field_weights: weight by field name; 1 for all others.
        partition_fields: number of names in a partition.

    Raises:
        ValueError: a weight or a partition is none.
    """
    last = {document.id: n for n, document in enumerate(documents)}
    if len(last) < len(documents):
        documents = [documents[n] for n in sorted(last.values())]
    for document in documents:
        if not 0 < document.weight < math.inf:
            raise ValueError(f"weight of {document.id!r} must be above 0")
    distinct: dict[Partition, int] = {}
    groups = [distinct.setdefault(d.partition, len(distinct)) for d in documents]
    partitions = [fill(partition, partition_fields) for partition in distinct]
    names, texts, counts = _fields(documents)
    blocks = range(0, len(texts), _BLOCK)
    codes = np.concatenate([number(texts[start : start + _BLOCK]) for start in blocks])
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


def _fields(documents: Sequence[Document]) -> tuple[list[str], list[str], list[int]]:
    """Return names and texts of all fields, and how many each document has, one at least."""
    names: list[str] = []
    texts: list[str] = []
    counts: list[int] = []
    for document in documents:
        fields = document.fields
        if isinstance(fields, str) or not fields:
            names.append("")
            texts.append(fields if isinstance(fields, str) else "")
            counts.append(1)
        else:
            names += fields
            texts += fields.values()
            counts.append(len(fields))
    return names, texts, counts


def _lengths(ends: Ints) -> Ints:
    """Return how many entries lie before each end, after the one before it."""
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    lengths[1:] -= 1
    return lengths
