"""What a provider hands over is believed only where it is plain: of our types, every field sound.

Records that skipped validation, classes that pretend, numbers that are none: past this place they
would break the merge for everybody.
"""

from __future__ import annotations

from datetime import datetime
from math import inf
from types import NoneType
from typing import Any

from .errors import InvalidRecord
from .kinds import Kind
from .records import MemoryRecord, Origin
from .results import Hit
from .scope import Scope
from .text import clean

__all__ = ["plain_hit", "plain_record"]

_FIELDS: dict[str, type] = {
    "id": str,
    "content": str,
    "kind": Kind,
    "importance": float,
    "tags": tuple,
    "evergreen": bool,
    "metadata": dict,
    "scope": Scope,
    "created_at": datetime,
    "updated_at": datetime,
    "last_accessed_at": datetime,
    "access_count": int,
    "expires_at": NoneType,
    "origin": Origin,
    "derived_from": tuple,
}
_SOUND = [[*_FIELDS.values()], [*{**_FIELDS, "expires_at": datetime}.values()]]


def plain_hit(given: object) -> Hit | str:
    """The hit as it may be believed, or why it may not."""
    if type(given) is Hit and _is_plain(given):
        return given
    if not issubclass(type(given), Hit):
        return "not a Hit with a MemoryRecord"
    assert isinstance(given, Hit)
    if not issubclass(type(given.record), MemoryRecord):
        return "not a Hit with a MemoryRecord"
    record = plain_record(given.record)
    if record is None:
        return "its record breaks the rules of records"
    score, share = _number(given.score), given.relevance
    if score is None:
        return "its score is not a finite number"
    relevance = None if share is None else _number(share)
    if share is not None and (relevance is None or not 0 <= relevance <= 1):
        return "its relevance is not in [0, 1]"
    native = given.native_ids
    if type(native) is not tuple or any(type(each) is not str for each in native):
        return "its native ids are not a tuple of texts"
    return Hit(record, score, relevance, native)


def _is_plain(hit: Hit) -> bool:
    """Whether a hit needs no mending, which is the usual case and has to be quick."""
    record, score, share = hit.record, hit.score, hit.relevance
    return (
        type(record) is MemoryRecord
        and type(score) is float
        and -inf < score < inf
        and (share is None or (type(share) is float and 0.0 <= share <= 1.0))
        and type(hit.native_ids) is tuple
        and not (hit.native_ids or hit.sources)
        and _is_sound(record.__dict__)
    )


def plain_record(given: object) -> MemoryRecord | None:
    """The record where it is sound, else made anew by its rules; None where they refuse it."""
    kind = type(given)
    if not issubclass(kind, MemoryRecord):
        return None
    fields: dict[str, Any] = given.__dict__
    if kind is MemoryRecord and _is_sound(fields):
        return given  # type: ignore[return-value]
    try:
        made = MemoryRecord.make(
            id=fields.get("id"), **{n: fields[n] for n in _FIELDS if n in fields and n != "id"}
        )
    except InvalidRecord:
        return None
    return made if _is_sound(made.__dict__) else None


def _is_sound(fields: dict[str, Any]) -> bool:
    """Whether every field of a record has its type and what the merge relies on holds."""
    if list(map(type, fields.values())) not in _SOUND:
        return False
    content, tags, expires = fields["content"], fields["tags"], fields["expires_at"]
    return (
        fields["updated_at"].tzinfo is not None
        and fields["created_at"].tzinfo is not None
        and (expires is None or expires.tzinfo is not None)
        and 0.0 <= fields["importance"] <= 1.0
        and (not tags or all(type(tag) is str for tag in tags))
        and content != ""
        and (("\0" not in content) if content.isascii() else clean(content) == content)
    )


def _number(value: object) -> float | None:
    """A finite number as a float, or None."""
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            value = float.__float__(value) if isinstance(value, float) else float(value)
        except OverflowError:
            return None
    return value if -inf < value < inf else None
