"""What a provider hands over is believed only where it is plain: of our types, every field sound.

Records that skipped validation, classes that pretend, numbers that are none: past this place they
would break the merge for everybody.
"""

from __future__ import annotations

from datetime import datetime
from math import isfinite
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
_SOUND = {tuple(_FIELDS.values()), tuple({**_FIELDS, "expires_at": datetime}.values())}


def plain_hit(given: object) -> Hit | str:
    """The hit as it may be believed, or why it may not."""
    if type(given) is not Hit and not issubclass(type(given), Hit):
        return "not a Hit with a MemoryRecord"
    assert isinstance(given, Hit)
    if not issubclass(type(given.record), MemoryRecord):
        return "not a Hit with a MemoryRecord"
    record = plain_record(given.record)
    if record is None:
        return "its record breaks the rules of records"
    score = _number(given.score)
    if score is None:
        return "its score is not a finite number"
    share = given.relevance
    relevance = None if share is None else _number(share)
    if share is not None and (relevance is None or not 0 <= relevance <= 1):
        return "its relevance is not in [0, 1]"
    native = given.native_ids
    if native and not (type(native) is tuple and all(type(each) is str for each in native)):
        return "its native ids are not a tuple of texts"
    same = record is given.record and score is given.score and relevance is share
    if same and type(given) is Hit and not given.sources:
        return given
    return Hit(record, score, relevance, native or ())


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
    if tuple(map(type, fields.values())) not in _SOUND:
        return False
    content, tags, expires = fields["content"], fields["tags"], fields["expires_at"]
    return (
        fields["updated_at"].tzinfo is not None
        and fields["created_at"].tzinfo is not None
        and (expires is None or expires.tzinfo is not None)
        and 0 <= fields["importance"] <= 1
        and (not tags or all(type(tag) is str for tag in tags))
        and bool(content)
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
    return value if isfinite(value) else None
