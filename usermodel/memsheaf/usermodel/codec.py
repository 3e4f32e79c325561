"""Profiles and items as JSON text, the only form in which they are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.stack import StoreCorrupt

from .profile import Line, LineKind, LineOrigin, Profile

__all__ = [
    "QueuedRow",
    "Tombstone",
    "corrupt",
    "decode_fields",
    "decode_item",
    "decode_profile",
    "encode_item",
    "encode_profile",
    "line_to_json",
    "to_json",
]

_LINE = tuple(field.name for field in fields(Line))
_TIMES = ("first_seen", "last_seen", "ended_at")
_TUPLES = ("sources", "ended_by")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A forgotten statement, by its keyed hash: what was said before it may not bring it back.

    Attributes:
        statement: The hash.
        until: Items that were handed over up to this time are meant; Unix time in seconds.
    """

    statement: str
    until: float


def to_json(value: object) -> str:
    """Compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def line_to_json(line: Line) -> dict[str, Any]:
    """A line as a JSON object; what is absent is left out."""
    pairs = ((name, getattr(line, name)) for name in _LINE)  # asdict copies, and is much slower
    found = {name: value for name, value in pairs if value is not None and value != ()}
    for name in _TIMES:
        if name in found:
            found[name] = found[name].isoformat()
    return found


def encode_profile(profile: Profile, tombstones: Sequence[Tombstone] = ()) -> str:
    """A profile as JSON text."""
    return to_json(
        {
            "user_id": profile.user_id,
            "version": profile.version,
            "last_id": profile.last_id,
            "lines": [line_to_json(line) for line in profile.lines],
            "tombstones": [[each.statement, each.until] for each in tombstones],
        }
    )


def decode_profile(text: str) -> tuple[Profile, tuple[Tombstone, ...]]:
    """What `encode_profile` wrote.

    Raises:
        StoreCorrupt: It is something else.
    """
    try:
        found = json.loads(text)
        lines = tuple(_line(each) for each in found["lines"])
        profile = Profile(found["user_id"], found["version"], lines, found["last_id"])
        return profile, tuple(Tombstone(*each) for each in found["tombstones"])
    except (ValueError, TypeError, KeyError) as error:
        raise corrupt() from error


@dataclass(frozen=True, slots=True)
class QueuedRow:
    """What the queue keeps of an item.

    Attributes:
        item: What of it a deriver reads, with the user's own words as its text.
        taken_at: When it was handed over, Unix time in seconds.
        error: Why it was set aside.
    """

    item: Item
    taken_at: float
    error: str | None = None


def encode_item(item: Item, text: str, taken_at: float, error: str | None = None) -> str:
    """A queued item as JSON text."""
    said_at = item.created_at or item.recorded_at
    moment = said_at.isoformat() if said_at else None
    return to_json([item.conversation, item.seq, moment, text, taken_at, error])


def decode_item(value: str) -> QueuedRow:
    """What `encode_item` wrote.

    Raises:
        StoreCorrupt: It is something else.
    """
    try:
        conversation, seq, said_at, text, taken_at, error = json.loads(value)
        moment = datetime.fromisoformat(said_at) if said_at else None
    except (ValueError, TypeError) as broken:
        raise corrupt() from broken
    item = replace(_SAID, conversation=conversation, seq=seq, text=text, created_at=moment)
    return QueuedRow(item, taken_at, error)


_State = TypeVar("_State")


def decode_fields(kind: type[_State], text: str) -> _State:
    """A small dataclass from a JSON object of its fields.

    Raises:
        StoreCorrupt: It is something else.
    """
    try:
        return kind(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise corrupt() from error


_SAID = Item("", 0, "message", "", "user", ItemOrigin.USER)


def _line(found: dict[str, Any]) -> Line:
    found["kind"] = LineKind(found["kind"])
    found["origin"] = LineOrigin(found["origin"])
    for name in _TIMES:
        if name in found:
            found[name] = datetime.fromisoformat(found[name])
    for name in _TUPLES:
        if name in found:
            found[name] = tuple(found[name])
    return Line(**found)


def corrupt() -> StoreCorrupt:
    """The error of a row that is not what this code writes."""
    return StoreCorrupt("a row of the user model cannot be read; restore a backup")
