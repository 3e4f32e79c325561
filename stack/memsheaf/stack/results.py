"""What comes back: hits that explain themselves, and what each provider did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, overload

from .records import MemoryRecord
from .scope import Scope

__all__ = [
    "Blocks",
    "Explanation",
    "ForgetReport",
    "Hit",
    "ImportReport",
    "Operation",
    "Outcome",
    "Page",
    "Receipt",
    "SearchResult",
    "Source",
    "Status",
    "WiderScope",
]

Operation = Literal[
    "search",
    "prefetch",
    "store",
    "store_many",
    "forget",
    "update",
    "get",
    "list",
    "touch",
    "build_system_prompt",
    "build_user_context",
    "check",
    "close",
    "event",
]


class Status(StrEnum):
    """How one provider's part of an operation ended."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one provider did with one operation.

    Attributes:
        provider: The provider's configured name.
        operation: What was asked.
        status: How it ended. A timed-out write is unknown: it may still take effect.
        reason: Why it did not end well, without memory text.
        count: How many hits, records or deletions it accounts for.
        elapsed: Seconds from the call to its end.
        notes: What the stack did about an answer that was accepted, for instance dropped hits.
        partial: Whether the provider is itself a stack and some of its parts did not answer.
        error: The provider's own exception, for debugging; its message may hold memory text.
        concerned: False where the provider was skipped and nothing is missing by that, for
            instance because it is pinned to another scope.
    """

    provider: str
    operation: Operation
    status: Status
    reason: str | None = None
    count: int = 0
    elapsed: float = 0.0
    notes: tuple[str, ...] = ()
    partial: bool = False
    error: BaseException | None = field(default=None, repr=False, compare=False)
    concerned: bool = True

    @property
    def ok(self) -> bool:
        """Whether the provider did what was asked."""
        return self.status is Status.OK

    @property
    def complete(self) -> bool:
        """Whether nothing of this provider's answer is missing; a listener's failure is none."""
        return (self.ok and not self.partial) or not self.concerned or self.operation == "event"

    def __str__(self) -> str:
        """For instance ``notes: timed out after 2 s``."""
        return f"{self.provider}: {self.reason or self.status.replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A number and the numbers that it is made of."""

    value: float
    description: str
    parts: tuple[Explanation, ...] = ()

    def __str__(self) -> str:
        """The tree, one line a node, indented."""
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        yield f"{'  ' * depth}{self.value:.6g}  {self.description}"
        for part in self.parts:
            yield from part._lines(depth + 1)


class Source(NamedTuple):  # two thirds faster to build than a frozen dataclass
    """Where a hit came from.

    Attributes:
        provider: The provider's configured name.
        rank: Its place in that provider's list, from 1.
        score: That provider's own score; larger is better, the scale is its own.
        record_id: The id under which that provider returned it.
        native_ids: Its ids in a foreign system.
        stale: Whether a newer copy of the record was found elsewhere.
    """

    provider: str
    rank: int
    score: float
    record_id: str
    native_ids: tuple[str, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A record with its scores. Providers return it; the stack returns it fused.

    Attributes:
        record: The memory.
        score: Larger is better. From a provider: its own scale. From the stack: fused, in [0, 1].
        relevance: How well the text matches, in [0, 1], apart from every other signal; None
            where a provider does not say, never None from the stack.
        native_ids: The record's ids in a foreign system, where the provider is an adapter to one.
        sources: Every provider that returned it; filled by the stack.
        arithmetic: Builds the tree of `explain`; only where somebody asks.
    """

    record: MemoryRecord
    score: float = 0.0
    relevance: float | None = None
    native_ids: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    arithmetic: Callable[[], Explanation] | None = field(default=None, repr=False, compare=False)

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id

    def explain(self) -> Explanation:
        """The arithmetic behind the score, as a tree that prints."""
        if self.arithmetic is None:
            return Explanation(self.score, "the provider's own score")
        return self.arithmetic()


@dataclass(frozen=True, slots=True)
class WiderScope:
    """How many matches a user's wider scope holds where the asked scope holds none."""

    scope: Scope
    count: int


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """Hits, best first, and what each provider did.

    Attributes:
        hits: The fused hits.
        outcomes: One per provider that reads.
        notes: What the stack did with the query, for instance that it was cut.
        wider: Where nothing was found: how many the user's wider scope holds.
    """

    hits: tuple[Hit, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    wider: WiderScope | None = None

    @property
    def partial(self) -> bool:
        """Whether some provider's answer is missing."""
        return any(not o.complete for o in self.outcomes)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a record that was stored or updated.

    Attributes:
        record: The record as it was sent to the providers.
        outcomes: One per provider that writes.
        error: Where no provider took it, in a batch; a single `store` raises instead.
    """

    record: MemoryRecord
    outcomes: tuple[Outcome, ...]
    error: str | None = None

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id

    @property
    def stored(self) -> bool:
        """Whether at least one provider holds it."""
        return any(o.ok for o in self.outcomes)

    @property
    def partial(self) -> bool:
        """Whether some provider does not hold it, or may not."""
        return any(not o.complete for o in self.outcomes)


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What became of a record that was to be forgotten.

    Attributes:
        id: The id that was asked.
        forgotten: Whether something was deleted and nothing of it was seen afterwards.
        deleted: The ids that were deleted: the record and copies of its content in its scope.
        remaining: Providers in which it was still seen afterwards.
        unverified: Providers that could not be asked afterwards.
        outcomes: One per provider that writes.
        checks: What each provider answered when it was asked again.
    """

    id: str
    forgotten: bool
    deleted: tuple[str, ...]
    remaining: tuple[str, ...]
    unverified: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    checks: tuple[Outcome, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether every provider was asked again and none still showed it."""
        return not self.remaining and not self.unverified

    @property
    def partial(self) -> bool:
        """Whether some provider did not carry it out, or may not have."""
        return any(not o.complete for o in self.outcomes)

    def __bool__(self) -> bool:
        """Whether it is forgotten."""
        return self.forgotten


@dataclass(frozen=True, slots=True)
class Page(Sequence[MemoryRecord]):
    """Records in order, and the cursor of the next page."""

    records: tuple[MemoryRecord, ...]
    next: str | None
    outcomes: tuple[Outcome, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether some provider's answer is missing."""
        return any(not o.complete for o in self.outcomes)

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> MemoryRecord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MemoryRecord, ...]: ...
    def __getitem__(self, index: int | slice) -> MemoryRecord | tuple[MemoryRecord, ...]:
        return self.records[index]


@dataclass(frozen=True, slots=True)
class Blocks(Sequence[tuple[str, str]]):
    """The providers' texts for a prompt, as (provider, text), in configured order."""

    texts: tuple[tuple[str, str], ...]
    outcomes: tuple[Outcome, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether some provider's text is missing."""
        return any(not o.complete for o in self.outcomes)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[str, str], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, str] | tuple[tuple[str, str], ...]:
        return self.texts[index]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did.

    Attributes:
        imported: Records that at least one provider took.
        refused: Line number and reason of each line that was not imported.
        partial: Whether some provider does not hold all of them.
    """

    imported: int
    refused: tuple[tuple[int, str], ...]
    partial: bool
