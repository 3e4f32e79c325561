"""The `rules` deriver: what a user says of themselves in plain English, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memsheaf.sessionsearch import Item
from memsheaf.stack.text import same_content_key

from .operations import Add, Confirm, Operation, Supersede
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
        self._last: tuple[_Entry, str, str] | None = None

    def take(self, statement: Statement, item_id: str) -> None:
        """One statement: it confirms a line, ends one, or is a new one."""
        if known := self._known(statement):
            self._confirm(known, item_id)
            self._last = (known, statement.value, item_id)
            return
        ended = self._ended(statement.ends) or self._vaguer(statement.text)
        if statement.only_known and ended is None and not self._knows(statement.subject):
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
        self._put(right, wrong, item_id)
        self._last = (right, correction.new, item_id)

    def _put(self, new: _Entry, ended: _Entry | None, item_id: str) -> None:
        """A new line, in the place of one that it ends."""
        if ended is not None:
            new.subject = new.subject or ended.subject
            self._entries.remove(ended)
            if ended.line_id is None and ended.place is not None:
                # It has no id yet; a shared subject lets the new line supersede it.
                new.subject = new.subject or f"line:{ended.text.lower()}"
                operation = self.operations[ended.place]
                assert isinstance(operation, Add | Supersede)
                self.operations[ended.place] = replace(operation, subject=new.subject)
        if new.subject is not None:
            self._entries = [entry for entry in self._entries if entry.subject != new.subject]
        fields = (new.kind, new.text, new.confidence, (item_id,), new.subject)
        new.place = len(self.operations)
        if ended is not None and ended.line_id is not None:
            self.operations.append(Supersede(ended.line_id, *fields))
        else:
            self.operations.append(Add(*fields))
        self._entries.append(new)

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

    def _ended(self, texts: Sequence[str]) -> _Entry | None:
        """The current line that says one of the texts, with or without something after it."""
        for key in map(same_content_key, texts):
            for entry in self._entries:
                more = entry.key.startswith(f"{key} ") and not entry.key.startswith(f"{key} and ")
                if entry.key == key or more:
                    return entry
        return None

    def _vaguer(self, text: str) -> _Entry | None:
        """The line that says less of the same: "has a dog" where the dog has a name now."""
        key = same_content_key(text)
        if not key.startswith("has a"):
            return None
        vague = (entry for entry in self._entries if key.startswith(f"{entry.key} named "))
        return next(vague, None)

    def _knows(self, subject: str | None) -> bool:
        return subject is not None and any(entry.subject == subject for entry in self._entries)


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
