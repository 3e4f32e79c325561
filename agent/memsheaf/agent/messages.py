"""The shapes of messages: OpenAI-style and Anthropic-style, text, parts or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memsheaf.stack import UsageError

__all__ = ["after_system", "check_messages", "is_own", "last_own", "role_of", "texts", "with_block"]

_TEXT_PARTS = ("text", "input_text")
_TOOL_RESULTS = ("tool_result", "tool-result")
_MAPPINGS = (dict, Mapping)  # the common one first, the other check is slow
_SYSTEM_ROLES = ("system", "developer")


def last_own(messages: Sequence[Any]) -> int | None:
    """The index of the last message that holds the user's own words, or pictures and files.

    A message without content, or with tool results only, is not it.

    >>> last_own([{"role": "user", "content": "weather?"}, {"role": "user", "content": None}])
    0
    """
    for place in reversed(range(len(messages))):
        if is_own(messages[place]):
            return place
    return None


def is_own(message: object) -> bool:
    """Whether a message holds the user's own words, or pictures and files."""
    return role_of(message) == "user" and any(map(_is_own, _parts(message)))


def texts(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message, in order, without those inside tool results.

    >>> texts({"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]})
    ['hi']
    """
    return [text for part in _parts(message) if (text := _text(part)) is not None]


def with_block(message: Mapping[str, Any], block: str) -> dict[str, Any]:
    """A copy of a message with a block after its content."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": f"{content}\n\n{block}"}
    kinds = {part.get("type") for part in content if isinstance(part, _MAPPINGS)}
    kind = "input_text" if any(str(k).startswith("input_") for k in kinds) else "text"
    return {**message, "content": [*content, {"type": kind, "text": block}]}


def after_system(messages: Sequence[Any]) -> tuple[int, str]:
    """Where the leading run of system messages ends, and the role that it uses."""
    end, role = 0, "system"
    while end < len(messages) and role_of(messages[end]) in _SYSTEM_ROLES:
        role = str(role_of(messages[end]))
        end += 1
    return end, role


def role_of(message: object) -> object:
    """The role of a message; None where it is no mapping or has none."""
    return message.get("role") if isinstance(message, _MAPPINGS) else None


def _parts(message: object) -> Sequence[object]:
    content = message.get("content") if isinstance(message, _MAPPINGS) else None
    if isinstance(content, str):
        return (content,)
    return content if isinstance(content, list | tuple) else ()


def _text(part: object) -> str | None:
    """The text of a part; None where it is something else."""
    if isinstance(part, str):
        return part
    if isinstance(part, _MAPPINGS) and part.get("type") in _TEXT_PARTS:
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return None


def _is_own(part: object) -> bool:
    text = _text(part)
    if text is not None:
        return bool(text.strip())
    kind = part.get("type") if isinstance(part, _MAPPINGS) else None
    return isinstance(kind, str) and kind not in _TOOL_RESULTS


def check_messages(messages: object) -> None:
    """Refuse what is no list of messages.

    Raises:
        UsageError: It is text, a mapping, or no sequence.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise UsageError("messages must be a list of messages")
