"""Ranking profiles: how relevance, recency, importance and use make one score.

Ages below zero (a time in the future) count as zero, and evergreen records do not age.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

from .errors import ConfigError
from .records import MemoryRecord
from .results import Explanation

__all__ = ["PROFILES", "Match", "RankingProfile", "decay", "ranking_profile"]

_HOUR = 3600.0
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class Match:
    """What an index says of a record: its BM25 score and its relevance in [0, 1]."""

    bm25: float
    relevance: float


class RankingProfile(Protocol):
    """A named formula."""

    @property
    def name(self) -> str:
        """What a configuration calls it."""

    @property
    def k1(self) -> float | None:
        """BM25's saturation, None where it has no wish."""

    @property
    def b(self) -> float | None:
        """BM25's length normalisation, None where it has no wish."""

    def explain(
        self, match: Match, record: MemoryRecord, now: datetime, query_tags: Collection[str] = ()
    ) -> Explanation:
        """The score, larger is better, with its parts."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """The order of the index: its BM25 score alone."""

    name: str = "default"
    k1: float | None = None
    b: float | None = None

    def explain(
        self, match: Match, record: MemoryRecord, now: datetime, query_tags: Collection[str] = ()
    ) -> Explanation:
        """The BM25 score."""
        return Explanation(match.bm25, "BM25")


@dataclass(frozen=True, slots=True)
class Raxol:
    """BM25 (k1 1.2, b 0.75) + 0.3 e^(-days since last access / 30) + 0.5 per shared tag."""

    name: str = "raxol"
    k1: float | None = 1.2
    b: float | None = 0.75

    def explain(
        self, match: Match, record: MemoryRecord, now: datetime, query_tags: Collection[str] = ()
    ) -> Explanation:
        """The sum of text, recency and tags."""
        days = 0.0 if record.evergreen else _age(record.last_accessed_at, now) / _DAY
        shared = len(set(record.tags) & {tag.lower() for tag in query_tags})
        return _sum(
            Explanation(match.bm25, "BM25"),
            Explanation(0.3 * math.exp(-days / 30), "recency of the last access"),
            Explanation(0.5 * shared, "tags in common"),
        )


@dataclass(frozen=True, slots=True)
class Nous:
    """0.5 relevance + 0.3 importance + 0.2 e^(-0.01 hours since last access)."""

    name: str = "nous"
    k1: float | None = None
    b: float | None = None
    relevance: float = 0.5
    importance: float = 0.3
    recency: float = 0.2

    def explain(
        self, match: Match, record: MemoryRecord, now: datetime, query_tags: Collection[str] = ()
    ) -> Explanation:
        """The weighted sum, not divided by the weights."""
        fresh = decay(1.0, record, now, rate=0.01)
        return _sum(
            Explanation(self.relevance * _unit(match.relevance), "relevance"),
            Explanation(self.importance * record.importance, "importance"),
            Explanation(self.recency * fresh, "recency of the last access"),
        )


@dataclass(frozen=True, slots=True)
class Nexum:
    """Mean of relevance 0.6, recency 0.15, importance 0.15 and usage 0.1.

    Recency halves every 30 days since creation; usage is n / (n + 4) after n recalls.
    """

    name: str = "nexum"
    k1: float | None = None
    b: float | None = None

    def explain(
        self, match: Match, record: MemoryRecord, now: datetime, query_tags: Collection[str] = ()
    ) -> Explanation:
        """The weighted mean; every part lies in [0, 1]."""
        days = 0.0 if record.evergreen else _age(record.created_at, now) / _DAY
        uses = record.access_count
        return _sum(
            Explanation(0.6 * _unit(match.relevance), "relevance"),
            Explanation(0.15 * 2 ** (-days / 30), "recency of creation"),
            Explanation(0.15 * record.importance, "importance"),
            Explanation(0.1 * uses / (uses + 4), "usage"),
        )


PROFILES: Mapping[str, RankingProfile] = MappingProxyType(
    {profile.name: profile for profile in (Relevance(), Raxol(), Nous(), Nexum())}
)
"""The profiles by name."""


def ranking_profile(value: str | RankingProfile | None) -> RankingProfile:
    """The profile of a name, or the one given; None is the default.

    Raises:
        ConfigError: There is none of that name.

    >>> ranking_profile("raxol").k1
    1.2
    """
    if value is None:
        return PROFILES["default"]
    if not isinstance(value, str):
        return value
    try:
        return PROFILES[value]
    except KeyError as error:
        known = ", ".join(PROFILES)
        raise ConfigError(f"unknown ranking profile {value!r}; use one of {known}") from error


def decay(score: float, record: MemoryRecord, now: datetime, *, rate: float = 0.001) -> float:
    """Score e^(-rate hours), hours since the last access; evergreen records keep their score."""
    if record.evergreen:
        return score
    return score * math.exp(-rate * _age(record.last_accessed_at, now) / _HOUR)


def _age(moment: datetime, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds())


def _sum(*parts: Explanation) -> Explanation:
    return Explanation(math.fsum(part.value for part in parts), "sum of", parts)


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))
