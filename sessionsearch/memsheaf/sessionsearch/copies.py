"""The same text in several conversations takes one place."""

from __future__ import annotations

from collections.abc import Sequence

from .indexes import Candidate

__all__ = ["Placed", "without_copies"]

Placed = tuple[Candidate, list[Candidate]]
"""A candidate, and those of the same text in other conversations."""


def without_copies(found: Sequence[Candidate]) -> list[Placed]:
    """Put candidates of one text and different conversations into one place, that of the best.

    The second time that a conversation says a text joins the second time of the others.
    """
    if len({each.same_text for each in found}) == len(found):
        return [(each, []) for each in found]
    places: list[Placed] = []
    by_text: dict[int, list[Placed]] = {}
    times: dict[tuple[int, int], int] = {}
    for each in found:
        said = (each.same_text, each.conversation)
        nth = times[said] = times.get(said, -1) + 1
        alike = by_text.setdefault(each.same_text, [])
        if nth < len(alike):
            alike[nth][1].append(each)
        else:
            alike.append((each, []))
            places.append(alike[-1])
    return places
