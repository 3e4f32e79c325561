"""What a search of sessions answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar, overload

from .content import content_of
from .items import Conversation, Item
from .snippets import snippet

__all__ = ["ConversationHit", "Explanation", "SessionHit", "SessionResult"]

Hit = TypeVar("Hit")


@dataclass(frozen=True, slots=True)
class SessionHit:
    """An item that was found.

    Attributes:
        item: The item as the log has it.
        conversation: Its conversation: title, metadata, number of items.
        score: How good it is; higher is better, comparable within one answer.
        relevance: The share of the query's idf that it holds itself, in [0, 1].
        query: What was looked for.
        copies: Ids of items of other conversations with the same text, which take no place.
    """

    item: Item
    conversation: Conversation
    score: float
    relevance: float
    query: str
    copies: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The item's id, `<conversation>:<seq>`."""
        return self.item.id

    @property
    def snippet(self) -> str:
        """One line of it, the matched words in « », safe to print."""
        return snippet(self.content, self.query)

    @property
    def title(self) -> str:
        """The title of its conversation."""
        return self.conversation.title

    @property
    def position(self) -> int:
        """Its number in its conversation, from 0."""
        return self.item.seq

    @property
    def content(self) -> str:
        """All that can be found of it: its text, a tool's name, arguments and output."""
        return content_of(self.item)


@dataclass(frozen=True, slots=True)
class ConversationHit:
    """A conversation that was found.

    Attributes:
        conversation: Title, metadata, times.
        score: The score of its best item.
        hits: Its best items, best first.
        first: Its first lines.
        last: Its last lines.
    """

    conversation: Conversation
    score: float
    hits: tuple[SessionHit, ...]
    first: tuple[Item, ...]
    last: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was searched, and what each filter removed.

    Attributes:
        index: The index that was asked.
        words: The words that were looked for, as they were typed.
        conversations: How many conversations the scope holds.
        items: How many items of them can be found.
        matched: How many items of the scope hold one of the words.
        removed: How many of the matched each filter removed, in the order of the filters.
    """

    index: str
    words: tuple[str, ...]
    conversations: int
    items: int
    matched: int
    removed: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.words:
            return "the query has no word to look for"
        text = (
            f"searched {_counted(self.items, 'item')} of "
            f"{_counted(self.conversations, 'conversation')} "
            f"for {', '.join(self.words)}: {self.matched} match"
        )
        parts = [f"{name} removed {number}" for name, number in self.removed.items() if number]
        return f"{text}; {', '.join(parts)}" if parts else text


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


class SessionResult(Sequence[Hit], Generic[Hit]):
    """Hits, best first, and what was searched for them."""

    def __init__(self, hits: Sequence[Hit], explain: Callable[[], Explanation]) -> None:
        self._hits = tuple(hits)
        self._explain = explain
        self._explanation = None if hits else explain()

    @property
    def explain(self) -> Explanation:
        """What was searched, and which filter removed how many."""
        if self._explanation is None:
            self._explanation = self._explain()
        return self._explanation

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self._hits[place]

    def __len__(self) -> int:
        return len(self._hits)

    def __repr__(self) -> str:
        return f"SessionResult({list(self._hits)!r})"
