"""A stack as a provider of another stack."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .contract import Order, hookimpl
from .errors import MemsheafError, NotFound, ProviderError, UsageError
from .fanout import mark_partial
from .filters import Filter
from .records import MemoryRecord
from .results import Blocks, Hit, Outcome, SearchResult
from .scope import SCOPE_FIELDS, Scope

if TYPE_CHECKING:
    from .memory_stack import MemoryStack

__all__ = ["StackProvider"]


class StackProvider:
    """Carries the hooks of a stack; a partial outcome inside stays partial outside.

    Args:
        stack: The inner stack; closing the outer one closes it.
    """

    name = "stack"
    scope_fields = SCOPE_FIELDS
    filters_natively = True

    def __init__(self, stack: MemoryStack) -> None:
        self._stack = stack

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        """The inner stack's fused list."""
        return _answered(self._stack.search(text, scope, limit, filters))

    @hookimpl
    def prefetch(self, text: str, scope: Scope, limit: int) -> Sequence[Hit]:
        """The inner stack's fused list."""
        return _answered(self._stack.prefetch(text, scope, limit))

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Store in every inner provider."""
        _tell(self._stack.store(record).outcomes)

    @hookimpl
    def store_many(self, records: Sequence[MemoryRecord]) -> Sequence[Exception | None]:
        """Store in every inner provider; what is refused as a whole is tried one by one."""
        try:
            receipts = self._stack.store_many(records)
        except UsageError:
            return [self._refusal(record) for record in records]
        _tell([outcome for receipt in receipts for outcome in receipt.outcomes])
        return [ProviderError(r.error) if r.error is not None else None for r in receipts]

    def _refusal(self, record: MemoryRecord) -> Exception | None:
        try:
            self.store(record)
        except MemsheafError as error:
            return error
        return None

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Forget in every inner provider."""
        report = self._stack.forget(record_id, scope)
        _tell(report.outcomes)
        if report.remaining:
            mark_partial(f"still seen in {', '.join(report.remaining)}")
        return bool(report.deleted)

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        """Update in every inner provider."""
        fields = {name: value for name, value in changes.items() if name != "updated_at"}
        try:
            receipt = self._stack.update(record_id, fields, scope, at=changes["updated_at"])
        except NotFound:
            return False
        _tell(receipt.outcomes)
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The newest inner copy."""
        return self._stack.get(record_id, scope)

    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Order, filters: Filter | None
    ) -> builtins.list[MemoryRecord]:
        """The inner stack's page."""
        page = self._stack.list(scope, limit, after, order, filters)
        _tell(page.outcomes)
        return [*page]

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one recall of each in every inner provider."""
        outcomes = self._stack.touch(record_ids, scope)
        _tell(outcomes)
        return max((o.count for o in outcomes), default=0)

    @hookimpl
    def build_system_prompt(self, scope: Scope) -> str | None:
        """The inner providers' static texts, joined."""
        return _joined(self._stack.system_prompt(scope))

    @hookimpl
    def build_user_context(self, scope: Scope, text: str) -> str | None:
        """The inner providers' blocks, joined."""
        return _joined(self._stack.user_context(text, scope))

    @hookimpl
    def check(self) -> str | None:
        """Raise where an inner provider is not healthy."""
        bad = [str(o) for o in self._stack.check() if not o.ok and o.status != "skipped"]
        if bad:
            raise ProviderError("; ".join(bad))
        return None

    @hookimpl
    def close(self) -> None:
        """Close the inner stack."""
        bad = [str(o) for o in self._stack.close() if not o.ok]
        if bad:
            raise ProviderError("; ".join(bad))


def _answered(result: SearchResult) -> Sequence[Hit]:
    """The hits of a result that somebody answered; else it would pass for an empty one."""
    if result.outcomes and not any(o.ok or not o.concerned for o in result.outcomes):
        raise ProviderError("; ".join(map(str, result.outcomes)))
    _tell(result.outcomes)
    return result.hits


def _joined(blocks: Blocks) -> str | None:
    _tell(blocks.outcomes)
    return "\n\n".join(text for _, text in blocks) or None


def _tell(outcomes: Sequence[Outcome]) -> None:
    """What is partial inside stays partial outside."""
    for missing in {str(outcome) for outcome in outcomes if not outcome.complete}:
        mark_partial(missing)
