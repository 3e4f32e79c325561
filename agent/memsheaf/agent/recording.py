"""From messages to items: what a turn said, called and got back, as a log keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from memsheaf.sessionsearch import Item, ItemOrigin, NewItem

from .messages import texts
from .policy import TurnOrigin

__all__ = ["items_of", "messages_of", "new_items", "tool_calls"]

_SPEAKS = {
    TurnOrigin.PRIMARY: ItemOrigin.USER,
    TurnOrigin.SUB_AGENT: ItemOrigin.AGENT,
    TurnOrigin.AUTOMATION: ItemOrigin.AUTOMATION,
}


def items_of(
    messages: Sequence[Any],
    *,
    origin: TurnOrigin | str = TurnOrigin.PRIMARY,
    response_id: str | None = None,
) -> list[NewItem]:
    """The items of OpenAI-style or Anthropic-style messages, in their order.

    A message with text becomes a `message`, each tool call a `tool_call`, each result a
    `tool_result`. System messages are the host's and are left out. Pictures and files are counted
    in the metadata.

    Args:
        messages: The messages, without blocks of memory.
        origin: Who speaks as the user; only a person's words are `user`'s own.
        response_id: Ties the items of one answer together.

    >>> [item.type for item in items_of([{"role": "user", "content": "Where is the cello?"}])]
    ['message']
    """
    speaks = _SPEAKS[TurnOrigin(origin)]
    items: list[NewItem] = []
    for message in messages:
        if isinstance(message, Mapping):
            items += _of_message(message, speaks, response_id)
    return items


def messages_of(items: Sequence[NewItem | Item]) -> list[dict[str, Any]]:
    """The text messages of a conversation's items, to go on where it was left.

    Tool calls and their results are not sent again: a server refuses one without the other.
    """
    return [
        {"role": item.role, "content": item.text}
        for item in items
        if item.type == "message" and item.role in ("user", "assistant") and item.text.strip()
    ]


def new_items(items: Sequence[NewItem], tail: Sequence[Item], next_seq: int) -> list[NewItem]:
    """Those of a conversation's items that a log does not have, by what its end says.

    The log's end is looked for in the items, also where a framework has cut off the beginning;
    what follows it is new. Where it stands in several places, a list from the conversation's
    beginning tells which; without one it is the last.

    Args:
        items: The items of a request and its answer, from `items_of`.
        tail: The log's last items of these types, oldest first.
        next_seq: The number that the next item will get.

    Returns:
        The new ones, with keys by which two writers of the same turn keep it once.
    """
    said = [_told(item) for item in items]
    held = [_told(item) for item in tail]
    places = [min(next_seq, len(said)), *range(len(said), 0, -1)]
    first = next((place for place in places if _ends_with(held, said[:place])), 0)
    return [
        replace(item, key=f"turn:{seq}:{_digest(_told(item))}")
        for seq, item in enumerate(items[first:], next_seq)
    ]


def tool_calls(items: Sequence[NewItem | Item]) -> tuple[int, bool]:
    """How many tools were called since the user's last words, and whether one failed."""
    count, failed = 0, False
    for item in reversed(items):
        if item.type == "message" and item.role == "user":
            break
        count += item.type == "tool_call"
        failed = failed or item.status == "failed" or item.type == "error"
    return count, failed


def _told(item: NewItem | Item) -> str:
    """What two records of the same item have in common."""
    return json.dumps([item.type, item.role, item.text, dict(item.data)], ensure_ascii=False)


def _ends_with(held: Sequence[str], said: Sequence[str]) -> bool:
    """Whether both end alike, as far back as both go."""
    both = min(len(held), len(said))
    return both > 0 and list(held[-both:]) == list(said[-both:])


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


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
    others = sum(b.get("type") in ("image", "image_url", "input_image", "file") for b in blocks)
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
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _call(
                call.get("id"), function.get("name"), function.get("arguments"), response_id
            )


def _call(id: object, name: object, arguments: object, response_id: str | None) -> NewItem:
    given = arguments if isinstance(arguments, str) else _json(arguments)
    return NewItem(
        "tool_call",
        f"{name} {given}",
        role="assistant",
        data={"id": str(id or ""), "name": str(name or ""), "arguments": given},
        response_id=response_id,
    )


def _result(
    id: object, name: object, holder: Mapping[str, Any], response_id: str | None
) -> NewItem:
    content = holder.get("content")
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
