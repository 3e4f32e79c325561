"""The `rules` deriver: what a user says of themselves in plain English, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memsheaf.sessionsearch import Item
from memsheaf.stack.text import same_content_key

from .operations import Add, Confirm, Operation, Retract, Supersede
from .profile import LineKind, Profile
from .rules_statements import MAX_LINE, Correction, Statement, read
from .said import said

__all__ = ["RulesDeriver"]


class RulesDeriver:
    """Reads statements in the first person: preferences, identity, goals, habits, corrections.

    It works offline, in English, sentence by sentence, and says nothing where it is not sure.

    >>> from memsheaf.sessionsearch import Item, ItemOrigin
    >>> said = Item("c", 0, "message", "I moved from Berlin to Lisbon.", "user", ItemOrigin.USER)
    >>> [operation.text for operation in RulesDeriver().derive(Profile("mira"), [said])]
    ['Lives in Lisbon']
    """

    name = "rules"

    def derive(self, profile: Profile, items: Sequence[Item]) -> Sequence[Operation]:
        """Operations for what the items say; one statement never takes more than one."""
        batch = _Batch(profile)
        for item in items:
            for statement in read(said(item) or ""):
                if isinstance(statement, Correction):
                    batch.correct(statement, item.id)
                else:
                    batch.take(statement, item.id)
        return tuple(batch.operations)


@dataclass(slots=True)
class _Entry:
    """A line that is current while the batch is read, from the profile or from the batch."""

    kind: LineKind
    text: str
    subject: str | None
    confidence: float
    line_id: str | None = None
    place: int | None = None  # of its operation
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = same_content_key(self.text)


class _Batch:
    """The operations so far, and what is current after them."""

    def __init__(self, profile: Profile) -> None:
        self.operations: list[Operation] = []
        self._entries = [
            _Entry(line.kind, line.text, line.subject, line.confidence, line.id)
            for line in profile.current
        ]
        self._subjects = {entry.subject for entry in self._entries}  # those of the profile
        self._last: tuple[_Entry, str, str] | None = None

    def take(self, statement: Statement, item_id: str) -> None:
        """One statement: it confirms a line, ends one, or is a new one."""
        if known := self._known(statement):
            self._confirm(known, item_id)
            self._last = (known, statement.value, item_id)
            return
        ended = self._ended(statement) or self._vaguer(statement.text)
        if statement.only_known and not ended and not self._knows(statement.subject):
            return
        new = _Entry(statement.kind, statement.text, statement.subject, statement.confidence)
        self._put(new, ended, item_id)
        self._last = (new, statement.value, item_id)

    def correct(self, correction: Correction, item_id: str) -> None:
        """The one line that holds the wrong word gets the right one."""
        if correction.old is None:
            if self._last is None or self._last[2] != item_id:
                return
            wrong, old = self._last[0], self._last[1]
            if not old or wrong.subject is None or old[0].isupper() != correction.new[0].isupper():
                return
        else:
            old = correction.old
            holding = [entry for entry in self._entries if _word(old).search(entry.text)]
            if len(holding) != 1:
                return
            wrong = holding[0]
        text = _word(old).sub(lambda _: correction.new, wrong.text, count=1)
        if text == wrong.text or len(text) > MAX_LINE:
            return
        right = _Entry(wrong.kind, text, wrong.subject, wrong.confidence)
        self._put(right, [wrong], item_id)
        self._last = (right, correction.new, item_id)

    def _put(self, new: _Entry, ended: Sequence[_Entry], item_id: str) -> None:
        """A new line, in the place of those that it ends."""
        for entry in ended:
            self._entries.remove(entry)
            if entry.line_id is None:
                self._join(entry, new)
        known = [entry for entry in ended if entry.line_id is not None]
        if known:
            new.subject = new.subject or known[0].subject
        if new.subject is not None:
            self._entries = [entry for entry in self._entries if entry.subject != new.subject]
        fields = (new.kind, new.text, new.confidence, (item_id,), new.subject)
        new.place = len(self.operations)
        if known:
            self.operations.append(Supersede(known[0].line_id or "", *fields))
        else:
            self.operations.append(Add(*fields))
        for entry in known[1:]:
            self.operations.append(Retract(entry.line_id or "", (item_id,), f"since: {new.text}"))
        self._entries.append(new)

    def _join(self, ended: _Entry, new: _Entry) -> None:
        """A line of this batch has no id yet; a shared subject lets the new line supersede it."""
        if ended.subject is not None and ended.subject in self._subjects:
            new.subject = ended.subject
            return
        new.subject = new.subject or ended.subject or f"line:{ended.text.lower()}"
        for place, operation in enumerate(self.operations):
            if isinstance(operation, Add | Supersede) and (
                place == ended.place
                or (ended.subject is not None and operation.subject == ended.subject)
            ):
                self.operations[place] = replace(operation, subject=new.subject)

    def _confirm(self, known: _Entry, item_id: str) -> None:
        if known.place is None and known.line_id is not None:
            known.place = len(self.operations)
            self.operations.append(Confirm(known.line_id, (item_id,)))
            return
        assert known.place is not None
        operation = self.operations[known.place]
        if item_id not in operation.sources:
            sources = (*operation.sources, item_id)
            self.operations[known.place] = replace(operation, sources=sources)

    def _known(self, statement: Statement) -> _Entry | None:
        """The current line that says the same, or the same and more."""
        key = same_content_key(statement.text)
        for entry in self._entries:
            has = entry.key
            same_subject = statement.subject is not None and statement.subject == entry.subject
            says_more = has.startswith((key + ",", key + " "))
            if has == key or (says_more and (same_subject or statement.is_mention)):
                return entry
            if same_subject and _same_stance(statement, entry):
                return entry
            if statement.is_mention and _tells_of(has, statement.value):
                return entry
        return None

    def _ended(self, statement: Statement) -> list[_Entry]:
        """The current lines that say what it ends, with or without something after it."""
        keys = [same_content_key(text) for text in statement.ends]
        none = _NONE.fullmatch(statement.text)
        return [
            entry
            for entry in self._entries
            if (none and _tells_of(entry.key, none[1]))
            or any(
                entry.key == key
                or (entry.key.startswith(f"{key} ") and not entry.key.startswith(f"{key} and "))
                for key in keys
            )
        ]

    def _vaguer(self, text: str) -> list[_Entry]:
        """The line that says less of the same: "has a dog" where the dog has a name now."""
        key = same_content_key(text)
        if not key.startswith("has a"):
            return []
        return [entry for entry in self._entries if key.startswith(f"{entry.key} named ")][:1]

    def _knows(self, subject: str | None) -> bool:
        return subject is not None and any(entry.subject == subject for entry in self._entries)


_NONE = re.compile(r"Has no (.+)")


def _tells_of(text: str, what: str) -> bool:
    """Whether a line says that there is what a mention gives away: "has two kids", "kids"."""
    return re.match(r"has (?!no )", text) is not None and _word(what).search(text) is not None


def _same_stance(statement: Statement, entry: _Entry) -> bool:
    """Whether both say of one thing that it is liked, or both that it is not."""
    if statement.subject is None or not statement.subject.startswith("like:"):
        return False
    return _is_negative(statement.text) == _is_negative(entry.text)


def _is_negative(text: str) -> bool:
    return text.startswith(
        ("Does not", "No longer", "Hates", "Dislikes", "Avoids", "Has given up", "Is not")
    )


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
