"""What is known of a user: lines, each with the items that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = ["Line", "LineKind", "LineOrigin", "Profile"]


class LineKind(StrEnum):
    """What a line says about the user."""

    PREFERENCE = "preference"
    GOAL = "goal"
    HABIT = "habit"
    FACT = "fact"
    INSTRUCTION = "instruction"


class LineOrigin(StrEnum):
    """Who wrote a line: a deriver, or the user with a correction, which outranks derivation."""

    DERIVED = "derived"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One statement about a user; a line that ended stays as history.

    Attributes:
        id: Unique within the user's profile and never given twice, for instance `L4`.
        kind: What it says.
        text: The statement, one line.
        confidence: How sure its deriver is, 0 to 1.
        first_seen: When the user first said it; aware UTC.
        last_seen: When the user last said it; aware UTC.
        times: How many items said it.
        sources: Ids of items that it came from, oldest first; a line that the user wrote has
            none, and of very many the first and the newest are kept.
        origin: Who wrote it.
        subject: What it tells, where there can be one answer only, for instance `home`; a newer
            line of the same subject supersedes it.
        superseded_by: The id of the line that replaced it.
        ended_at: When it was superseded or retracted; None while it is current.
        ended_by: Ids of the items that ended it.
        reason: Why it was retracted.
    """

    id: str
    kind: LineKind
    text: str
    confidence: float
    first_seen: datetime
    last_seen: datetime
    times: int = 1
    sources: tuple[str, ...] = ()
    origin: LineOrigin = LineOrigin.DERIVED
    subject: str | None = None
    superseded_by: str | None = None
    ended_at: datetime | None = None
    ended_by: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether it was neither superseded nor retracted."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True)
class Profile:
    """All lines of a user, those that ended included, in the order of their ids.

    Attributes:
        user_id: Whose profile it is.
        version: How often it changed; 0 for a user of whom nothing is known.
        lines: Current and ended lines.
        last_id: The number of the last line id that was given.

    >>> Profile("mira").current
    ()
    """

    user_id: str
    version: int = 0
    lines: tuple[Line, ...] = ()
    last_id: int = 0

    @property
    def current(self) -> tuple[Line, ...]:
        """The lines that hold now."""
        return tuple(line for line in self.lines if line.is_current)

    def find(self, line_id: str) -> Line | None:
        """The line of an id, or None."""
        return next((line for line in self.lines if line.id == line_id), None)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)
