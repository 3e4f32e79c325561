"""Engines that know nothing of memories: text analysis, BM25, vectors.

The vectors are imported when they are first used: who searches text does without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .analysis import Analyzer, TextAnalyzer, get_analyzer, register_analyzer, terms
from .bm25 import BM25Index
from .documents import Document, IndexHit, Partition
from .errors import IndexingError, SnapshotError
from .function_words import content_words
from .matches import Matches

if TYPE_CHECKING:
    from .vectors import VectorHit, VectorIndex

__all__ = [
    "Analyzer",
    "BM25Index",
    "Document",
    "IndexHit",
    "IndexingError",
    "Matches",
    "Partition",
    "SnapshotError",
    "TextAnalyzer",
    "VectorHit",
    "VectorIndex",
    "content_words",
    "get_analyzer",
    "register_analyzer",
    "terms",
]


def __getattr__(name: str) -> Any:
    if name not in ("VectorHit", "VectorIndex"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import vectors

    return getattr(vectors, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
