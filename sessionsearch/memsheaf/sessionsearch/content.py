"""What of an item can be found: its text, and what its data says beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from memsheaf.stack.text import same_content_key

from .items import Item

__all__ = ["content_of", "same_text"]

_DEEPEST = 16
_TIES = {"id", "call_id"}
"""What ties a tool's result to its call, and nobody said."""


def content_of(item: Item) -> str:
    r"""The text of an item, and the words of its data that the text does not have.

    Ids of calls are no words, and of an attachment only its name is.

    >>> content_of(Item("c", 0, "tool_call", data={"name": "find", "arguments": {"what": "cello"}}))
    'find\nwhat cello'
    """
    if not item.data:
        return item.text
    parts = [item.text] if item.text else []
    for key, value in item.data.items():
        if key in _TIES:
            continue
        if key == "attachments":
            value = "\n".join(_names(value))
        words = " ".join(_words(value, 0))
        if words and words not in item.text:
            parts.append(words if isinstance(value, str | Mapping) else f"{key} {words}")
    return "\n".join(parts)


def same_text(item: Item) -> int:
    """A number that items share where type, role and text are the same but for case and space."""
    words = same_content_key(content_of(item))
    named = f"{item.type}\0{item.role or ''}\0{words}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "little")


def _names(attachments: Any) -> Iterator[str]:
    for each in attachments if isinstance(attachments, list | tuple) else ():
        if isinstance(each, Mapping) and isinstance(name := each.get("name"), str):
            yield name


def _words(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif value is None or isinstance(value, bool) or depth > _DEEPEST:
        return
    elif isinstance(value, Mapping):
        for key, each in value.items():
            words = " ".join(_words(each, depth + 1))
            yield f"{key} {words}" if words else str(key)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _words(each, depth + 1)
    else:
        yield str(value)
