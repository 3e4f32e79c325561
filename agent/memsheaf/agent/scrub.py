"""Blocks that come back: in what a model says, and in messages that are to be stored.

Only blocks whose id was issued are taken out. What merely looks like one is somebody's text.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from .block import NOTICE

__all__ = ["Scrubber", "strip_blocks", "strip_messages", "strip_value"]

_OPENING = "<memory-context-"
_tags = re.compile(r"\n{0,2}<memory-context-([0-9a-f]{8,64})>").finditer
# The end of a text that may become a tag: its own beginning, or line ends before it.
_unfinished = re.compile(
    r"\n{0,2}(?:<(?:m(?:e(?:m(?:o(?:r(?:y(?:-(?:c(?:o(?:n(?:t(?:e(?:x(?:t(?:-[0-9a-f]{0,64}"
    r")?)?)?)?)?)?)?)?)?)?)?)?)?)?)?)?\Z"
).search
_DEPTH = 16  # beginnings of tags in a row that are held back
_LONGEST = len(_OPENING) + 64 + 3
_NOTHING = object()  # instead of a message or part that was only a block
_NEEDED = {"tool_calls", "tool_call_id", "tool_use_id"}  # calls and results go in pairs
_space = re.compile(r"\s*").match


class Scrubber:
    r"""Takes echoed blocks out of a stream of text, however it is cut into chunks.

    A block is an issued opening tag, then the notice and lines of JSON, up to the closing tag. One
    that breaks off ends where something else begins. A sentence that names a tag is left alone.
    One scrubber serves one stream at a time; `flush` makes it ready for the next.

    Args:
        issued: The ids that count, for instance a `BlockLedger` or a set.

    >>> scrubber = Scrubber({"0123456789abcdef"})
    >>> said = ["Hi.\n\n<memory-con", 'text-0123456789abcdef>\n{"memory": "m1"}\n']
    >>> said += ["</memory-context-0123456789", "abcdef>\n\nMira."]
    >>> "".join(map(scrubber.feed, said)) + scrubber.flush()
    'Hi.\n\nMira.'
    """

    def __init__(self, issued: Container[str]) -> None:
        self._issued = issued
        self._text = ""  # not yet given out: it may be the beginning of a tag
        self._inside: str | None = None  # what was said since an opening tag, if in a block
        self._closing = ""

    def feed(self, text: str) -> str:
        """Take the next chunk, and return what can be given out."""
        return self._take(text, ended=False)

    def flush(self) -> str:
        """End the stream, and return the rest."""
        return self._take("", ended=True)

    def _take(self, text: str, *, ended: bool) -> str:
        given = ""
        if self._inside is None:
            self._text += text
        else:
            self._inside += text
        while True:
            if self._inside is not None:
                rest = _after_block(self._inside, self._closing, ended)
                if isinstance(rest, int):
                    self._inside = self._inside[rest:]
                    return given
                self._text, self._inside = self._text + rest, None
            hold = self._find(ended)
            given += self._text[:hold]
            self._text = self._text[hold:]
            if self._inside is None:
                return given

    def _find(self, ended: bool) -> int:
        """Look for a block; returns up to where the text can be given out."""
        for tag in _tags(self._text):
            if tag[1] not in self._issued:
                continue
            closing = f"</memory-context-{tag[1]}>"
            after = self._text[tag.end() :]
            state = _begins_block(after, closing, ended)
            if state is None:
                return self._unfinished(tag.start())
            if state:
                before = self._text[: tag.start()]
                self._text, self._inside, self._closing = before, after, closing
                break
        if ended and self._inside is None:
            return len(self._text)
        return self._unfinished(len(self._text))

    def _unfinished(self, end: int) -> int:
        """Where the beginnings of tags before a place start.

        One may stand before another: they come together when what is between is taken out.
        """
        for _ in range(_DEPTH):
            recent = max(0, end - _LONGEST)
            begun = _unfinished(self._text[recent:end])
            if begun is None or recent + begun.start() == end:
                break
            end = recent + begun.start()
        return end


def strip_blocks(text: str, ledger: Container[str]) -> str:
    r"""Take the blocks whose id was issued out of a text; everything else keeps its bytes.

    Args:
        text: Words of a user or a model.
        ledger: The ids that count, for instance a `BlockLedger` or a set.

    >>> tag = "memory-context-0123456789abcdef"
    >>> sent = f'Who is it?\n\n<{tag}>\n{{"memory": "m1"}}\n</{tag}>'
    >>> strip_blocks(sent, {"0123456789abcdef"})
    'Who is it?'
    """
    if _OPENING not in text:
        return text
    scrubber = Scrubber(ledger)
    return scrubber.feed(text) + scrubber.flush()


def strip_value(value: Any, ledger: Container[str]) -> Any:
    """Take blocks out of every text of a JSON value, for instance a tool's arguments.

    Args:
        value: The value; never changed.
        ledger: The ids that count.

    Returns:
        The same object where it held no block.
    """
    if isinstance(value, str):
        text = strip_blocks(value, ledger)
        return value if text == value else text
    if isinstance(value, Mapping):
        stripped = {key: strip_value(inner, ledger) for key, inner in value.items()}
        return value if all(map(operator.is_, stripped.values(), value.values())) else stripped
    if isinstance(value, list | tuple):
        items = [strip_value(inner, ledger) for inner in value]
        return value if all(map(operator.is_, items, value)) else items
    return value


def strip_messages(messages: Sequence[Any], ledger: Container[str]) -> list[Any]:
    """Take blocks out of messages before they are stored or learned from.

    Texts, tool results and the arguments of tool calls are looked through. A part, or a message,
    that was nothing but a block is left out; a message that held none is passed on as it is.

    Args:
        messages: OpenAI-style or Anthropic-style messages; never changed.
        ledger: The ids that count.

    Returns:
        A new list.
    """
    stripped = [_strip(message, ledger) for message in messages]
    return [message for message in stripped if message is not _NOTHING]


def _strip(value: Any, ledger: Container[str]) -> Any:
    """A message or part without blocks; the same object where it held none."""
    if isinstance(value, str):
        text = strip_blocks(value, ledger)
        return value if text == value else text or _NOTHING
    if not isinstance(value, Mapping):
        return value
    for name in ("content", "text"):
        held = value.get(name)
        if isinstance(held, str):
            kept: Any = _strip(held, ledger)
        elif isinstance(held, list | tuple):
            kept = strip_messages(held, ledger)
            if len(kept) == len(held) and all(map(operator.is_, kept, held)):
                continue
        else:
            continue
        if kept is not held:
            kept = "" if kept is _NOTHING else kept
            if not kept and not _NEEDED.intersection(value):
                return _NOTHING
            value = {**value, name: kept or ""}
    return _strip_calls(value, ledger)


def _strip_calls(value: Mapping[str, Any], ledger: Container[str]) -> Mapping[str, Any]:
    """A message, part or call without blocks in arguments of tools, which may be JSON in a text."""
    for name in ("tool_calls", "function", "arguments", "input"):
        held = value.get(name)
        if name == "tool_calls" and isinstance(held, list | tuple):
            kept: Any = [_strip_calls(c, ledger) if isinstance(c, Mapping) else c for c in held]
            changed = not all(map(operator.is_, kept, held))
        elif name == "function" and isinstance(held, Mapping):
            kept = _strip_calls(held, ledger)
            changed = kept is not held
        elif name in ("arguments", "input"):
            kept = _strip_arguments(held, ledger)
            changed = kept is not held
        else:
            continue
        if changed:
            value = {**value, name: kept}
    return value


def _strip_arguments(arguments: Any, ledger: Container[str]) -> Any:
    if not isinstance(arguments, str):
        return strip_value(arguments, ledger)
    if _OPENING not in arguments:
        return arguments
    try:
        decoded = json.loads(arguments)
    except ValueError:
        return strip_value(arguments, ledger)  # what a model sends is not always JSON
    stripped = strip_value(decoded, ledger)
    return arguments if stripped is decoded else json.dumps(stripped, ensure_ascii=False)


def _begins_block(text: str, closing: str, ended: bool) -> bool | None:
    """Whether a block's content follows an opening tag; None where that is not known yet."""
    text = text.lstrip()
    if text.startswith((NOTICE, '{"', closing)):
        return True
    if _may_become_content(text, closing):
        return bool(text) if ended else None
    return False


def _after_block(text: str, closing: str, ended: bool) -> str | int:
    """What follows the block; while it is not over, how much of the text can be forgotten."""
    place = 0
    while True:
        begun = len(text) if (space := _space(text, place)) is None else space.end()
        if text.startswith(closing, begun):
            return text[begun + len(closing) :]
        if text.startswith(NOTICE, begun):
            place = begun + len(NOTICE)
        elif text.startswith('{"', begun):
            ends = [end for end in (text.find(closing, begun), text.find("\n", begun)) if end >= 0]
            if not ends:
                return "" if ended else place
            place = min(ends)
        elif _may_become_content(text[begun:], closing):
            return "" if ended else place
        else:
            return text[place:]


def _may_become_content(text: str, closing: str) -> bool:
    return any(start.startswith(text) for start in (NOTICE, '{"', closing))
