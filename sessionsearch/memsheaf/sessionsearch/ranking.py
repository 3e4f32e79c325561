"""How items are ranked: three levels of evidence, the turn, its neighbours and the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from memsheaf.stack import InvalidQuery

__all__ = ["PRESETS", "SessionRanking", "ranking_of"]

_LARGE, _SMALL = 1e9, 1e-9
_RANGES = (
    ("k1", 0.0, _LARGE),
    ("b", 0.0, 1.0),
    ("neighbours", 0.0, 1.0),
    ("reach", _SMALL, _LARGE),
    ("prior", 0.0, _LARGE),
    ("tau", _SMALL, _LARGE),
)
"""What settings may be; bounds on scores rely on it."""


@dataclass(frozen=True, slots=True)
class SessionRanking:
    """Settings of a ranking. Context counts for short turns and fades for long ones.

    A turn's own BM25 gains f times the score of the turn before it, .8 f of the turn after, and
    the squares of these at distance two; f = neighbours reach / (reach + mean words of a turn in
    the conversation). And it gains prior tau / (tau + words of the turn) times the largest score
    times the session's BM25, scaled to [0, 1] over the sessions. (The largest score is that of the
    conversations that were asked for; lengths above 128 words are rounded to 7 per cent.)

    Attributes:
        k1, b: Of BM25. None lets them follow the data: with g = m / (reach + m), m the mean words
            of a turn in the scope, k1 is .5 + .9 g and b is .9 g. Short turns want a low b, long
            ones do not.
        neighbours: What the turn before may lend at the most.
        reach: Mean words of a turn at which neighbours lend half of that.
        prior: What the session may lend at the most, as a share of the largest score.
        tau: Words of a turn at which the session lends half of that.
        roles, types: Factors on the scores of items of a role or type; 1 for all others.

    Raises:
        InvalidQuery: A setting is outside its range: b and neighbours lie in [0, 1], reach and tau
            are at least 1e-9, the others, and factors, not below 0; nothing is above 1e9.

    >>> SessionRanking(neighbours=2.0)
    Traceback (most recent call last):
    ...
    memsheaf.stack.errors.InvalidQuery: the ranking's neighbours must lie in [0.0, 1.0]
    """

    k1: float | None = None
    b: float | None = None
    neighbours: float = 0.8
    reach: float = 40.0
    prior: float = 0.6
    tau: float = 300.0
    roles: Mapping[str, float] = field(default_factory=lambda: {"assistant": 0.9, "tool": 0.9})
    types: Mapping[str, float] = field(default_factory=lambda: {"reasoning": 0.9})

    def __post_init__(self) -> None:
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if value is None and name in ("k1", "b"):
                continue
            if not (_is_number(value) and least <= value <= most):
                raise InvalidQuery(f"the ranking's {name} must lie in [{least}, {most}]")
            object.__setattr__(self, name, float(value))
        for name in ("roles", "types"):
            factors = getattr(self, name)
            if not isinstance(factors, Mapping) or not all(
                isinstance(key, str) and _is_number(factor) and 0 <= factor <= _LARGE
                for key, factor in factors.items()
            ):
                raise InvalidQuery(f"the ranking's {name} must be factors in [0.0, {_LARGE}]")
            own = {key: float(factor) for key, factor in factors.items()}
            object.__setattr__(self, name, own)  # what is checked is not the caller's any more

    def saturation(self, mean: float) -> tuple[float, float]:
        """k1 and b of BM25 where turns have so many words in the mean."""
        g = mean / (self.reach + mean)
        return (
            0.5 + 0.9 * g if self.k1 is None else self.k1,
            0.9 * g if self.b is None else self.b,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


PRESETS: Mapping[str, SessionRanking] = {
    "default": SessionRanking(),
    "raxol": SessionRanking(k1=1.2, b=0.75, neighbours=0.0, prior=0.0, roles={}, types={}),
}


def ranking_of(name: str | SessionRanking | None) -> SessionRanking:
    """A ranking by its name; None is the default.

    Raises:
        InvalidQuery: There is none of that name.
    """
    if isinstance(name, SessionRanking):
        return name
    found = PRESETS.get(name or "default")
    if found is None:
        raise InvalidQuery(f"no ranking is called so; use one of {', '.join(PRESETS)}")
    return found
