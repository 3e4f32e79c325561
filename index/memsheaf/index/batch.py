"""Documents on their way into the index: cut, numbered, and laid out in flat arrays."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

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


@dataclass(slots=True)
class Columns:
    """Documents taken apart, no two of one id; the collector of garbage has nothing to walk over.

    Attributes:
        ids: key per document.
        partitions: the distinct partitions.
        groups: per document the place of its partition in `partitions`.
        weights: score factor per document.
        counts: number of fields per document, one at least.
        names: names of all fields.
        texts: their texts.
    """

    ids: list[str] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def last(self) -> "Columns":
        """Return the last document of each id, at its own place."""
        keep = sorted({id: n for n, id in enumerate(self.ids)}.values())
        ends = list(accumulate(self.counts))
        fields = [i for n in keep for i in range(ends[n] - self.counts[n], ends[n])]
        return Columns(
            [self.ids[n] for n in keep],
            self.partitions,
            [self.groups[n] for n in keep],
            [self.weights[n] for n in keep],
            [self.counts[n] for n in keep],
            [self.names[i] for i in fields],
            [self.texts[i] for i in fields],
        )


def take_apart(documents: Iterable[Document], partition_fields: int) -> Columns:
    """Return the columns of documents; the last of an id wins.

    Raises:
        ValueError: a weight or a partition is none.
    """
    made = Columns()
    numbers: dict[Partition, int] = {}
    for document in documents:
        partition, weight, fields = document.partition, document.weight, document.fields
        if not 0 < weight < math.inf:
            raise ValueError(f"weight of {document.id!r} must be above 0")
        group = numbers.get(partition)
        if group is None:
            made.partitions.append(fill(partition, partition_fields))
            group = numbers[partition] = len(numbers)
        made.ids.append(document.id)
        made.groups.append(group)
        made.weights.append(weight)
        if isinstance(fields, str) or not fields:
            made.counts.append(1)
            made.names.append("")
            made.texts.append(fields if isinstance(fields, str) else "")
        else:
            made.counts.append(len(fields))
            made.names.extend(fields)
            made.texts.extend(fields.values())
    return made if len(set(made.ids)) == len(made.ids) else made.last()


def analyze(
    columns: Columns,
    number: Callable[[Sequence[str]], npt.NDArray[np.int32]],
    field_weights: Mapping[str, float],
) -> Batch:
    """Return documents, one at least, as a batch.

    Args:
        columns: the documents.
        number: gives the term numbers of texts in order, with a break behind each.
        field_weights: weight by field name; 1 for all others.
    """
    texts = columns.texts
    blocks = range(0, len(texts), _BLOCK)
    codes = np.concatenate([number(texts[start : start + _BLOCK]) for start in blocks])
    ends = (codes == BREAK).nonzero()[0]
    words = _lengths(ends)
    after: Ints = np.array(columns.counts).cumsum()
    doc_ends = ends[after - 1]
    real = np.ones(len(codes), bool)
    real[doc_ends] = False
    weighted, factors = words.astype(np.float64), None
    if any(field_weights.get(name, 1.0) != 1.0 for name in set(columns.names)):
        each = np.array([field_weights.get(name, 1.0) for name in columns.names])
        factors = np.repeat(each, words + 1)[real]
        weighted *= each
    return Batch(
        columns.ids,
        columns.partitions,
        np.array(columns.groups, np.int64),
        np.array(columns.weights, np.float64),
        np.add.reduceat(weighted, after - columns.counts),
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
