"""Takes the events of one file to the log, in batches, each kept whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memsheaf.sessionsearch.items import Item, ItemOrigin, NewItem, to_json
from memsheaf.sessionsearch.log import ConversationLog
from memsheaf.stack import IdUnavailable, InvalidRecord, NotFound, Scope

from .base import Entry, Header, Skipped
from .earlier import Earlier
from .source import Position, Problem

__all__ = ["Writer"]

_BATCH = 2000  # items
_BATCH_TEXT = 8_000_000  # characters
_REMEMBERED = 1000  # conversations
_SHOWN = 100  # problems of a file that are kept
_TITLE = 200  # characters of a title
_OWN_TITLE = 80  # of one that is made from the first words


@dataclass(slots=True)
class _Held:
    """What is known of a conversation while a file is read."""

    titled: bool
    metadata: dict[str, Any]
    latest: datetime | None
    exists: bool
    earlier: Earlier
    last_seq: int = -1  # when it was first looked at
    title: str | None = None
    changed: bool = False
    place: Position | None = None  # where the source told of it first
    items: list[NewItem] = field(default_factory=list)
    numbered: dict[int, Entry] = field(default_factory=dict)  # the log may have them
    before: NewItem | None = None  # the last item of the batch before
    grew: bool = False  # whether something was added to what the log had


class Writer:
    """One file's way into the log.

    Args:
        log: Where the items go.
        scope: Whose conversations.
        fallback: The time of an item that tells none, where no item before it told one.

    Attributes:
        added, known, refused: Counts of items.
        skipped: Counts of records by kind.
        problems: The first problems; `problem_count` counts all.
        witness: A conversation that the log holds because of this file.
        written: The conversations that got or had items.
        place: Where the source is.
    """

    def __init__(self, log: ConversationLog, scope: Scope, fallback: datetime) -> None:
        self._log, self._scope, self._fallback = log, scope, fallback
        self._held: dict[str, _Held] = {}
        self.place = Position()
        self._waiting: dict[str, None] = {}  # conversations with something to write, in order
        self._count = self._text = 0
        self.added = self.known = self.refused = self.problem_count = 0
        self.skipped: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self.written: set[str] = set()
        self.forgotten: set[str] = set()
        self.witness: str | None = None

    def take(self, event: object) -> bool:
        """Take an event; whether the batch is full and wants `flush`."""
        if isinstance(event, Entry):
            held = self._conversation(event.conversation)
            item = self._timed(held, event.item)
            if event.seq is None:
                item = held.earlier.named(item)
            if event.seq is not None and event.seq <= held.last_seq:
                held.numbered[event.seq] = replace(event, item=item)
            else:
                held.items.append(item)
            self._waiting[event.conversation] = None
            self._count += 1
            self._text += len(event.item.text)
        elif isinstance(event, Skipped):
            self.skipped[event.kind] += 1
        elif isinstance(event, Header):
            self._describe(event)
        elif isinstance(event, Problem):
            self.problem(event)
        else:
            self.problem(Problem(None, f"an importer gave a {type(event).__name__}"))
        return self._count >= _BATCH or self._text >= _BATCH_TEXT

    def unfinished(self, first: Position) -> Position | None:
        """Where what is of use only with items that are still to come begins; None for nowhere.

        Args:
            first: Where reading began.
        """
        if not self.written and self.witness is None:
            return first
        described = (held for held in self._held.values() if held.changed and not held.exists)
        places = [held.place for held in described if held.place is not None]
        return min(places, key=lambda place: place.offset, default=None)

    def problem(self, problem: Problem) -> None:
        """Count a problem, and keep it where it is one of the first."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(problem)

    def flush(self) -> None:
        """Write what waits; each conversation's part is one transaction."""
        for conversation in list(self._waiting):
            held = self._held[conversation]
            items, held.items = self._unknown(conversation, held) + held.items, []
            if items or (held.exists and held.changed):
                self._write(conversation, held, items)
        self._waiting.clear()
        self._count = self._text = 0
        if len(self._held) > _REMEMBERED:  # the log tells the settled ones again
            self._held = {
                name: held for name, held in self._held.items() if held.changed or held.title
            }

    def _unknown(self, conversation: str, held: _Held) -> list[NewItem]:
        """Of the items with numbers those that the log does not have; what it had is forgotten."""
        numbered, held.numbered = held.numbered, {}
        if not numbered:
            return []
        low, high = min(numbered) - 1, max(numbered) + 1
        found = self._log.items(conversation, self._scope, after=low, before=high, limit=None)
        there = {item.seq: _likeness(item) for item in found}
        keys = self._log.keys(conversation, self._scope, after=low, before=high)
        unknown = []
        for seq, entry in numbered.items():
            if entry.keyed and seq in keys:  # the log tells by the keys whether it has the item
                unknown.append(entry.item)
            elif seq not in there:
                self.refused += 1
            elif there[seq] == _likeness(entry.item):
                self.known += 1
            else:
                unknown.append(entry.item)
        self.witness = self.witness or conversation
        self.written.add(conversation)
        return unknown

    def _write(self, conversation: str, held: _Held, items: list[NewItem]) -> None:
        if conversation in self.forgotten:
            self.refused += len(items)
            return
        if not held.titled and held.title is None:
            held.title = _first_words(items)
        metadata = held.metadata if held.changed else None
        bad = self.problem_count
        try:
            new = self._append(conversation, items, held.title, metadata)
        except IdUnavailable:
            self.forgotten.add(conversation)
            self.refused += len(items)
            return
        if new and held.exists and not held.grew:
            places = (n for n, item in enumerate(items) if item.text == new[0].text)
            place = next(places, 0)
            held.earlier.outgrown(new[0], items[place - 1] if place else held.before)
        held.grew = held.grew or bool(new)
        held.before = items[-1] if items else held.before
        held.exists, held.changed = True, False
        held.titled, held.title = held.titled or held.title is not None, None
        self.added += len(new)
        self.known += len(items) - len(new) - (self.problem_count - bad)
        self.written.add(conversation)
        self.witness = self.witness or conversation

    def _append(
        self,
        conversation: str,
        items: list[NewItem],
        title: str | None,
        metadata: Mapping[str, Any] | None,
    ) -> Sequence[Item]:
        """Those that are new. A batch with an item that is refused is halved until it is found."""
        try:
            return self._log.append(
                conversation, items, self._scope, title=title, metadata=metadata
            )
        except InvalidRecord as error:  # nothing was written
            if len(items) < 2:
                self.problem(Problem(None, str(error)))
                return ()
            half = len(items) // 2
            return [
                item
                for part in (items[:half], items[half:])
                for item in self._append(conversation, part, title, metadata)
            ]

    def _describe(self, header: Header) -> None:
        held = self._conversation(header.conversation)
        if header.title and header.title.strip():
            held.title, held.changed = _title(header.title), True
        held.latest = held.latest or header.started
        for name, value in header.metadata.items():
            if name in held.metadata and (
                value in (None, "") or held.metadata[name] not in (None, "")
            ):
                continue  # the first one that says something
            try:
                to_json("metadata", {name: value})
            except InvalidRecord as error:
                self.problem(Problem(None, str(error)))
                continue
            held.metadata[name] = value
            held.changed = True
        if held.changed:
            self._waiting[header.conversation] = None
            held.place = held.place or self.place

    def _conversation(self, conversation: str) -> _Held:
        held = self._held.get(conversation)
        if held is None:
            try:
                known = self._log.conversation(conversation, self._scope)
            except NotFound:
                earlier = Earlier(self._log, conversation, self._scope, exists=False)
                held = _Held(False, {}, None, exists=False, earlier=earlier)
            else:
                earlier = Earlier(self._log, conversation, self._scope, exists=True)
                about, latest = dict(known.metadata), known.updated_at
                held = _Held(bool(known.title), about, latest, exists=True, earlier=earlier)
                held.last_seq = -1 if known.last_seq is None else known.last_seq
            self._held[conversation] = held
        return held

    def _timed(self, held: _Held, item: NewItem) -> NewItem:
        if isinstance(item.created_at, datetime):
            held.latest = item.created_at
            return item
        return replace(
            item,
            created_at=held.latest or self._fallback,
            metadata={**item.metadata, "time": "assumed"},
        )


def _likeness(item: NewItem | Item) -> tuple[object, ...]:
    return item.type, item.role, item.origin, item.text, item.created_at


def _first_words(items: list[NewItem]) -> str | None:
    """The first line that the user wrote."""
    for item in items:
        if item.type == "message" and item.origin is ItemOrigin.USER and item.text.strip():
            return _title(item.text.strip().split("\n", 1)[0], _OWN_TITLE)
    return None


def _title(text: str, limit: int = _TITLE) -> str:
    """A title on one line, not longer than a limit."""
    line = " ".join(text[: limit * 8].split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
