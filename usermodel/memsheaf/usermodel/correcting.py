"""What the user changes in the profile: a correction outranks what is derived."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memsheaf.sessionsearch import Item
from memsheaf.stack import InvalidRecord, NotFound

from .ageing import MAX_LINES
from .applying import MAX_LINE, one_line
from .profile import Line, LineKind, LineOrigin, Profile
from .similar import statement_key

__all__ = ["corrected", "current_line", "holds_statement", "without_statement"]


def corrected(
    profile: Profile, line_id: str | None, text: str, kind: LineKind | str | None, now: datetime
) -> tuple[Profile, Line]:
    """A profile in which the user's line takes the place of another, or is new.

    Args:
        profile: The profile before.
        line_id: The current line that is wrong; None to add one.
        text: What is right, one line.
        kind: Its kind; that of the wrong line, or a fact, where it is not given.
        now: Aware UTC.

    Returns:
        The profile after, and the user's line.

    Raises:
        NotFound: There is no such current line.
        InvalidRecord: The text is blank or too long, or the kind is unknown.
    """
    text = one_line(text) if isinstance(text, str) else ""
    if not 0 < len(text) <= MAX_LINE:
        raise InvalidRecord(f"a line must have 1 to {MAX_LINE} characters")
    own = sum(line.is_current and line.origin is LineOrigin.USER for line in profile.lines)
    if own >= MAX_LINES:
        raise InvalidRecord(f"a user may write {MAX_LINES} lines; forget some of them first")
    wrong = None if line_id is None else current_line(profile, line_id)
    try:
        kind = LineKind(kind or (wrong.kind if wrong else LineKind.FACT))
    except ValueError:
        raise InvalidRecord(f"a line's kind is one of {', '.join(LineKind)}") from None
    number = profile.last_id + 1
    made = Line(
        id=f"L{number}",
        kind=kind,
        text=text,
        confidence=1.0,
        first_seen=now,
        last_seen=now,
        origin=LineOrigin.USER,
        subject=wrong.subject if wrong else None,
    )
    key = statement_key(text)
    lines = tuple(
        replace(line, ended_at=now, superseded_by=made.id)
        if line.is_current and (line is wrong or statement_key(line.text) == key)
        else line
        for line in profile.lines
    )
    return Profile(profile.user_id, profile.version + 1, (*lines, made), number), made


def without_statement(profile: Profile, line: Line) -> Profile:
    """A profile without a line, and without every other line that says the same."""
    key = statement_key(line.text)
    gone = {each.id for each in profile.lines if statement_key(each.text) == key}
    kept = tuple(
        replace(each, superseded_by=None) if each.superseded_by in gone else each
        for each in profile.lines
        if each.id not in gone
    )
    return replace(profile, version=profile.version + 1, lines=kept)


def holds_statement(text: str, item: Item) -> bool:
    """Whether an item's words hold those of a line."""
    return f" {statement_key(text)} " in f" {statement_key(item.text)} "


def current_line(profile: Profile, line_id: str) -> Line:
    """The current line of an id.

    Raises:
        NotFound: There is none.
    """
    line = profile.find(line_id)
    if line is None or not line.is_current:
        raise NotFound(f"the profile has no current line {line_id!r}; see profile(user_id).current")
    return line
