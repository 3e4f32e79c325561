"""Fusion: one ranked list from many, each on a scale of its own.

Each list is rank-normalised into [0, 1]: its first hit has 1.0 and the value falls with the
place. Lists are merged by the weighted mean over the providers that answered, so that agreement
counts and a hit that all put first has 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from .errors import InvalidQuery

__all__ = ["DEMOTION", "FUSIONS", "FusionName", "normalise"]

FusionName = Literal["reciprocal", "linear", "minmax"]
DEMOTION = 0.56
"""What a hit keeps of its fused score where no term of the query is in it.

Above 11/20, so that the first hit of a provider that answers by meaning passes the tenth of one
that answers by words; low enough that five irrelevant hits cost two per cent of recall@10.
"""

_K = 10.0  # 60, the constant of Cormack et al. 2009, was measured poor where one list is weaker


def _reciprocal(scores: Sequence[float]) -> list[float]:
    """(k + 1) / (k + rank), k = 10: reciprocal rank with its top moved to 1."""
    return [(_K + 1) / (_K + rank) for rank in range(1, len(scores) + 1)]


def _linear(scores: Sequence[float]) -> list[float]:
    """(n - i) / n for place i from 0."""
    return [(len(scores) - place) / len(scores) for place in range(len(scores))]


def _minmax(scores: Sequence[float]) -> list[float]:
    """Scores scaled so that the best has 1 and the worst of the list 0; equal scores have 1."""
    if not scores:
        return []
    low, high = min(scores) / 2, max(scores) / 2  # the difference of halves cannot overflow
    return [(score / 2 - low) / (high - low) if high > low else 1.0 for score in scores]


FUSIONS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "reciprocal": _reciprocal,
    "linear": _linear,
    "minmax": _minmax,
}


def normalise(fusion: str, scores: Sequence[float]) -> list[float]:
    """Each place's value in [0, 1], best first.

    Raises:
        InvalidQuery: No fusion has that name.

    >>> normalise("linear", [9.0, 3.0])
    [1.0, 0.5]
    """
    if fusion not in FUSIONS:
        raise InvalidQuery(f"unknown fusion {fusion!r}; use one of {', '.join(FUSIONS)}")
    return FUSIONS[fusion](scores)
