"""Engines that know nothing of memories: text analysis, BM25, vectors."""

from .analysis import Analyzer, TextAnalyzer, get_analyzer, register_analyzer, terms
from .bm25 import BM25Index
from .documents import Document, IndexHit, Partition
from .errors import IndexingError, SnapshotError
from .function_words import content_words
from .matches import Matches
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
