"""What importers share: ids, times, keys, and the text of contents and tool calls."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from memsheaf.sessionsearch.items import NewItem
from memsheaf.stack import InvalidRecord, parse_time
from memsheaf.stack.text import clean

from .base import Entry, Problem

__all__ = [
    "as_text",
    "call_text",
    "chain",
    "content_text",
    "conversation_id",
    "entry",
    "label",
    "moment",
    "place",
    "some",
]

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_OLDEST = datetime(1990, 1, 1, tzinfo=UTC)
_DAY = 86400.0
_MAX_PLACE = 4096
_MAX_ID = 400  # leaves room for what is put around it


def conversation_id(format: str, original: object) -> str:
    """The id of a conversation: the original one where that is a UUID, else with the format.

    >>> conversation_id("codex", "monday")
    'codex:monday'
    """
    return _named(format, str(original))


@lru_cache(maxsize=1024)
def _named(format: str, text: str) -> str:
    if _UUID.fullmatch(text):
        return text.lower()
    if not text.isprintable() or not text.strip() or len(text) > _MAX_ID or clean(text) != text:
        text = chain("", text)
    return f"{format}:{text}"


def label(value: object) -> str | None:
    """An original id as it may stand in a field; None where it is no short printable text."""
    if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= _MAX_ID:
        return value
    return None


def place(value: object) -> str | None:
    """A folder, as it is written; None where it is no text of a sensible length."""
    return value if isinstance(value, str) and len(value) <= _MAX_PLACE else None


def moment(value: object) -> datetime | None:
    """A time in any shape that `parse_time` reads; None for one that cannot be true.

    Chats before 1990 and after tomorrow do not exist: such a time is a fault of a clock, and
    would stay on top of each list for ever.
    """
    if value is None:
        return None
    try:
        found = parse_time(value)
    except ValueError:
        return None
    return found if found >= _OLDEST and found.timestamp() < time.time() + _DAY else None


def chain(previous: str, *parts: object) -> str:
    """A key for something without an id: a hash of the parts and of the key before it.

    Two equal messages get two keys, and the same conversation in two files gets the same ones.
    """
    hashed = hashlib.blake2b(digest_size=16)
    for part in (previous, *parts):
        data = str(part).encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.hexdigest()


def some(**fields: object) -> dict[str, Any]:
    """The fields that hold something.

    >>> some(id="u1", branch="", parent=None)
    {'id': 'u1'}
    """
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def as_text(value: object) -> str:
    """A JSON value as text: a string as it is, nothing for null, the rest as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def call_text(name: str, arguments: object) -> str:
    r"""A tool call as text: its name, then its arguments, one a line.

    >>> call_text("grep", {"pattern": "cello", "all": True})
    'grep\npattern: cello\nall: true'
    """
    if isinstance(arguments, Mapping):
        lines = [f"{key}: {as_text(value)}" for key, value in arguments.items()]
    else:
        lines = [as_text(arguments)]
    return "\n".join([name, *filter(None, lines)])


def content_text(content: object) -> str:
    """The words of a message's content: a string, a part, or a list of them.

    What is no text leaves a mark, such as `[image]`; its bytes are left out.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(content_text, content)))
    if not isinstance(content, Mapping):
        return ""
    for name in ("text", "refusal"):
        if isinstance(content.get(name), str):
            return str(content[name])
    kind = label(content.get("type"))
    if kind in (None, "text"):
        return ""
    if "content" in content:
        return content_text(content["content"])
    return f"[{kind.removeprefix('input_').removesuffix('_url')}]" if kind else ""


def entry(conversation: str, line: int | None, **fields: Any) -> Entry | Problem:
    """An entry, or the problem that its fields are; the arguments are those of `NewItem`."""
    try:
        return Entry(conversation, NewItem(**fields))
    except InvalidRecord as error:
        return Problem(line, str(error))
