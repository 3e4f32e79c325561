"""How well a text matches, apart from every other signal, for providers that do not say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from memsheaf.index import content_words, get_analyzer, terms
from memsheaf.index.impacts import inverse_frequency

from .records import MemoryRecord

__all__ = [
    "Bm25Reranker",
    "Reranker",
    "inverse_frequency",
    "lexical_relevance",
    "query_terms",
    "searchable",
    "term_set",
]


Reranker = Callable[[str, Sequence[MemoryRecord]], list[float]]
"""Scores a pool of records for a query; 0 where nothing matches."""


def searchable(record: MemoryRecord) -> str:
    """The text of a record that a query can match: its content and tags."""
    return f"{record.content} {' '.join(record.tags)}" if record.tags else record.content


def lexical_relevance(
    text: str, records: Sequence[MemoryRecord], analyzer: str = "english"
) -> list[float]:
    """The share of the query's idf that each record matches, in [0, 1].

    Σ idf of the query's content words in the record ÷ Σ idf of all of them, with statistics of the
    pool; a term that no record holds counts with the highest idf, see `inverse_frequency`.

    Args:
        text: The query.
        records: The pool.
        analyzer: The name of the text analysis.

    Returns:
        One value per record.
    """
    wanted = query_terms(text, analyzer)
    if not wanted or not records:
        return [0.0] * len(records)
    found = [wanted & term_set(searchable(record), analyzer) for record in records]
    frequency = Counter(term for some in found for term in some)
    rarity = {term: inverse_frequency(len(records), frequency[term]) for term in wanted}
    whole = math.fsum(rarity.values())
    return [min(1.0, math.fsum(rarity[t] for t in some) / whole) if some else 0.0 for some in found]


def term_set(text: str, analyzer: str = "english") -> frozenset[str]:
    """The terms of a text."""
    return frozenset(terms(get_analyzer(analyzer), text))


def query_terms(text: str, analyzer: str = "english") -> frozenset[str]:
    """The terms of a query: those of its content words."""
    return term_set(content_words(text), analyzer)


class Bm25Reranker:
    """Orders a pool by rank-bm25's BM25Plus, as one more list of the fusion."""

    name = "bm25"

    def __call__(self, text: str, records: Sequence[MemoryRecord]) -> list[float]:
        """A score per record; 0 where no term matches."""
        from rank_bm25 import BM25Plus  # costs 0.4 s, so only where it is used

        rules = get_analyzer("english")
        query = terms(rules, content_words(text))
        corpus = [terms(rules, searchable(record)) for record in records]
        wanted = set(query)
        if not any(corpus) or not wanted:
            return [0.0] * len(records)
        scores = BM25Plus(corpus).get_scores(query)
        return [
            float(score) if wanted.intersection(document) else 0.0
            for score, document in zip(scores, corpus, strict=True)
        ]
