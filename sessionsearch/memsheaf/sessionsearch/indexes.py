"""What an index of sessions is: the contract of the adapters, and how one is found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from memsheaf.stack import ProviderError, Scope

from .changes import Changes

if TYPE_CHECKING:
    from .log import ConversationLog
    from .ranking import SessionRanking

__all__ = [
    "Candidate",
    "Counts",
    "IndexDamaged",
    "IndexFactory",
    "ItemQuery",
    "SessionIndex",
    "Sort",
    "find_index",
]


class IndexDamaged(ProviderError):
    """An index found that what it holds does not fit together; it is rebuilt."""


Sort = Literal["relevance", "newest", "oldest"]


class ItemQuery(NamedTuple):
    """What is looked for, and where.

    Attributes:
        text: Any string; its words are alternatives.
        scope: Whose conversations; an index never answers from outside it.
        conversations: Only these, by their numbers in the log.
        project: Only conversations whose metadata names this project, or a folder below it.
        roles: Only these roles.
        types: Only these types.
        since: Only items not older than this, in microseconds since 1970.
        until: Only items not younger than this.
        sort: By relevance, or by time among the items that match well.
    """

    text: str
    scope: Scope
    conversations: frozenset[int] | None = None
    project: str | None = None
    roles: frozenset[str] | None = None
    types: frozenset[str] | None = None
    since: int | None = None
    until: int | None = None
    sort: Sort = "relevance"


class Candidate(NamedTuple):
    """An item that was found.

    Attributes:
        conversation: The number of its conversation in the log.
        seq: Its number there.
        score: How good it is; higher is better, comparable within one answer.
        relevance: The share of the query's idf that it holds itself, in [0, 1].
        same_text: What items of the same text share, see `same_text`.
        position: Where the log has it, see `Change.positions`.
    """

    conversation: int
    seq: int
    score: float
    relevance: float
    same_text: int
    position: int


class Counts(NamedTuple):
    """What a query looked at.

    Attributes:
        conversations: How many the scope holds.
        items: How many items of them can be found.
        matched: How many of these hold a word of the query.
        removed: How many of the matched each filter removed, in the order of the filters.
    """

    conversations: int
    items: int
    matched: int
    removed: Mapping[str, int]


class SessionIndex(Protocol):
    """Finds items of a log; derived from it, and never needed to write it.

    Calls come one at a time.
    """

    @property
    def name(self) -> str:
        """The name of its entry point."""

    @property
    def sequence(self) -> int:
        """The number of the latest change of the log that it contains."""

    @property
    def rebuilt(self) -> str | None:
        """Why it began anew, where what was kept could not be used."""

    def reset(self, reason: str) -> None:
        """Begin anew, at sequence 0, and tell why in `rebuilt`."""

    def apply(self, changes: Changes) -> int:
        """Take in a part of the log's feed; return how many items became searchable."""

    def search(self, query: ItemQuery, limit: int) -> Sequence[Candidate]:
        """The best items, best first, all filters applied before the limit.

        Raises:
            IndexDamaged: It has to be rebuilt.
        """

    def counts(self, query: ItemQuery) -> Counts:
        """What the query looked at."""

    def save(self) -> None:
        """Keep what it knows, so that the next opening begins there."""

    def close(self) -> None:
        """End it; again: nothing."""


IndexFactory = Callable[["ConversationLog", "SessionRanking | None"], SessionIndex]
"""What an entry point of ``memsheaf.session_indexes`` names: opens the index of a log.

The second argument are settings of the ranking, as far as the index knows them.
"""


def find_index(name: str) -> IndexFactory:
    """The factory of an index by the name of its entry point.

    Raises:
        RegistrationError: There is none, or it is broken.
    """
    from memsheaf.stack import RegistrationError, Registry  # only where a name is given

    factory = Registry("memsheaf.session_indexes").load(name)
    if not callable(factory):
        raise RegistrationError(f"{name}: the entry point must name a function of a log")
    found: IndexFactory = factory
    return found
