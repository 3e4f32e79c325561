"""What an importer is: it reads one source and yields events, in order, without holding it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from memsheaf.sessionsearch.items import NewItem

from .source import Problem, Source

__all__ = [
    "OTHER_BRANCH",
    "Entry",
    "Event",
    "Header",
    "ImportOptions",
    "Importer",
    "Problem",
    "Skipped",
]

OTHER_BRANCH = "message of another branch"
"""The kind of what `ImportOptions.branches` leaves out."""


@dataclass(frozen=True, slots=True)
class Header:
    """What is known about a conversation; a later one adds to an earlier one.

    Args:
        conversation: Its id: see `conversation_id`.
        title: Its title; None leaves the one that it has.
        metadata: A JSON object: `format`, `project` (folder), `branch`, `model`, `parent`
            (conversation id), `source_id` (the id in the source).
        started: When it began; the time of its first items where they tell none.
    """

    conversation: str
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    started: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An item of a conversation.

    Args:
        conversation: Its id.
        item: The item; its key is the original id, or a stable hash.
        seq: Its number in the log that it was exported from. Where the conversation has the
            same item under that number, it is known.
        keyed: Whether the log that it was exported from knew it by its key. The number then
            counts only where the conversation's own item of that number has no key.
    """

    conversation: str
    item: NewItem
    seq: int | None = None
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is no part of a conversation; counted by its kind."""

    kind: str


Event = Header | Entry | Skipped | Problem


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to read.

    Args:
        branches: `active` reads what a person sees in the end; `all` also reads edited prompts
            and replaced answers.
        include_thinking: Whether a model's reasoning is kept, as items of type `reasoning`.
        max_record: The longest line, list element or undivided document, in bytes; a longer one
            is a problem and is skipped without being held.
    """

    branches: Literal["active", "all"] = "active"
    include_thinking: bool = True
    max_record: int = 32 * 1024 * 1024


@runtime_checkable
class Importer(Protocol):
    """Reads one format. What the entry points of `memsheaf.importers` name.

    Attributes:
        name: The name of the format.
        incremental: Whether sources only grow by lines, so that a later import can begin where
            the last one ended (`Source.lines` keeps the place).
    """

    name: str
    incremental: bool

    def detect(self, source: Source) -> float:
        """How sure it is, 0 to 1, that it can read the source; from the content alone."""
        ...

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """What the source holds. Bad input is a `Problem`, never an exception."""
        ...
