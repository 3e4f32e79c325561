"""From providers' lists to one: ranks fuse, every number explains itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import overload

from .errors import InvalidQuery
from .fusion import DEMOTION, normalise
from .pool import Alias, Listing, Pool
from .relevance import Bm25Reranker, Reranker, lexical_relevance
from .results import Explanation, Hit
from .times import now

__all__ = ["Listing", "Merged", "merge", "merge_recent", "resolve_reranker"]

_Ranked = tuple[str, float, Sequence[int], Sequence[float]]
"""A list of the fusion: its name, its weight, places of the pool by rank, and their values."""


class Merged(Sequence[Hit]):
    """Hits by falling score, ties by recency, then id; built when they are looked at.

    Args:
        pool: The memories.
        scores: One per memory.
        relevance: One per memory.
        explain: Makes the arithmetic of a place of the pool.
    """

    def __init__(
        self,
        pool: Pool,
        scores: Sequence[float],
        relevance: Sequence[float],
        explain: Callable[[int], Explanation],
    ) -> None:
        self._pool = pool
        self._scores = scores
        self._relevance = relevance
        self._explain = explain

    def best(self, limit: int, min_relevance: float) -> list[Hit]:
        """The first hits whose relevance is at least `min_relevance`."""
        scores = self._scores
        wanted: Sequence[int] = range(len(self))
        if min_relevance > 0:
            wanted = [place for place in wanted if self._relevance[place] >= min_relevance]
        if len(wanted) > limit > 0:  # ties matter only as far as the cut
            least = sorted([scores[place] for place in wanted], reverse=True)[limit - 1]
            wanted = [place for place in wanted if scores[place] >= least]
        return self._built(self._ordered(wanted)[:limit])

    def __len__(self) -> int:
        return len(self._scores)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        order = self._ordered(range(len(self)))
        if isinstance(index, slice):
            return self._built(order[index])
        return self._built([order[index]])[0]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self[:])

    def _ordered(self, places: Iterable[int]) -> list[int]:
        hits, scores, moment = self._pool.hits, self._scores, now()

        def by_recency(place: int) -> tuple[object, ...]:
            return (scores[place], min(hits[place].record.updated_at, moment))

        order = sorted(places, key=lambda place: hits[place].record.id)
        order.sort(key=by_recency, reverse=True)
        return order

    def _built(self, places: Sequence[int]) -> list[Hit]:
        return [
            Hit(
                self._pool.hits[place].record,
                self._scores[place],
                self._relevance[place],
                (),
                sources,
                partial(self._explain, place),
            )
            for place, sources in zip(places, self._pool.sources(places), strict=True)
        ]


def resolve_reranker(rerank: str | Reranker | None) -> Reranker | None:
    """The reranker of a name; a function is taken as it is.

    Raises:
        InvalidQuery: No reranker has that name.
    """
    if rerank is None or callable(rerank):
        return rerank
    if rerank != "bm25":
        raise InvalidQuery('rerank must be "bm25" or a function')
    return Bm25Reranker()


def merge(
    text: str,
    listings: Sequence[Listing],
    *,
    fusion: str = "reciprocal",
    demotion: float = DEMOTION,
    rerank: Reranker | None = None,
    rerank_weight: float = 1.0,
    alias: Alias | None = None,
) -> Merged:
    """Fuse lists into one.

    Args:
        text: The query.
        listings: One per provider that answered, empty answers included.
        fusion: How ranks become values, see `FUSIONS`.
        demotion: What a hit whose relevance is 0 keeps of its fused score.
        rerank: Scores the merged pool as one more list.
        rerank_weight: The weight of that list.
        alias: Our id of a foreign record, where the stack knows it.

    Returns:
        Hits by falling score; ties by recency, then id.
    """
    pool = Pool(listings, alias)
    relevance = _relevance(text, pool)
    lists: list[_Ranked] = []
    for listing, row in zip(listings, pool.places, strict=True):
        hits, places = listing.hits, row
        if len({*row}) < len(row):  # each place once, where it is best
            places = [*dict.fromkeys(row)]
            hits = [hits[row.index(place)] for place in places]
        values = normalise(fusion, [hit.score for hit in hits])
        lists.append((listing.provider, listing.weight, places, values))
    if rerank is not None and pool.hits:
        lists.append(("rerank", rerank_weight, *_reranked(rerank, text, pool, fusion)))
    sums, weights = [0.0] * len(pool.hits), 0.0
    for _, weight, ranked, each in lists:
        weights += weight  # as the sums are: from Python 3.12 on, sum() rounds otherwise
        for place, value in zip(ranked, each, strict=True):
            sums[place] += weight * value
    scores = [
        total / weights * (1.0 if share > 0 else demotion)
        for total, share in zip(sums, relevance, strict=True)
    ]

    def explain(place: int) -> Explanation:
        kept = 1.0 if relevance[place] > 0 else demotion
        return _explained(place, scores[place], kept, fusion, lists)

    return Merged(pool, scores, relevance, explain)


def merge_recent(listings: Sequence[Listing], alias: Alias | None = None) -> Merged:
    """Merge the answers to blank text: the latest updated first, no fusion, no score."""
    pool = Pool(listings, alias)
    zeros = [0.0] * len(pool.hits)
    told = Explanation(0.0, "blank text: ordered by updated_at")
    return Merged(pool, zeros, zeros, lambda place: told)


def _explained(
    place: int, score: float, kept: float, fusion: str, lists: Sequence[_Ranked]
) -> Explanation:
    """The tree of one score: a branch per list that holds the place."""
    parts = []
    for name, weight, places, values in lists:
        if place in places:
            index = places.index(place)
            told = f"{name}: weight {weight:g} x {fusion} of rank {index + 1}"
            parts.append(Explanation(weight * values[index], told))
    weights = sum(weight for _, weight, _, _ in lists)
    told = f"fused: sum / {weights:g} (weights of all that answered)"
    if kept != 1.0:
        told += f" x {kept:g} (no term of the query matches)"
    return Explanation(score, told, tuple(parts))


def _relevance(text: str, pool: Pool) -> list[float]:
    """What the providers say, and the stack's own measure where they say nothing."""
    given = pool.relevance
    if None not in given:
        return given  # type: ignore[return-value]
    computed = lexical_relevance(text, [hit.record for hit in pool.hits])
    return [own if value is None else value for value, own in zip(given, computed, strict=True)]


def _reranked(
    rerank: Reranker, text: str, pool: Pool, fusion: str
) -> tuple[list[int], list[float]]:
    """The places that the reranker gives a score above 0, by rank, and their values."""
    records = [hit.record for hit in pool.hits]
    try:
        scores = [float(score) for score in rerank(text, records)]
    except Exception as error:
        raise InvalidQuery(f"rerank failed: {type(error).__name__}") from error
    if len(scores) != len(records):
        raise InvalidQuery(f"rerank must return one number per record, {len(records)} of them")
    places = [place for place in range(len(records)) if scores[place] > 0]
    places.sort(key=lambda place: (-scores[place], records[place].id))
    return places, normalise(fusion, [scores[place] for place in places])
