"""From providers' lists to one: copies collapse, ranks fuse, every number explains itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import overload

from .errors import InvalidQuery
from .fusion import DEMOTION, normalise
from .records import MemoryRecord
from .relevance import Bm25Reranker, Reranker, lexical_relevance
from .results import Explanation, Hit, Source
from .text import same_content_key
from .times import now

__all__ = ["Listing", "Merged", "merge", "merge_recent", "resolve_reranker"]


@dataclass(frozen=True, slots=True)
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

_Share = tuple[str, float, int, float]
"""A list's name and weight, the hit's rank in it, and what it adds to the sum."""


@dataclass(slots=True)
class _Group:
    """Copies of one memory, and the one that is shown."""

    copies: list[tuple[Hit, Source]]
    shown: MemoryRecord

    def add(self, copies: Sequence[tuple[Hit, Source]]) -> None:
        """Take more copies; shown is the newest full copy under our id, else the newest at all."""
        self.copies.extend(copies)
        best = max(
            self.copies,
            key=lambda copy: (not copy[1].native_ids, copy[0].record.updated_at),
        )
        self.shown = best[0].record

    def sources(self) -> tuple[Source, ...]:
        if len(self.copies) == 1:
            return (self.copies[0][1],)
        shown = self.shown
        return tuple(
            replace(source, stale=True)
            if hit.record.id == shown.id and hit.record.updated_at < shown.updated_at
            else source
            for hit, source in self.copies
        )

    def relevance(self) -> float | None:
        if len(self.copies) == 1:
            return self.copies[0][0].relevance
        given = [hit.relevance for hit, _ in self.copies if hit.relevance is not None]
        return max(given, default=None)


class Merged(Sequence[Hit]):
    """Hits in their order, built when they are looked at.

    Args:
        order: Places of the pool, best first.
        relevance: Of each place.
        build: Makes the hit of a place.
    """

    def __init__(
        self, order: Sequence[int], relevance: Sequence[float], build: Callable[[int], Hit]
    ) -> None:
        self._order = order
        self._relevance = relevance
        self._build = build

    def best(self, limit: int, min_relevance: float) -> list[Hit]:
        """The first hits whose relevance is at least `min_relevance`."""
        wanted = (p for p in self._order if self._relevance[p] >= min_relevance)
        return [self._build(place) for place in islice(wanted, limit)]

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        if isinstance(index, slice):
            return [self._build(place) for place in self._order[index]]
        return self._build(self._order[index])


def _nothing(place: int) -> Hit:
    raise IndexError(place)


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
    moment = now()
    groups = _collapse(listings, alias)
    if not groups:
        return Merged([], [], _nothing)
    shown = [group.shown for group in groups]
    relevance = _relevance(text, groups, shown)
    places = _places(groups)
    lists = [(li.provider, li.weight, places.get(li.provider, [])) for li in listings]
    if rerank is not None:
        lists.append(("rerank", rerank_weight, _reranked(rerank, text, shown)))
    shares: list[list[_Share]] = [[] for _ in groups]
    for name, weight, ranked in lists:
        values = normalise(fusion, [score for _, score in ranked])
        for rank, ((place, _), value) in enumerate(zip(ranked, values, strict=True), start=1):
            shares[place].append((name, weight, rank, weight * value))
    weights = sum(weight for _, weight, _ in lists)
    keeps = [1.0 if share > 0 else demotion for share in relevance]
    scores = [
        sum(share for _, _, _, share in of_group) / weights * kept
        for of_group, kept in zip(shares, keeps, strict=True)
    ]

    def build(place: int) -> Hit:
        score = scores[place]
        explain = partial(_explained, score, weights, keeps[place], fusion, shares[place])
        sources = groups[place].sources()
        return Hit(shown[place], score, relevance[place], sources=sources, arithmetic=explain)

    return Merged(_order(shown, scores, moment), relevance, build)


def _explained(
    score: float, weights: float, keeps: float, fusion: str, shares: Sequence[_Share]
) -> Explanation:
    told = f"fused: sum / {weights:g} (weights of all that answered)"
    if keeps != 1.0:
        told += f" x {keeps:g} (no term of the query matches)"
    parts = (
        Explanation(share, f"{name}: weight {weight:g} x {fusion} of rank {rank}")
        for name, weight, rank, share in shares
    )
    return Explanation(score, told, tuple(parts))


def merge_recent(listings: Sequence[Listing], alias: Alias | None = None) -> Merged:
    """Merge the answers to blank text: the latest updated first, no fusion, no score."""
    groups = _collapse(listings, alias)
    shown = [group.shown for group in groups]
    zeros = [0.0] * len(groups)
    told = partial(Explanation, 0.0, "blank text: ordered by updated_at")

    def build(place: int) -> Hit:
        return Hit(shown[place], 0.0, 0.0, sources=groups[place].sources(), arithmetic=told)

    return Merged(_order(shown, zeros, now()), zeros, build)


def _order(shown: Sequence[MemoryRecord], scores: Sequence[float], moment: datetime) -> list[int]:
    """Places by falling score, then recency, then id."""
    recency = [min(record.updated_at, moment) for record in shown]
    order = sorted(range(len(shown)), key=lambda place: shown[place].id)
    order.sort(key=recency.__getitem__, reverse=True)
    order.sort(key=scores.__getitem__, reverse=True)
    return order


def _collapse(listings: Sequence[Listing], alias: Alias | None) -> list[_Group]:
    """Group copies: by id, then by equal content within one scope."""
    by_id: dict[str, _Group] = {}
    for listing in listings:
        for rank, hit in enumerate(listing.hits, start=1):
            native = hit.native_ids
            ours = alias(listing.provider, hit) if alias is not None else None
            if ours is not None:
                native = native or (hit.record.id,)
            source = Source(listing.provider, rank, hit.score, hit.record.id, native)
            if ours is not None and ours != hit.record.id:
                hit = replace(hit, record=hit.record.model_copy(update={"id": ours}))
            group = by_id.get(hit.record.id)
            if group is None:
                by_id[hit.record.id] = _Group([(hit, source)], hit.record)
            else:
                group.add([(hit, source)])
    by_content: dict[tuple[object, str], _Group] = {}
    for group in by_id.values():
        key = (group.shown.scope.key(), same_content_key(group.shown.content))
        same = by_content.setdefault(key, group)
        if same is not group:
            same.add(group.copies)
    return list(by_content.values())


def _relevance(text: str, groups: Sequence[_Group], shown: Sequence[MemoryRecord]) -> list[float]:
    """What the providers say, and the stack's own measure where they say nothing."""
    given = [group.relevance() for group in groups]
    if all(value is not None for value in given):
        return [value for value in given if value is not None]
    computed = lexical_relevance(text, shown)
    return [own if value is None else value for value, own in zip(given, computed, strict=True)]


def _places(groups: Sequence[_Group]) -> dict[str, list[tuple[int, float]]]:
    """Per provider the groups that it returned, each at its best place, with its own score."""
    found: dict[str, dict[int, tuple[int, float]]] = {}
    for place, group in enumerate(groups):
        for _, source in group.copies:
            of_provider = found.setdefault(source.provider, {})
            best = of_provider.get(place)
            if best is None or source.rank < best[0]:
                of_provider[place] = (source.rank, source.score)
    return {
        provider: [
            (place, score)
            for place, (_, score) in sorted(of_provider.items(), key=lambda item: item[1][0])
        ]
        for provider, of_provider in found.items()
    }


def _reranked(
    rerank: Reranker, text: str, shown: Sequence[MemoryRecord]
) -> list[tuple[int, float]]:
    scores = rerank(text, shown)
    places = [place for place in range(len(shown)) if scores[place] > 0]
    places.sort(key=lambda place: (-scores[place], shown[place].id))
    return [(place, scores[place]) for place in places]
