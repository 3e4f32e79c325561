"""The operations of a reflection: each done by itself, within the scope, and taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from memsheaf.stack import Kind, MemoryRecord, MemoryStack, Scope
from memsheaf.stack.fanout import reason_of
from memsheaf.stack.text import same_content_key

__all__ = ["Applied", "apply_operations", "undo_operations"]


@dataclass(frozen=True, slots=True)
class Applied:
    """One operation and what became of it.

    Attributes:
        action: `remember`, `update` or `forget`; another word where the model sent one.
        id: The memory that it made or touched, or None.
        done: Whether it was carried out.
        reason: Why not.
        before: The memory as it was, where it was changed or forgotten.
        after: The memory as it is now, where it was made or changed.
    """

    action: str
    id: str | None = None
    done: bool = False
    reason: str | None = None
    before: MemoryRecord | None = None
    after: MemoryRecord | None = None


def apply_operations(
    wanted: Sequence[Mapping[str, Any]],
    stack: MemoryStack,
    scope: Scope,
    shown: Mapping[str, MemoryRecord],
) -> tuple[Applied, ...]:
    """Carry operations out in their order; one that fails leaves the others alone.

    Args:
        wanted: The operations, as a model sent them.
        stack: The memories.
        scope: Whose.
        shown: The memories that the model was shown: only these may be changed or forgotten.
    """
    known = dict(shown)
    applied: list[Applied] = []
    for operation in wanted:
        one = _apply(operation, stack, scope, known)
        if one.done and one.after is not None:
            known[one.after.id] = one.after  # so that a fact said twice is kept once
        elif one.done and one.id is not None:
            del known[one.id]  # so that what is forgotten can be said anew
        applied.append(one)
    return tuple(applied)


def undo_operations(
    operations: Sequence[Applied], stack: MemoryStack, scope: Scope
) -> tuple[Applied, ...]:
    """Take operations back, the last first; what was changed by others since is left as it is."""
    newest: dict[str, datetime] = {}
    undone: list[Applied] = []
    for operation in reversed(operations):
        if operation.done:
            run = partial(_undo, operation, stack, scope, newest)
            one = _isolated(operation.action, operation.id, run)
            if one.done and one.after is not None:
                newest[one.after.id] = one.after.updated_at
            undone.append(one)
    return tuple(undone)


def _apply(
    operation: Mapping[str, Any],
    stack: MemoryStack,
    scope: Scope,
    shown: Mapping[str, MemoryRecord],
) -> Applied:
    action = str(operation.get("action", ""))[:20]
    wanted = operation.get("id")
    if action == "remember":
        return _isolated(action, None, lambda: _remember(operation, stack, scope, shown))
    if action not in ("update", "forget"):
        return Applied(action, reason="unknown action")
    if not isinstance(wanted, str) or wanted not in shown:
        return Applied(action, reason="not one of the memories that were shown")
    before = shown[wanted]
    return _isolated(action, wanted, lambda: _change(action, operation, stack, scope, before))


def _isolated(action: str, id: str | None, run: Callable[[], Applied]) -> Applied:
    try:
        return run()
    except Exception as error:
        return Applied(action, id, reason=reason_of(error))


def _remember(
    operation: Mapping[str, Any],
    stack: MemoryStack,
    scope: Scope,
    shown: Mapping[str, MemoryRecord],
) -> Applied:
    content = operation.get("content")
    if not isinstance(content, str) or not content.strip():
        return Applied("remember", reason="it has no content")
    key = same_content_key(content)
    for record in shown.values():
        if same_content_key(record.content) == key:
            return Applied("remember", record.id, reason="it is remembered already")
    receipt = stack.store(content, scope=scope, origin="reflection", **_fields(operation))
    return Applied("remember", receipt.id, True, after=receipt.record)


def _change(
    action: str,
    operation: Mapping[str, Any],
    stack: MemoryStack,
    scope: Scope,
    before: MemoryRecord,
) -> Applied:
    now = stack.get(before.id, scope)
    if now is None or now.updated_at != before.updated_at:  # while the model was thinking
        return Applied(action, before.id, reason="it was changed or forgotten since it was shown")
    if action == "forget":
        report = stack.forget(before.id, scope)
        reason = None if report.forgotten else "it may still be held"
        return Applied(action, before.id, report.forgotten, reason, before=now)
    changes = _fields(operation)
    content = operation.get("content")
    if isinstance(content, str) and content.strip():
        changes["content"] = content
    if not changes:
        return Applied(action, before.id, reason="it changes nothing")
    receipt = stack.update(before.id, changes, scope)
    return Applied(action, before.id, True, before=now, after=receipt.record)


def _fields(operation: Mapping[str, Any]) -> dict[str, Any]:
    """The other fields of a memory, where the model sent something that can be used."""
    fields: dict[str, Any] = {}
    name = operation.get("kind", operation.get("type"))
    if isinstance(name, str) and name:
        fields["kind"], _ = Kind.coerce(name)
    importance = operation.get("importance")
    if isinstance(importance, int | float) and not isinstance(importance, bool):
        fields["importance"] = min(1.0, max(0.0, float(importance)))
    tags = operation.get("tags")
    if isinstance(tags, list):
        fields["tags"] = [tag for tag in tags if isinstance(tag, str) and tag.strip()]
    return fields


def _undo(
    operation: Applied, stack: MemoryStack, scope: Scope, newest: Mapping[str, datetime]
) -> Applied:
    before, after = operation.before, operation.after
    held = before if after is None else after
    assert held is not None
    now = stack.get(held.id, scope)
    if after is None:
        if now is not None:
            return Applied(operation.action, held.id, reason="it is remembered again")
        return Applied(operation.action, held.id, True, after=stack.store(held).record)
    if now is None or now.updated_at != newest.get(after.id, after.updated_at):
        return Applied(operation.action, after.id, reason="it was changed or forgotten since")
    if before is None:
        report = stack.forget(after.id, scope)
        return Applied(operation.action, after.id, report.forgotten, before=now)
    values = {name: getattr(before, name) for name in ("content", "kind", "importance", "tags")}
    receipt = stack.update(after.id, values, scope)
    return Applied(operation.action, after.id, True, before=now, after=receipt.record)
