"""From providers' lists to one: copies collapse, ranks fuse, every number explains itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import overload

from .errors import InvalidQuery
from .fusion import DEMOTION, normalise
from .records import MemoryRecord
from .relevance import Bm25Reranker, Reranker, lexical_relevance
from .results import Explanation, Hit, Source
from .text import last_word, same_content_key
from .times import now

__all__ = ["Listing", "Merged", "merge", "merge_recent", "resolve_reranker"]


@dataclass(slots=True)
class Listing:
    """One provider's checked answer.

    Attributes:
        provider: Its name.
        weight: Its weight.
        hits: Best first.
    """

    provider: str
    weight: float
    hits: Sequence[Hit]


Alias = Callable[[str, Hit], str | None]
"""Our id of a provider's hit, where the stack knows it by another."""

_Copy = tuple[str, int, Hit, str]
"""A copy of a memory: the provider, its rank there, the hit under our id, the id it came with."""

_Ranked = tuple[str, float, list[tuple[int, int, float]]]
"""A list of the fusion: its name, its weight, and (rank, place in the pool, score) by rank."""


class Merged(Sequence[Hit]):
    """Hits by falling score, ties by recency, then id; built when they are looked at.

    Args:
        shown: The records of the pool.
        scores: One per record.
        relevance: One per record.
        build: Makes the hit of a place of the pool.
    """

    def __init__(
        self,
        shown: Sequence[MemoryRecord],
        scores: Sequence[float],
        relevance: Sequence[float],
        build: Callable[[int], Hit],
    ) -> None:
        self._shown = shown
        self._scores = scores
        self._relevance = relevance
        self._build = build
        self._moment = now()

    def best(self, limit: int, min_relevance: float) -> list[Hit]:
        """The first hits whose relevance is at least `min_relevance`."""
        wanted = [p for p, share in enumerate(self._relevance) if share >= min_relevance]
        wanted.sort(key=self._scores.__getitem__, reverse=True)
        if len(wanted) > limit > 0:  # ties matter only as far as the cut
            least = self._scores[wanted[limit - 1]]
            wanted = [p for p in wanted if self._scores[p] >= least]
        return [self._build(place) for place in self._ordered(wanted)[:limit]]

    def __len__(self) -> int:
        return len(self._shown)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        order = self._ordered(range(len(self)))
        if isinstance(index, slice):
            return [self._build(place) for place in order[index]]
        return self._build(order[index])

    def __iter__(self) -> Iterator[Hit]:
        return map(self._build, self._ordered(range(len(self))))

    def _ordered(self, places: Iterable[int]) -> list[int]:
        shown = self._shown
        order = sorted(places, key=lambda place: shown[place].id)
        order.sort(key=lambda place: min(shown[place].updated_at, self._moment), reverse=True)
        order.sort(key=self._scores.__getitem__, reverse=True)
        return order


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
    pool = _collapse(listings, alias)
    shown = [copies[0][2].record if len(copies) == 1 else _shown(copies) for copies in pool]
    relevance = _relevance(text, pool, shown)
    lists = _ranked(listings, pool)
    if rerank is not None and shown:
        lists.append(("rerank", rerank_weight, _reranked(rerank, text, shown)))
    sums = [0.0] * len(pool)
    for _, weight, ranked in lists:
        values = normalise(fusion, [score for _, _, score in ranked])
        for (_, place, _), value in zip(ranked, values, strict=True):
            sums[place] += weight * value
    weights = sum(weight for _, weight, _ in lists)
    scores = [
        total / weights * (1.0 if share > 0 else demotion)
        for total, share in zip(sums, relevance, strict=True)
    ]

    def explain(place: int) -> Explanation:
        kept = 1.0 if relevance[place] > 0 else demotion
        return _explained(place, scores[place], kept, fusion, lists)

    def build(place: int) -> Hit:
        return Hit(
            shown[place],
            scores[place],
            relevance[place],
            sources=_sources(pool[place], shown[place]),
            arithmetic=partial(explain, place),
        )

    return Merged(shown, scores, relevance, build)


def _explained(
    place: int, score: float, kept: float, fusion: str, lists: Sequence[_Ranked]
) -> Explanation:
    """The tree of one score: a branch per list that holds the place."""
    parts = []
    for name, weight, ranked in lists:
        values = normalise(fusion, [score for _, _, score in ranked])
        for rank, ((_, at, _), value) in enumerate(zip(ranked, values, strict=True), start=1):
            if at == place:
                told = f"{name}: weight {weight:g} x {fusion} of rank {rank}"
                parts.append(Explanation(weight * value, told))
    weights = sum(weight for _, weight, _ in lists)
    told = f"fused: sum / {weights:g} (weights of all that answered)"
    if kept != 1.0:
        told += f" x {kept:g} (no term of the query matches)"
    return Explanation(score, told, tuple(parts))


def merge_recent(listings: Sequence[Listing], alias: Alias | None = None) -> Merged:
    """Merge the answers to blank text: the latest updated first, no fusion, no score."""
    pool = _collapse(listings, alias)
    shown = [_shown(copies) for copies in pool]
    zeros = [0.0] * len(pool)
    told = partial(Explanation, 0.0, "blank text: ordered by updated_at")

    def build(place: int) -> Hit:
        sources = _sources(pool[place], shown[place])
        return Hit(shown[place], 0.0, 0.0, sources=sources, arithmetic=told)

    return Merged(shown, zeros, zeros, build)


def _collapse(listings: Sequence[Listing], alias: Alias | None) -> list[list[_Copy]]:
    """Group copies: by id, then by equal content within one scope."""
    by_id: dict[str, list[_Copy]] = {}
    for listing in listings:
        provider = listing.provider
        for rank, hit in enumerate(listing.hits, start=1):
            came_as = hit.record.id
            if alias is not None:
                hit = _renamed(hit, alias(provider, hit))
            copy = (provider, rank, hit, came_as)
            group = by_id.get(hit.record.id)
            if group is None:
                by_id[hit.record.id] = [copy]
            else:
                group.append(copy)
    groups = list(by_id.values())
    first: dict[str, int] = {}  # equal contents end in the same word, which costs little
    alike: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        record = group[0][2].record if len(group) == 1 else _shown(group)
        before = first.setdefault(last_word(record.content), place)
        if before != place:
            alike.setdefault(before, [before]).append(place)
    if not alike:
        return groups
    for places in alike.values():
        _join_same(groups, places)
    return [group for group in groups if group]


def _join_same(groups: list[list[_Copy]], places: Sequence[int]) -> None:
    """Move copies of equal content within one scope into the first group that holds it."""
    records = [_shown(groups[place]) for place in places]
    alike = len({record.content for record in records}) == 1  # then there is nothing to normalise
    first: dict[tuple[object, str], int] = {}
    for place, record in zip(places, records, strict=True):
        content = record.content if alike else same_content_key(record.content)
        kept = first.setdefault((record.scope.key(), content), place)
        if kept != place:
            groups[kept] += groups[place]
            groups[place] = []


def _renamed(hit: Hit, ours: str | None) -> Hit:
    """The hit of a foreign record under our id, where the stack knows one."""
    if ours is None:
        return hit
    record, native = hit.record, hit.native_ids or (hit.record.id,)
    if ours != record.id:
        record = record.model_copy(update={"id": ours})
    return replace(hit, record=record, native_ids=native)


def _shown(copies: Sequence[_Copy]) -> MemoryRecord:
    """The newest full copy under our id, else the newest at all."""
    if len(copies) == 1:
        return copies[0][2].record
    best = max(copies, key=lambda copy: (not copy[2].native_ids, copy[2].record.updated_at))
    return best[2].record


def _sources(copies: Sequence[_Copy], shown: MemoryRecord) -> tuple[Source, ...]:
    return tuple(
        Source(
            provider,
            rank,
            hit.score,
            came_as,
            hit.native_ids,
            hit.record.id == shown.id and hit.record.updated_at < shown.updated_at,
        )
        for provider, rank, hit, came_as in copies
    )


def _relevance(
    text: str, pool: Sequence[Sequence[_Copy]], shown: Sequence[MemoryRecord]
) -> list[float]:
    """What the providers say, and the stack's own measure where they say nothing."""
    given = [
        copies[0][2].relevance
        if len(copies) == 1
        else max((c[2].relevance for c in copies if c[2].relevance is not None), default=None)
        for copies in pool
    ]
    if None not in given:
        return [value for value in given if value is not None]
    computed = lexical_relevance(text, shown)
    return [own if value is None else value for value, own in zip(given, computed, strict=True)]


def _ranked(listings: Sequence[Listing], pool: Sequence[Sequence[_Copy]]) -> list[_Ranked]:
    """Per provider the memories that it returned, each at its best place, with its own score."""
    found: dict[str, list[tuple[int, int, float]]] = {listing.provider: [] for listing in listings}
    for place, copies in enumerate(pool):
        for provider, rank, hit, _ in copies:
            found[provider].append((rank, place, hit.score))
    lists: list[_Ranked] = []
    for listing in listings:
        ranked = sorted(found[listing.provider])
        places = {entry[1]: entry for entry in reversed(ranked)}
        if len(places) < len(ranked):
            ranked = sorted(places.values())
        lists.append((listing.provider, listing.weight, ranked))
    return lists


def _reranked(
    rerank: Reranker, text: str, shown: Sequence[MemoryRecord]
) -> list[tuple[int, int, float]]:
    try:
        scores = [float(score) for score in rerank(text, shown)]
    except Exception as error:
        raise InvalidQuery(f"rerank failed: {type(error).__name__}") from error
    if len(scores) != len(shown):
        raise InvalidQuery(f"rerank must return one number per record, {len(shown)} of them")
    places = [place for place in range(len(shown)) if scores[place] > 0]
    places.sort(key=lambda place: (-scores[place], shown[place].id))
    return [(rank, place, scores[place]) for rank, place in enumerate(places, start=1)]
