"""From messages to items: what a turn said, called and got back, as a log keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Any

from memsheaf.sessionsearch import Item, ItemOrigin, NewItem

from .definitions import DEFINITIONS
from .messages import texts
from .policy import TurnOrigin

__all__ = ["items_of", "messages_of", "plain_messages", "tool_calls"]

_SPEAKS = {
    TurnOrigin.PRIMARY: ItemOrigin.USER,
    TurnOrigin.SUB_AGENT: ItemOrigin.AGENT,
    TurnOrigin.AUTOMATION: ItemOrigin.AUTOMATION,
}
_OWN_TOOLS = frozenset(definition.name for definition in DEFINITIONS)
_ATTACHMENTS = ("image", "image_url", "input_image", "file", "input_file", "document")


def plain_messages(messages: Sequence[Any]) -> list[Any]:
    """Messages as mappings: clients hand out objects, whose `model_dump` or `to_dict` gives one.

    Parts that a server calls `output_text` become `text`. What cannot be read stays as it is.
    """
    return [_plain(message) for message in messages]


def items_of(
    messages: Sequence[Any],
    *,
    origin: TurnOrigin | str = TurnOrigin.PRIMARY,
    response_id: str | None = None,
) -> list[NewItem]:
    """The items of OpenAI-style or Anthropic-style messages, in their order.

    A message with text becomes a `message`, each tool call a `tool_call`, each result a
    `tool_result`. System messages are the host's and are left out. Pictures and files are counted
    in the metadata. Of what memory's own tools answer no words are kept: they are kept already, and
    would be found, and learned, again and again.

    Args:
        messages: The messages, without blocks of memory.
        origin: Who speaks as the user; only a person's words are `user`'s own.
        response_id: Ties the items of one answer together.

    >>> [item.type for item in items_of([{"role": "user", "content": "Where is the cello?"}])]
    ['message']
    """
    speaks = _SPEAKS[TurnOrigin(origin)]
    items: list[NewItem] = []
    called: dict[str, str] = {}
    for message in plain_messages(messages):
        if isinstance(message, Mapping):
            for item in _of_message(message, speaks, response_id):
                name = str(item.data.get("name", ""))
                if item.type == "tool_call":
                    called[str(item.data["id"])] = name
                elif item.type == "tool_result" and (
                    (name or called.get(str(item.data["id"]), "")) in _OWN_TOOLS
                ):
                    item = replace(item, text="")
                items.append(item)
    return items


def messages_of(items: Sequence[NewItem | Item]) -> list[dict[str, Any]]:
    """The text messages of a conversation's items, to go on where it was left.

    They begin with words of the user. Tool calls and their results are not sent again: a server
    refuses one without the other.
    """
    said = [
        {"role": item.role, "content": item.text}
        for item in items
        if item.type == "message" and item.role in ("user", "assistant") and item.text.strip()
    ]
    return list(dropwhile(lambda message: message["role"] != "user", said))


def tool_calls(items: Sequence[NewItem | Item]) -> tuple[int, bool]:
    """How many tools were called since the user's last words, and whether one failed."""
    count, failed = 0, False
    for item in reversed(items):
        if item.type == "message" and item.role == "user":
            break
        count += item.type == "tool_call"
        failed = failed or item.status == "failed" or item.type == "error"
    return count, failed


def _plain(value: Any) -> Any:
    if not isinstance(value, Mapping):
        value = _dumped(value)
    if not isinstance(value, Mapping):
        return value
    content = value.get("content")
    if isinstance(content, list | tuple):
        parts = [_plain(part) for part in content]
        if any(part is not held for part, held in zip(parts, content, strict=True)):
            value = {**value, "content": parts}
    if value.get("type") == "output_text":
        value = {**value, "type": "text"}
    return value


def _dumped(value: Any) -> Any:
    """An object of a client as a mapping; itself where it gives none."""
    for name in ("model_dump", "to_dict"):
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            made = dump()
            return made if isinstance(made, Mapping) else value
    return value


def _of_message(
    message: Mapping[str, Any], speaks: ItemOrigin, response_id: str | None
) -> Iterator[NewItem]:
    role = message.get("role")
    if role == "tool":
        yield _result(message.get("tool_call_id"), message.get("name"), message, response_id)
        return
    if role not in ("user", "assistant"):
        return
    parts = message.get("content")
    blocks = [p for p in parts if isinstance(p, Mapping)] if isinstance(parts, list | tuple) else []
    text = "\n".join(words for words in texts(message) if words.strip())
    others = sum(b.get("type") in _ATTACHMENTS for b in blocks)
    if text or others:
        yield NewItem(
            "message",
            text,
            role=role,
            origin=speaks if role == "user" else ItemOrigin.AGENT,
            metadata={"attachments": others} if others else {},
            response_id=response_id if role == "assistant" else None,
        )
    for block in blocks:
        if block.get("type") == "tool_use":
            yield _call(block.get("id"), block.get("name"), block.get("input"), response_id)
        elif block.get("type") == "tool_result":
            yield _result(block.get("tool_use_id"), None, block, response_id)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _call(
                call.get("id"), function.get("name"), function.get("arguments"), response_id
            )


def _call(id: object, name: object, arguments: object, response_id: str | None) -> NewItem:
    given = arguments if isinstance(arguments, str) else _json(arguments)
    return NewItem(
        "tool_call",
        f"{name or ''} {given}".strip(),
        role="assistant",
        data={"id": str(id or ""), "name": str(name or ""), "arguments": given},
        response_id=response_id,
    )


def _result(
    id: object, name: object, holder: Mapping[str, Any], response_id: str | None
) -> NewItem:
    content = holder.get("content")
    if content is None:
        words = ""
    else:
        words = content if isinstance(content, str) else "\n".join(texts(holder)) or _json(content)
    data = {"id": str(id or "")} | ({"name": str(name)} if name else {})
    failed = holder.get("is_error") is True or words.startswith('{"status": "error"')
    return NewItem(
        "tool_result",
        words,
        role="tool",
        origin=ItemOrigin.TOOL,
        data=data,
        status="failed" if failed else "completed",
        response_id=response_id,
    )


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
