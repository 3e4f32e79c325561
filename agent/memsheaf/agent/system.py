"""The providers' static text in the system prompt, the same bytes from turn to turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from memsheaf.stack import AsyncMemoryStack, MemoryStack, Scope

from .messages import after_system, check_messages, texts

__all__ = ["ainject_system", "ainject_system_value", "inject_system", "inject_system_value"]


def inject_system(
    messages: Sequence[Any], stack: MemoryStack, *, scope: Scope | None = None
) -> list[Any]:
    """Put the providers' static text into the system prompt of an OpenAI-style list.

    It becomes one message after the leading run of system messages, in their role. A list that
    holds it already gets no second one.

    Args:
        messages: The request's messages; never changed.
        stack: Whose providers to ask.
        scope: Whose memory; the stack's default where not given.

    Returns:
        A new list; the added message is the same bytes from turn to turn.

    Raises:
        ScopeError: There is no scope.
    """
    check_messages(messages)
    text = _static_text(stack, scope)
    end, role = after_system(messages)
    if not text or any(text in texts(message) for message in messages[:end]):
        return list(messages)
    return [*messages[:end], {"role": role, "content": text}, *messages[end:]]


def inject_system_value(
    system: str | Sequence[Any] | None, stack: MemoryStack, *, scope: Scope | None = None
) -> str | list[Any]:
    """Put the providers' static text after an Anthropic-style ``system`` value.

    Args:
        system: A text, a list of text blocks, or None; never changed.
        stack: Whose providers to ask.
        scope: Whose memory; the stack's default where not given.

    Returns:
        A text for a text or None, a new list for a list; unchanged where it holds the text
        already or there is none.

    Raises:
        ScopeError: There is no scope.
    """
    text = _static_text(stack, scope)
    if system is None or isinstance(system, str):
        before = system or ""
        if not text or before == text or before.endswith(f"\n\n{text}"):
            return before
        return f"{before}\n\n{text}" if before else text
    if not text or text in texts({"content": list(system)}):
        return list(system)
    return [*system, {"type": "text", "text": text}]


async def ainject_system(
    messages: Sequence[Any], stack: AsyncMemoryStack, *, scope: Scope | None = None
) -> list[Any]:
    """See `inject_system`."""
    return await asyncio.to_thread(inject_system, messages, stack.sync, scope=scope)


async def ainject_system_value(
    system: str | Sequence[Any] | None, stack: AsyncMemoryStack, *, scope: Scope | None = None
) -> str | list[Any]:
    """See `inject_system_value`."""
    return await asyncio.to_thread(inject_system_value, system, stack.sync, scope=scope)


def _static_text(stack: MemoryStack, scope: Scope | None) -> str:
    return "\n\n".join(text.strip() for _, text in stack.system_prompt(scope))
