"""A provider together with how the stack uses it, before and after it was checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .records import MemoryRecord
from .scope import SCOPE_FIELDS, Scope

__all__ = [
    "Down",
    "Hook",
    "Mode",
    "Mount",
    "Mounted",
    "NotConcerned",
    "derived_store_many",
    "pinned",
    "read_only",
    "write_only",
]


class Mode(StrEnum):
    """What a provider is used for."""

    READ_WRITE = "read-write"
    READ = "read"
    WRITE = "write"
    CONTEXT = "context"

    @property
    def reads(self) -> bool:
        """Whether it is searched."""
        return self in _READING

    @property
    def writes(self) -> bool:
        """Whether records are stored in it and forgotten from it."""
        return self in _WRITING


_READING, _WRITING = (Mode.READ_WRITE, Mode.READ), (Mode.READ_WRITE, Mode.WRITE)


@dataclass(frozen=True)  # no slots: old pluggy cannot look through them on Python 3.11.0 to 3.11.2
class Down:
    """Stands for a provider that could not be opened; every operation tells why.

    Args:
        reason: Why it is down, without secrets.
        reopen: Opens it again; used by `MemoryStack.retry`.
    """

    reason: str
    reopen: Callable[[], object] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Mount:
    """A provider together with how the stack should use it.

    Args:
        provider: An object with methods marked by `hookimpl`, or `Down`.
        name: Its name in outcomes; made from its class where it is not given.
        mode: Found from its hooks where it is not given.
        weight: Its weight in the fusion, above 0.
        timeout: Seconds for one call; the stack's read and write timeouts where not given.
        scope: Pins it: it holds the records of this scope only.
    """

    provider: object
    name: str | None = None
    mode: Mode | str | None = None
    weight: float = 1.0
    timeout: float | None = None
    scope: Scope | None = None


class NotConcerned(str):
    """Why a provider is not asked, where its answer could hold nothing: nothing is missing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Hook:
    """One implementation: the function, the arguments it declares, and whether it is async."""

    function: Callable[..., Any]
    arguments: tuple[str, ...]
    is_async: bool

    def bind(self, available: Mapping[str, Any]) -> Mapping[str, Any]:
        """The declared arguments, picked from those available."""
        if len(self.arguments) == len(available):
            return available
        return {name: available[name] for name in self.arguments}


def derived_store_many(store: Hook) -> Hook:
    """``store_many`` for a provider that has only ``store``: a loop, each record by itself."""

    def one_by_one(records: Sequence[MemoryRecord]) -> list[object]:
        entries: list[object] = []
        for record in records:
            try:
                entries.append(store.function(record))
            except (Exception, SystemExit) as error:  # an entry of the answer, told per record
                entries.append(error)
        return entries

    async def one_by_one_async(records: Sequence[MemoryRecord]) -> list[object]:
        entries: list[object] = []
        for record in records:
            try:
                entries.append(await store.function(record))
            except Exception as error:  # an entry of the answer, told per record
                entries.append(error)
        return entries

    function = one_by_one_async if store.is_async else one_by_one
    return Hook(function, ("records",), store.is_async)


@dataclass(frozen=True, slots=True)
class Mounted:
    """A provider that passed every check."""

    name: str
    provider: object
    mode: Mode
    hooks: Mapping[str, Hook]
    weight: float = 1.0
    timeout: float | None = None
    pinned: Scope | None = None
    scope_fields: frozenset[str] = frozenset()
    returned_scope_fields: frozenset[str] = frozenset(SCOPE_FIELDS)
    filters_natively: bool = False
    inline: bool = False

    @property
    def down(self) -> str | None:
        """Why it is down, or None."""
        return self.provider.reason if isinstance(self.provider, Down) else None

    def has(self, hook: str) -> bool:
        """Whether it implements a hook."""
        return hook in self.hooks

    def cannot_answer(self, scope: Scope) -> str | None:
        """Why a query with this scope is not sent to it, or None."""
        if self.pinned is None and len(self.returned_scope_fields) == len(SCOPE_FIELDS):
            return None  # the usual case: it is checked by what comes back
        asked = scope.set_fields()
        held = self.pinned.set_fields() if self.pinned is not None else {}
        other = [f for f, value in asked.items() if f in held and held[f] != value]
        if other:
            return NotConcerned(f"it holds another {' and '.join(other)}")
        known = self.scope_fields | self.returned_scope_fields | held.keys()
        unknown = [f for f in asked if f not in known]
        if unknown:
            return f"it cannot keep records apart by {' and '.join(unknown)}"
        return None

    def cannot_hold(self, owner: Scope) -> str | None:
        """Why a record of this scope is not sent to it, or None."""
        if self.pinned is not None and not self.pinned.matches(owner):
            return NotConcerned(f"it is pinned to {self.pinned}")
        return None


def read_only(provider: object, name: str | None = None) -> Mount:
    """Search a provider and never write to it."""
    return Mount(provider, name, Mode.READ)


def write_only(provider: object, name: str | None = None) -> Mount:
    """Write to a provider and never search it."""
    return Mount(provider, name, Mode.WRITE)


def pinned(provider: object, scope: Scope, name: str | None = None) -> Mount:
    """A provider that holds the records of one scope only, whose hooks need not take a scope."""
    return Mount(provider, name, scope=scope)
