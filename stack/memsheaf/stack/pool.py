"""From providers' lists to one pool: each memory once, with every copy of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .records import MemoryRecord
from .results import Hit, Source
from .text import last_words, same_content_key

__all__ = ["Alias", "Listing", "Pool"]


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


class Pool:
    """The memories of some lists: copies are joined by id, then by equal content within a scope.

    Args:
        listings: One per provider.
        alias: Our id of a foreign record, where the stack knows it.

    Attributes:
        hits: Of each memory the copy that is shown: the newest full one under our id, else the
            newest at all.
        relevance: The largest that a provider says of each, None where none does.
        places: Of each list, the places of its hits in the pool.
    """

    def __init__(self, listings: Sequence[Listing], alias: Alias | None = None) -> None:
        self.listings = listings
        self._lists = [listing.hits for listing in listings]
        if alias is not None:
            self._lists = [
                [_renamed(hit, alias(listing.provider, hit)) for hit in listing.hits]
                for listing in listings
            ]
        self.hits: list[Hit] = []
        self.relevance: list[float | None] = []
        self.places = self._joined_by_id()
        self._join_by_content()

    def _joined_by_id(self) -> list[list[int]]:
        by_id: dict[str, int] = {}
        rows = []
        for hits in self._lists:
            row = []
            for hit in hits:
                new = len(self.hits)
                place = by_id.setdefault(hit.record.id, new)
                if place == new:
                    self.hits.append(hit)
                    self.relevance.append(hit.relevance)
                else:
                    self._join(place, hit, hit.relevance)
                row.append(place)
            rows.append(row)
        return rows

    def _join_by_content(self) -> None:
        texts = [hit.record.content for hit in self.hits]
        ends = {text: last_words(text) for text in {*texts}}
        if len({*ends.values()}) == len(texts):
            return  # equal contents end alike, and no two do
        hits, relevance = self.hits, self.relevance
        self.hits, self.relevance = [], []
        by_end: dict[str, int] = {}
        by_content: dict[tuple[object, str], int] = {}
        moved = []
        for hit, said, text in zip(hits, relevance, texts, strict=True):
            new = len(self.hits)
            place = by_end.setdefault(ends[text], new)
            if place != new:
                record, other = hit.record, self.hits[place].record
                if other.content != text or other.scope.key() != record.scope.key():
                    by_content.setdefault(_content_key(other), place)
                    place = by_content.setdefault(_content_key(record), new)
            if place == new:
                self.hits.append(hit)
                self.relevance.append(said)
            else:
                self._join(place, hit, said)
            moved.append(place)
        if len(self.hits) < len(hits):
            self.places = [[moved[place] for place in row] for row in self.places]

    def _join(self, place: int, hit: Hit, relevance: float | None) -> None:
        """Add a copy of the memory at a place."""
        if _is_better(hit, self.hits[place]):
            self.hits[place] = hit
        said = self.relevance[place]
        if said is None or (relevance is not None and relevance > said):
            self.relevance[place] = relevance

    def sources(self, places: Sequence[int]) -> list[tuple[Source, ...]]:
        """Every copy of the memories at some places, in the order of the lists."""
        found: dict[int, list[Source]] = {place: [] for place in places}
        for listing, hits, row in zip(self.listings, self._lists, self.places, strict=True):
            for index, place in enumerate(row):
                if place in found:
                    hit, came_as = hits[index], listing.hits[index].record.id
                    stale = _is_stale(hit.record, self.hits[place].record)
                    found[place].append(
                        Source(
                            listing.provider, index + 1, hit.score, came_as, hit.native_ids, stale
                        )
                    )
        return [tuple(found[place]) for place in places]


def _is_better(hit: Hit, held: Hit) -> bool:
    """Whether of two copies the first is to be shown: a full one, then the newer."""
    if (not hit.native_ids) is (not held.native_ids):
        return hit.record.updated_at > held.record.updated_at
    return not hit.native_ids


def _is_stale(record: MemoryRecord, shown: MemoryRecord) -> bool:
    if record is shown:
        return False
    return record.id == shown.id and record.updated_at < shown.updated_at


def _content_key(record: MemoryRecord) -> tuple[object, str]:
    return (record.scope.key(), same_content_key(record.content))


def _renamed(hit: Hit, ours: str | None) -> Hit:
    """The hit of a foreign record under our id, where the stack knows one."""
    if ours is None:
        return hit
    record, native = hit.record, hit.native_ids or (hit.record.id,)
    if ours != record.id:
        record = record.model_copy(update={"id": ours})
    return replace(hit, record=record, native_ids=native)
