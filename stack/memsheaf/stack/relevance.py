"""How well a text matches, apart from every other signal, for providers that do not say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence, Set

from memsheaf.index import content_words, get_analyzer, terms

from .records import MemoryRecord

__all__ = [
    "Bm25Reranker",
    "Reranker",
    "lexical_relevance",
    "query_terms",
    "searchable",
    "share_of_idf",
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
    pool; a term that no record holds counts with the highest idf. idf is
    ln(1 + (N - df + ½) / (df + ½)), as in BM25 (Robertson and Zaragoza 2009), always above 0.

    Args:
        text: The query.
        records: The pool.
        analyzer: The name of the text analysis.

    Returns:
        One value per record.
    """
    return share_of_idf(text, [term_set(searchable(r), analyzer) for r in records], analyzer)


def term_set(text: str, analyzer: str = "english") -> frozenset[str]:
    """The terms of a text."""
    return frozenset(terms(get_analyzer(analyzer), text))


def query_terms(text: str, analyzer: str = "english") -> frozenset[str]:
    """The terms of a query: those of its content words."""
    return term_set(content_words(text), analyzer)


def share_of_idf(text: str, held: Sequence[Set[str]], analyzer: str = "english") -> list[float]:
    """`lexical_relevance` for texts whose terms are known.

    Args:
        text: The query.
        held: The terms of each text.
        analyzer: The name of the text analysis that made them.
    """
    wanted = query_terms(text, analyzer)
    if not wanted or not held:
        return [0.0] * len(held)
    found = [wanted & each for each in held]
    frequency = Counter(term for some in found for term in some)
    size = len(held)
    idf = {t: math.log(1 + (size - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in wanted}
    whole = math.fsum(idf.values())
    return [min(1.0, math.fsum(idf[t] for t in some) / whole) if some else 0.0 for some in found]


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
