"""The contract: what a provider may implement, as pluggy hook specifications.

A provider is an object whose methods are marked with `hookimpl`. It declares of each hook only
the arguments that it needs; ``scope`` may not be left out of ``search``, ``get`` and ``forget``.
Every hook may be ``def`` or ``async def``. Optional class attributes tell what it enforces:

``scope_fields``
    The scope fields that it enforces itself. Default: none, the stack checks what comes back.
``returned_scope_fields``
    The scope fields that its records carry. Default: all. A query that sets a field which is
    neither enforced nor returned is not sent to the provider.
``filters_natively``
    Whether it applies ``filters`` before it cuts to ``limit``. Default: False.
``inline``
    Whether it works in memory only, so that it may run on the caller's thread. Default: False.
"""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pluggy

from .filters import Filter
from .records import MemoryRecord
from .results import ForgetReport, Hit, Receipt, SearchResult
from .scope import Scope

__all__ = ["PROJECT", "Order", "ProviderSpec", "hookimpl"]

PROJECT = "memsheaf"
Order = Literal["newest", "oldest"]

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a provider's methods."""


class ProviderSpec:
    """The hooks of a provider, and the events that plugins may listen to."""

    @hookspec
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        """Hits, best first, larger scores better.

        Blank text returns the most recently updated; text without a term returns nothing. Any
        string is a valid query.
        """

    @hookspec
    def store(self, record: MemoryRecord) -> Sequence[str] | None:
        """Keep a record: the same id replaces, a copy older than what is held is ignored.

        Returns the native ids that it became, where they differ from ours. An id that another
        scope holds raises `IdUnavailable`.
        """

    @hookspec
    def store_many(self, records: Sequence[MemoryRecord]) -> Sequence[Exception | None]:
        """Keep several records: one entry each, None or the error that refused it."""

    @hookspec
    def forget(self, record_id: str, scope: Scope, native_ids: Sequence[str]) -> bool:
        """Delete a record: True if something was deleted, False if there was nothing."""

    @hookspec
    def update(
        self,
        record_id: str,
        scope: Scope,
        changes: Mapping[str, Any],
        native_ids: Sequence[str],
    ) -> bool:
        """Change fields atomically: True if the record is held, False if not.

        ``changes`` maps field names to validated values and holds the new ``updated_at``.
        """

    @hookspec
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record, or None where the scope does not hold it."""

    @hookspec
    def list(
        self,
        scope: Scope,
        limit: int,
        after: str | None,
        order: Order,
        filters: Filter | None,
    ) -> Sequence[MemoryRecord]:
        """Records by (created_at, id), those that follow the cursor ``after`` in that order."""

    @hookspec
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one deliberate recall of each record in one write; returns how many it holds."""

    @hookspec
    def prefetch(self, text: str, scope: Scope, limit: int) -> Sequence[Hit]:
        """Hits to prime a turn; a provider without it is searched."""

    @hookspec
    def build_system_prompt(self, scope: Scope) -> str | None:
        """Static text for the system prompt, the same bytes from turn to turn."""

    @hookspec
    def build_user_context(self, scope: Scope, text: str) -> str | None:
        """A block for the last user message."""

    @hookspec
    def check(self) -> str | None:
        """Raise where the provider is not healthy; may return a line about its state."""

    @hookspec
    def close(self) -> None:
        """Let go of everything; called once."""

    # Events: real hook calls. One that raises in before_… vetoes the operation.

    @hookspec
    def before_store(self, record: MemoryRecord) -> None:
        """Guard: raise to refuse a record before any provider sees it."""

    @hookspec
    def after_store(self, receipt: Receipt) -> None:
        """Told after a record was stored or updated."""

    @hookspec
    def before_search(self, text: str, scope: Scope) -> None:
        """Guard: raise to refuse a search."""

    @hookspec
    def after_search(self, text: str, scope: Scope, result: SearchResult) -> None:
        """Told after a search."""

    @hookspec
    def before_forget(self, record_id: str, scope: Scope) -> None:
        """Guard: raise to refuse a forget."""

    @hookspec
    def after_forget(self, report: ForgetReport) -> None:
        """Told after a forget."""

    @hookspec
    def before_inject(self, messages: builtins.list[Any], scope: Scope) -> None:
        """Guard: raise to leave a request without memories."""

    @hookspec
    def after_inject(self, messages: builtins.list[Any], scope: Scope) -> None:
        """Told with the messages as they will be sent."""
