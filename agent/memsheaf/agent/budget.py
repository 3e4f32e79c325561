"""One budget for the parts of a block: fair shares, and sizes in characters or tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memsheaf.stack import UsageError

from .tokens import Tokenizer, estimate_tokens

__all__ = ["MAX_CHARACTERS", "MAX_TOKENS", "Section", "Sizes", "share_out"]

MAX_CHARACTERS = 2_000
"""Characters of a block at the most, where neither size is given."""
MAX_TOKENS = 500
"""Tokens of a block at the most, where neither size is given."""

_LONGEST_TOKEN = 40  # characters; no tokenizer comes near it on average
_SHORT = 1_000  # characters of a line whose estimate is kept
_kept_estimate = lru_cache(maxsize=2_048)(estimate_tokens)


@dataclass(frozen=True, slots=True)
class Section:
    """The items of one part of a block.

    Attributes:
        costs: What each item costs, in order.
        in_order: Whether an item is of use only after all before it.
    """

    costs: Sequence[float]
    in_order: bool = False


def share_out(sections: Sequence[Section], total: float) -> list[list[int]]:
    """Share a budget max-min fairly, item by item.

    The section that has had least takes its next item, until nothing fits (progressive filling,
    Bertsekas and Gallager 1992, 6.5.2): small sections are met, the others get equal shares.

    Args:
        sections: What there is to choose from.
        total: What may be used.

    Returns:
        The places of the chosen items, for each section.

    >>> share_out([Section([1, 1]), Section([2] * 9), Section([3] * 9)], 14)
    [[0, 1], [0, 1, 2], [0, 1]]
    """
    chosen: list[list[int]] = [[] for _ in sections]
    used = [0.0] * len(sections)
    following = [0] * len(sections)
    left = total
    while waiting := [n for n, s in enumerate(sections) if following[n] < len(s.costs)]:
        poorest = min(waiting, key=used.__getitem__)
        section, place = sections[poorest], following[poorest]
        following[poorest] += 1
        if section.costs[place] <= left:
            chosen[poorest].append(place)
            used[poorest] += section.costs[place]
            left -= section.costs[place]
        elif section.in_order:
            following[poorest] = len(section.costs)
    return chosen


class Sizes:
    """What a text costs, in one number, and how much a block may cost.

    With one limit the cost is in its unit. With both it is the larger share of the two
    (dominant resource fairness, Ghodsi et al. 2011), so that both hold.

    Args:
        characters: The most characters.
        tokens: The most tokens.
        tokenizer: Counts the tokens of a text.

    Raises:
        UsageError: A limit is no whole number.
    """

    def __init__(
        self,
        characters: int | None = None,
        tokens: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        for name, value in (("max_characters", characters), ("max_tokens", tokens)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise UsageError(f"{name} must be a whole number")
        if characters is None and tokens is None:
            characters, tokens = MAX_CHARACTERS, MAX_TOKENS
        self._characters, self._tokens = characters, tokens
        self._count = _estimate if tokenizer is None else tokenizer
        self._known: dict[str, float] = {}
        given = [limit for limit in (tokens, characters) if limit is not None]
        self.total = given[0] if min(given) > 0 else 0

    def cost(self, text: str) -> float:
        """The cost of a text; infinite where it is far too long to be worth counting."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._cost(text)
        return known

    def _cost(self, text: str) -> float:
        if self._tokens is None:
            return len(text)
        by_length = len(text) / _LONGEST_TOKEN
        if self._characters is not None:
            by_length = len(text) * self._tokens / max(1, self._characters)
        return math.inf if by_length > self.total else max(by_length, self._count(text))


def _estimate(text: str) -> int:
    """The estimate; lines of a profile come again with the next message."""
    return _kept_estimate(text) if len(text) <= _SHORT else estimate_tokens(text)
