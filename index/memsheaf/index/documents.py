"""The values that cross the boundary of the text index."""

from collections.abc import Mapping
from dataclasses import dataclass

Partition = tuple[str | None, ...]
"""Up to four names, outermost first (user, agent, namespace, session); None is absent."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text to index.

    Attributes:
        id: key of the document; adding it again replaces it.
        fields: the text, or texts by field name (see `field_weights` of the index).
        partition: whose document it is; shorter tuples are filled with None.
        weight: factor on the document's scores, above 0.
    """

    id: str
    fields: Mapping[str, str] | str
    partition: Partition = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class IndexHit:
    """One found document.

    Attributes:
        id: key of the document.
        score: BM25 score, higher is better.
        relevance: share of the query's idf that the document matches, in [0, 1].
    """

    id: str
    score: float
    relevance: float


def fill(partition: Partition, size: int) -> Partition:
    """Return `partition` at full length; empty names are absent.

    Raises:
        ValueError: it has more than `size` fields.
    """
    if len(partition) > size:
        raise ValueError(f"partition has {len(partition)} fields, this index takes {size}")
    return tuple(name or None for name in partition) + (None,) * (size - len(partition))
