"""Messages as the OpenAI chat API writes them, and as its kin do, to items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Event, ImportOptions, Skipped
from .render import content_text, label, some
from .turns import Turns, mapping_of, text_or_none

__all__ = ["CALL_TYPES", "words_of", "write_message"]

_TIMES = ("timestamp", "created_at", "create_time", "created", "time")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_ROLES = {"human": "user", "ai": "assistant", "function": "tool"}
_PARTS = ("tool_use", "tool_call", "tool_result", "thinking", "redacted_thinking", "reasoning")
CALL_TYPES = ("function_call", "custom_tool_call", "function_call_output", "reasoning")
"""What stands beside messages in the lists of the responses API."""


def write_message(
    turns: Turns, message: Mapping[str, Any], key: str, options: ImportOptions, model: str | None
) -> Iterator[Event]:
    """The items of one message: its reasoning, its words, its tool calls or its tool's result.

    Args:
        turns: Of the conversation.
        message: `role`, `content`, `tool_calls`, and the like.
        key: Of the message; its other items get keys made from it.
        options: Whether reasoning is kept.
        model: The conversation's, where the message names none.
    """
    common: dict[str, Any] = {
        "time": next((message[field] for field in _TIMES if message.get(field)), None),
        "metadata": some(
            id=label(message.get("id")),
            name=label(message.get("name")),
            model=label(message.get("model")) or model,
        ),
    }
    kind = message.get("type")
    if kind in ("function_call", "custom_tool_call"):
        arguments = message.get("arguments") or message.get("input")
        call_id = message.get("call_id")
        yield turns.tool_call(message.get("name"), arguments, key=key, call_id=call_id, **common)
    elif kind == "function_call_output":
        output, call_id = message.get("output"), message.get("call_id")
        yield turns.tool_result(output, key=key, call_id=call_id, **common)
    elif kind == "reasoning":
        thought = content_text(message.get("summary")) or content_text(message.get("content"))
        if thought and options.include_thinking:
            yield turns.other("reasoning", thought, "assistant", key=key, **common)
    else:
        yield from _message(turns, message, key, options, common)


def words_of(message: Mapping[str, Any]) -> str:
    """What was said in a message; parts that are calls, results and reasoning are left out."""
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if mapping_of(part).get("type") not in _PARTS]
    return content_text(content) or content_text(message.get("refusal"))


def _message(
    turns: Turns,
    message: Mapping[str, Any],
    key: str,
    options: ImportOptions,
    common: Mapping[str, Any],
) -> Iterator[Event]:
    role = label(message.get("role")) or "unknown"
    role = _ROLES.get(role, role)
    if role == "tool":
        ids = {"name": message.get("name"), "call_id": message.get("tool_call_id")}
        yield turns.tool_result(message.get("content"), key=key, **ids, **common)
        return
    content = message.get("content")
    parts = [mapping_of(part) for part in content] if isinstance(content, list) else []
    thoughts = [message.get(field) for field in _REASONING]
    thoughts += [part.get("thinking") or part.get("reasoning") for part in parts]
    told = "\n".join(filter(None, map(text_or_none, thoughts)))
    if told and options.include_thinking:
        yield turns.other("reasoning", told, role, key=f"{key}:reasoning", **common)
    text = words_of(message) or content_text(mapping_of(message.get("audio")).get("transcript"))
    if text:
        yield turns.message(text, role, key=key, **common)
    made = 0
    for made, (name, arguments, call_id) in enumerate(_calls(message, parts), 1):
        at = f"{key}:call:{made}"
        yield turns.tool_call(name, arguments, key=at, call_id=call_id, **common)
    for part in parts:
        if part.get("type") == "tool_result":
            made += 1
            output, call_id = part.get("content"), part.get("tool_use_id")
            at = f"{key}:result:{made}"
            yield turns.tool_result(output, key=at, call_id=call_id, **common)
    if not (text or told or made):
        yield Skipped("empty message")


def _calls(
    message: Mapping[str, Any], parts: list[dict[str, Any]]
) -> Iterator[tuple[object, object, object]]:
    """Name, arguments and id of each call, in every shape; one in two places counts once."""
    listed = message.get("tool_calls")
    calls = [mapping_of(call) for call in listed] if isinstance(listed, list) else []
    if message.get("function_call"):  # before there were tools
        calls.append({"function": message["function_call"]})
    calls += [part for part in parts if part.get("type") in ("tool_use", "tool_call")]
    seen = set()
    for call in calls:
        inner = mapping_of(call.get("function") or call.get("custom")) or call
        call_id = label(call.get("id"))
        if call_id is not None and call_id in seen:
            continue
        seen.add(call_id)
        given = (inner.get(field) for field in ("arguments", "args", "input"))
        yield inner.get("name"), next((g for g in given if g), None), call_id
