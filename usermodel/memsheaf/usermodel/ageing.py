"""A profile stays bounded: what is least useful ends first, and what ended longest ago goes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from .profile import Line, LineKind, LineOrigin

__all__ = ["AGED", "MAX_LINES", "bounded"]

MAX_LINES = 500
"""The most current lines that were derived, and the most that ended."""
AGED = "aged: the profile holds as many lines as it may"
_MENTION = timedelta(days=30)  # what a further mention counts for
_MENTIONS = 12  # of them count
_INSTRUCTION = timedelta(days=365)


def bounded(lines: Iterable[Line], now: datetime, most: int = MAX_LINES) -> tuple[Line, ...]:
    """Lines of which at most so many derived ones are current, and so many ended.

    Of the current ones those age first that were not said for the longest time, where each
    further mention counts like 30 days, and an instruction like a year. They end, and are kept as
    history, with `AGED` as reason. Of the ended ones those go that ended longest ago; what the
    user corrected goes last, since it keeps the correction from being overruled. A line that the
    user wrote never ages.

    Args:
        lines: All lines of a profile.
        now: When what ages ends; aware UTC.
        most: The bound.
    """
    kept = {line.id: line for line in lines}
    current = [
        line for line in kept.values() if line.is_current and line.origin is LineOrigin.DERIVED
    ]
    for line in heapq.nsmallest(len(current) - most, current, key=_usefulness):
        kept[line.id] = replace(line, ended_at=max(now, line.last_seen), reason=AGED)
    ended = [line for line in kept.values() if line.ended_at is not None]
    if len(ended) > most:
        own = {line.id for line in kept.values() if line.origin is LineOrigin.USER}
        ended.sort(key=lambda line: (line.superseded_by in own, line.ended_at, _number(line)))
        for line in ended[: len(ended) - most]:
            del kept[line.id]
        kept = {
            line.id: line
            if line.superseded_by is None or line.superseded_by in kept
            else replace(line, superseded_by=None)
            for line in kept.values()
        }
    return tuple(kept.values())


def _usefulness(line: Line) -> tuple[datetime, int]:
    worth = line.last_seen + min(line.times - 1, _MENTIONS) * _MENTION
    return worth + (_INSTRUCTION if line.kind is LineKind.INSTRUCTION else timedelta()), _number(
        line
    )


def _number(line: Line) -> int:
    return int(line.id[1:])
