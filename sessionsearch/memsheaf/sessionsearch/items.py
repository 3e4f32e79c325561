"""What a conversation log holds: items, checked where they enter, and their conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from memsheaf.stack import InvalidRecord, Scope, parse_time
from memsheaf.stack.text import clean

__all__ = ["Conversation", "Item", "ItemOrigin", "NewItem", "check_name", "to_json"]

_MAX_NAME = 512
_MAX_TEXT = 64_000_000  # characters; far below what SQLite refuses
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class ItemOrigin(StrEnum):
    """Where the words of an item come from."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    IMPORT = "import"
    AUTOMATION = "automation"


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to append.

    Args:
        type: What it is: `message`, `tool_call`, `tool_result`, or any other name.
        text: Its words, which may be empty; NUL and lone surrogates are replaced.
        role: Who speaks, for instance `user` or `assistant`.
        origin: Where the words come from.
        data: Any JSON object, for instance a tool's name and arguments.
        metadata: Any JSON object: original id, parent, model, project, branch.
        created_at: When it was said, in any shape that `parse_time` reads; None for now.
        status: How it ended.
        response_id: What ties the items of one answer together.
        key: An external id, unique in its conversation; a key that is already there is not
            appended again. Only a hash of it is kept.

    Raises:
        InvalidRecord: A field is outside its rules.

    >>> NewItem("message", "Where is the cello?", role="user").status
    'completed'
    """

    type: str
    text: str = ""
    role: str | None = None
    origin: ItemOrigin = ItemOrigin.AGENT
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | str | float | None = None
    status: str = "completed"
    response_id: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        for name in ("type", "status"):
            check_name(name, getattr(self, name))
        for name in ("role", "response_id"):
            if getattr(self, name) is not None:
                check_name(name, getattr(self, name))
        if self.key is not None and not (isinstance(self.key, str) and self.key):
            raise InvalidRecord("an item's key must be text that is not empty; leave it out")
        if not isinstance(self.text, str):
            raise InvalidRecord(f"an item's text must be text, not {type(self.text).__name__}")
        if len(self.text) > _MAX_TEXT:
            raise InvalidRecord(f"an item's text is longer than {_MAX_TEXT} characters; split it")
        object.__setattr__(self, "text", clean(self.text))
        try:
            object.__setattr__(self, "origin", ItemOrigin(self.origin))
        except ValueError:  # it shows the value, and so do the next ones
            raise InvalidRecord(f"an item's origin is one of {', '.join(ItemOrigin)}") from None
        if self.created_at is not None:
            try:
                object.__setattr__(self, "created_at", parse_time(self.created_at))
            except ValueError:
                raise InvalidRecord("an item's created_at is not a time") from None


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a log; it never changes.

    Attributes:
        conversation: The conversation's id.
        seq: Its place there, from 0 without gaps.
        created_at: When it was said; aware UTC.
        recorded_at: When the log took it; aware UTC.

    >>> Item("c", 0, "message").id
    'c:0'
    """

    conversation: str
    seq: int
    type: str
    text: str = ""
    role: str | None = None
    origin: ItemOrigin = ItemOrigin.AGENT
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    recorded_at: datetime | None = None
    status: str = "completed"
    response_id: str | None = None

    @property
    def id(self) -> str:
        """`<conversation>:<seq>`."""
        return f"{self.conversation}:{self.seq}"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and what it holds.

    Attributes:
        last_seq: The last number that was given, or None before the first item.
        item_count: How many items can be read; deleted ones are not counted.
        created_at: The earliest time of an item.
        updated_at: The latest time of an item.
    """

    id: str
    scope: Scope
    title: str
    metadata: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    last_seq: int | None
    item_count: int


def check_name(what: str, value: object) -> str:
    """Return a short printable text, or raise `InvalidRecord`, which never shows it."""
    if not isinstance(value, str):
        raise InvalidRecord(f"{what} must be text, not {type(value).__name__}")
    if not value.strip() or len(value) > _MAX_NAME or not value.isprintable():
        raise InvalidRecord(f"{what} must have 1 to {_MAX_NAME} printable characters")
    return value


def to_json(what: str, value: object) -> str:
    """A JSON object as text, or raise `InvalidRecord`."""
    if not isinstance(value, Mapping):
        raise InvalidRecord(f"{what} must be a JSON object, not {type(value).__name__}")
    if not value:
        return "{}"
    try:
        text = _JSON.encode(dict(value))
    except (TypeError, ValueError, RecursionError):
        raise InvalidRecord(f"{what} cannot be written as JSON") from None
    if len(text) > _MAX_TEXT:
        raise InvalidRecord(f"{what} is longer than {_MAX_TEXT} characters")
    return clean(text)
