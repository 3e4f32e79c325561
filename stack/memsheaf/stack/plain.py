"""What a provider hands over is believed only where it is plain: of our types, every field sound.

Records that skipped validation, classes that pretend, numbers that are none: past this place they
would break the merge for everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Any, TypeGuard

from .errors import InvalidRecord
from .kinds import Kind
from .records import MemoryRecord, Origin
from .results import Hit
from .scope import Scope
from .text import clean

__all__ = ["are_plain", "plain_hit", "plain_record"]

_NAMES = [*MemoryRecord.model_fields]


def plain_hit(given: object) -> Hit | str:
    """The hit as it may be believed, or why it may not."""
    if not issubclass(type(given), Hit):
        return "not a Hit with a MemoryRecord"
    assert isinstance(given, Hit)
    if are_plain((given,)):
        return given
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


def are_plain(hits: Sequence[object]) -> TypeGuard[Sequence[Hit]]:
    """Whether no hit needs mending, which is the usual case and has to be quick."""
    for hit in hits:
        if type(hit) is not Hit or type(hit.record) is not MemoryRecord:
            return False
        score, share, native = hit.score, hit.relevance, hit.native_ids
        if type(score) is not float or not -inf < score < inf:
            return False
        if share is not None and (type(share) is not float or not 0.0 <= share <= 1.0):
            return False
        if type(native) is not tuple or native or hit.sources:
            return False
        if not _is_sound(hit.record.__dict__):
            return False
    return True


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
            id=fields.get("id"),
            **{n: fields[n] for n in MemoryRecord.model_fields if n in fields and n != "id"},
        )
    except InvalidRecord:
        return None
    return made if _is_sound(made.__dict__) else None


def _is_sound(fields: dict[str, Any]) -> bool:
    """Whether every field of a record has its type and what the merge relies on holds."""
    if [*fields] != _NAMES:
        return False
    (
        record_id, content, kind, importance, tags, evergreen, metadata, scope,
        created, updated, accessed, count, expires, origin, sources,
    ) = fields.values()  # fmt: skip
    return (
        type(record_id) is str
        and type(content) is str
        and type(kind) is Kind
        and type(importance) is float
        and type(tags) is tuple
        and type(evergreen) is bool
        and type(metadata) is dict
        and type(scope) is Scope
        and type(created) is datetime
        and type(updated) is datetime
        and type(accessed) is datetime
        and type(count) is int
        and (expires is None or (type(expires) is datetime and expires.tzinfo is not None))
        and type(origin) is Origin
        and type(sources) is tuple
        and created.tzinfo is not None
        and updated.tzinfo is not None
        and 0.0 <= importance <= 1.0
        and (not tags or {*map(type, tags)} == {str})
        and content != ""
        and clean(content) == content
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
