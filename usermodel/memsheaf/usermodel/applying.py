"""Operations meet a profile: what is supported is applied, the rest is told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from memsheaf.sessionsearch import Item
from memsheaf.stack.text import clean

from .ageing import AGED, bounded
from .operations import Add, Confirm, Operation, Rejection, Retract, Supersede
from .profile import Line, LineKind, LineOrigin, Profile
from .said import said
from .similar import statement_key

__all__ = ["MAX_LINE", "apply", "one_line"]

MAX_LINE = 500
"""The most characters of a line."""
_MAX_SUBJECT = 100
_MAX_SOURCES = 100
_DOUBT_LEFT = 0.8  # of each confirmation


def apply(
    profile: Profile, operations: Iterable[Operation], items: Sequence[Item], now: datetime
) -> tuple[Profile, tuple[Rejection, ...]]:
    """Apply operations in their order.

    Sources that are not items of the batch, said by the user, are dropped, and an operation
    without a source is rejected. A statement that a current line holds already confirms it. What
    contradicts a line that the user wrote, or was said before the line that it contradicts, is
    kept as history and does not become current. Near-duplicate lines are merged. Of more derived
    lines than a profile may hold the least useful end, see `bounded`.

    Args:
        profile: The profile before.
        operations: What a deriver returned.
        items: The items that it read.
        now: No time in the profile is later; aware UTC.

    Returns:
        The profile after, with a new version if it changed, and what was rejected.
    """
    work = _Work(profile, items, now)
    rejections: list[Rejection] = []
    for operation in operations:
        try:
            work.apply(operation)
        except _Rejected as reason:
            rejections.append(Rejection(operation, str(reason)))
    work.merge()
    lines = bounded(work.lines.values(), now)
    if lines != profile.lines:
        profile = Profile(profile.user_id, profile.version + 1, lines, work.last_id)
    return profile, tuple(rejections)


def one_line(text: str) -> str:
    """A line's text: white space folded, what cannot be stored replaced."""
    return " ".join(clean(text).split())


class _Rejected(Exception):
    """Why an operation is not applied."""


class _Work:
    """A profile while operations change it."""

    def __init__(self, profile: Profile, items: Sequence[Item], now: datetime) -> None:
        self.lines = {line.id: line for line in profile.lines}
        self.last_id = profile.last_id
        self._ids: dict[str, list[str]] = {}  # of the lines that say the same
        for line in profile.lines:
            self._ids.setdefault(statement_key(line.text), []).append(line.id)
        self._moments = {
            item.id: min(item.created_at or item.recorded_at or now, now)
            for item in items
            if said(item) is not None
        }

    def apply(self, operation: Operation) -> None:
        """Apply one, or raise `_Rejected`."""
        if not isinstance(operation, Add | Confirm | Supersede | Retract):
            raise _Rejected("it is not an operation")
        sources = self._checked_sources(operation.sources)
        if isinstance(operation, Confirm):
            self._confirm(self._current(operation.line_id), sources)
        elif isinstance(operation, Retract):
            self._retract(self._current(operation.line_id), sources, operation.reason)
        else:
            rival = None
            if isinstance(operation, Supersede):
                rival = self._successor(operation.line_id)
            self._state(self._drafted(operation, sources), rival)

    def merge(self) -> None:
        """Merge current lines that say the same into the oldest, or into the user's own."""
        groups: dict[str, list[Line]] = {}
        for line in self.lines.values():
            if line.is_current:
                groups.setdefault(statement_key(line.text), []).append(line)
        for twins in groups.values():
            kept = next((twin for twin in twins if twin.origin is LineOrigin.USER), twins[0])
            for twin in twins:
                if twin.id != kept.id:
                    kept = _seen_again(kept, twin)
                    self._end(twin, twin.last_seen, (), superseded_by=kept.id)
            self.lines[kept.id] = kept

    def _state(self, draft: Line, replaced: Line | None) -> None:
        """Bring a statement in: it confirms, replaces, is outranked, or is new."""
        key = statement_key(draft.text)
        twin, aged = self._find_twin(key), self._find_aged(key)
        rivals = self._find_rivals(key, replaced, (draft, twin or aged))
        if twin is not None:
            self._confirm_twin(_seen_again(twin, draft), draft, rivals)
            return
        ahead = next((rival for rival in rivals if not self._yields(rival, draft)), None)
        if ahead is None:
            kept = self._revive(aged, draft) if aged is not None else self._insert(draft)
        else:
            kept = ahead.id
        for rival in rivals:
            if self._yields(rival, draft):
                self._end(rival, draft.last_seen, draft.sources, superseded_by=kept)
        if ahead is None:
            return
        for old in self._saying(key):  # said again what is outranked: no second line
            if old.superseded_by == ahead.id:
                self.lines[old.id] = _seen_again(old, draft)
                return
        ended = max(draft.last_seen, ahead.first_seen)
        self._insert(replace(draft, superseded_by=ahead.id, ended_at=ended))

    def _confirm_twin(self, twin: Line, draft: Line, rivals: Sequence[Line]) -> None:
        """A current line says it already; of it and what it contradicts one stays."""
        self.lines[twin.id] = twin
        for rival in rivals:
            if self.lines[twin.id].is_current and rival.id != twin.id:
                ended, better = (rival, twin) if self._yields(rival, twin) else (twin, rival)
                self._end(ended, draft.last_seen, draft.sources, superseded_by=better.id)

    def _confirm(self, line: Line, sources: tuple[str, ...]) -> None:
        self.lines[line.id] = _seen_again(line, self._with_times(line, sources))

    def _retract(self, line: Line, sources: tuple[str, ...], reason: str) -> None:
        moment = max(self._moments[source] for source in sources)
        if line.origin is LineOrigin.USER:
            raise _Rejected("the user wrote this line; only the user retracts it")
        if moment < line.last_seen:
            raise _Rejected("the line was said again later")
        because = one_line(reason)[:MAX_LINE] if isinstance(reason, str) else ""
        self._end(replace(line, reason=because or None), moment, sources)

    def _end(
        self,
        line: Line,
        moment: datetime,
        sources: tuple[str, ...],
        superseded_by: str | None = None,
    ) -> None:
        self.lines[line.id] = replace(
            line, ended_at=moment, ended_by=sources, superseded_by=superseded_by
        )

    def _insert(self, draft: Line) -> str:
        self.last_id += 1
        line = replace(draft, id=f"L{self.last_id}")
        self.lines[line.id] = line
        self._ids.setdefault(statement_key(line.text), []).append(line.id)
        return line.id

    def _saying(self, key: str) -> list[Line]:
        return [self.lines[line_id] for line_id in self._ids.get(key, ())]

    def _find_aged(self, key: str) -> Line | None:
        """The line that said the same until it only aged."""
        aged = (r for r in self._saying(key) if r.reason == AGED and not r.is_current)
        return next(aged, None)

    def _revive(self, aged: Line, draft: Line) -> str:
        """A line that only aged holds again, with its counts, when it is said again."""
        self.lines[aged.id] = replace(_seen_again(aged, draft), ended_at=None, reason=None)
        return aged.id

    def _yields(self, rival: Line, draft: Line) -> bool:
        """Whether a line makes way: not the user's own, and not one that was said later."""
        return rival.origin is LineOrigin.DERIVED and rival.last_seen <= draft.last_seen

    def _find_twin(self, key: str) -> Line | None:
        return next((line for line in self._saying(key) if line.is_current), None)

    def _find_rivals(
        self, key: str, replaced: Line | None, alike: Sequence[Line | None]
    ) -> list[Line]:
        """The current lines that a statement contradicts: what it replaces, and its subject's."""
        subjects = {line.subject for line in alike if line is not None} - {None}
        found = {r.id: r for r in self.lines.values() if r.is_current and r.subject in subjects}
        if replaced is not None:
            found[replaced.id] = replaced
        if not found and (correction := self._find_correction(key)) is not None:
            found[correction.id] = correction
        return sorted(found.values(), key=lambda line: line.origin is LineOrigin.DERIVED)

    def _find_correction(self, key: str) -> Line | None:
        """The user's line that took the place of a statement, or of the line that did."""
        for line in self._saying(key):
            better = self._successor(line.id)
            if better is not None and better.origin is LineOrigin.USER:
                return better
        return None

    def _known(self, line_id: object) -> Line:
        line = self.lines.get(line_id) if isinstance(line_id, str) else None
        if line is None:
            raise _Rejected("the profile has no such line")
        return line

    def _current(self, line_id: object) -> Line:
        line = self._known(line_id)
        if not line.is_current:
            raise _Rejected("the line has ended")
        return line

    def _successor(self, line_id: object) -> Line | None:
        """The current line in the place of one: it may have been replaced in the meantime."""
        line: Line | None = self._known(line_id)
        while line is not None and not line.is_current:
            line = self.lines.get(line.superseded_by or "")
        return line

    def _checked_sources(self, sources: object) -> tuple[str, ...]:
        named = sources if isinstance(sources, list | tuple | set | frozenset) else ()
        known = {s for s in named if isinstance(s, str) and s in self._moments}
        if not known:
            raise _Rejected("no source is an item of the batch that the user said")
        return tuple(source for source in self._moments if source in known)

    def _drafted(self, operation: Add | Supersede, sources: tuple[str, ...]) -> Line:
        text, subject = operation.text, operation.subject
        if not isinstance(text, str) or not (text := one_line(text)):
            raise _Rejected("its text is blank")
        if len(text) > MAX_LINE:
            raise _Rejected(f"its text is longer than {MAX_LINE} characters")
        try:
            kind = LineKind(operation.kind)
        except ValueError:
            raise _Rejected(f"its kind is not one of {', '.join(LineKind)}") from None
        sure = operation.confidence
        if isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1:
            raise _Rejected("its confidence is not a number from 0 to 1")
        if subject is not None:
            subject = one_line(subject).casefold() if isinstance(subject, str) else ""
            if not subject or len(subject) > _MAX_SUBJECT:
                raise _Rejected(f"its subject does not have 1 to {_MAX_SUBJECT} characters")
        moments = [self._moments[source] for source in sources]
        return Line(
            id="",
            kind=kind,
            text=text,
            confidence=float(sure),
            first_seen=min(moments),
            last_seen=max(moments),
            times=len(sources),
            sources=sources,
            subject=subject,
        )

    def _with_times(self, line: Line, sources: tuple[str, ...]) -> Line:
        moments = [self._moments[source] for source in sources]
        return replace(
            line,
            sources=sources,
            times=len(sources),
            first_seen=min(moments),
            last_seen=max(moments),
        )


def _seen_again(line: Line, other: Line) -> Line:
    """A line with the counts, sources and dates of another that says the same.

    Each new source takes a fifth off the doubt: confidence = 1 - (1 - confidence) · 0.8ⁿ.
    """
    fresh = tuple(source for source in other.sources if source not in line.sources)
    times = other.times - (len(other.sources) - len(fresh))
    sources = line.sources + fresh
    if len(sources) > _MAX_SOURCES:
        sources = (sources[0], *sources[1 - _MAX_SOURCES :])
    sure = max(line.confidence, other.confidence)
    return replace(
        line,
        confidence=round(1 - (1 - sure) * math.pow(_DOUBT_LEFT, times), 4),
        times=line.times + times,
        sources=sources,
        first_seen=min(line.first_seen, other.first_seen),
        last_seen=max(line.last_seen, other.last_seen),
        subject=line.subject or other.subject,
    )
