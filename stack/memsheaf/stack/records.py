"""The record: one curated memory, validated where it enters."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from .errors import InvalidRecord
from .kinds import Kind
from .scope import Scope
from .text import clean
from .times import now, parse_time

__all__ = [
    "CHANGEABLE",
    "CONTENT_LIMIT",
    "MemoryRecord",
    "Origin",
    "describe",
    "new_id",
    "normalise_tags",
]

CONTENT_LIMIT = 64_000
"""The default limit of a content, in characters."""

CHANGEABLE = frozenset(
    {"content", "kind", "importance", "tags", "evergreen", "metadata", "expires_at"}
)
"""The fields that `update` may change."""

_MAX_ID = 256
_MAX_TAGS, _MAX_TAG = 64, 128
_MAX_DEPTH = 32


class Origin(StrEnum):
    """Who made a record."""

    USER = "user"
    AGENT = "agent"
    REFLECTION = "reflection"
    IMPORT = "import"


def new_id() -> str:
    """A fresh record id: 32 hexadecimal characters."""
    return uuid.uuid4().hex


class MemoryRecord(BaseModel):
    """One curated memory, frozen.

    Attributes:
        id: Unique over all scopes; made where it is not given.
        content: The text; NUL and lone surrogates are replaced, blank text is refused.
        kind: What it is; a class name stands for the first kind of that class.
        importance: From 0 to 1.
        tags: Lower-cased, each once, in order.
        evergreen: Exempt from decay.
        metadata: Any JSON object.
        scope: Whose memory; at least one field is set.
        created_at: Aware UTC, like all times here; a time without a zone is taken as UTC.
        updated_at: When it last changed; of two copies the later one counts.
        last_accessed_at: When somebody last recalled it on purpose.
        access_count: How often somebody recalled it on purpose.
        expires_at: From then on it is never returned.
        origin: Who made it.
        derived_from: Ids of the conversation items that it came from.

    >>> MemoryRecord(content="Mira plays the cello", scope=Scope(user_id="mira")).kind
    <Kind.NOTE: 'note'>
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: str = Field(default_factory=new_id)
    content: str
    kind: Kind = Kind.NOTE
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    evergreen: bool = False
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    scope: Scope
    created_at: datetime = Field(default_factory=now)
    updated_at: datetime = None  # type: ignore[assignment]  # set from created_at below
    last_accessed_at: datetime = None  # type: ignore[assignment]
    access_count: int = Field(default=0, ge=0, le=2**53)
    expires_at: datetime | None = None
    origin: Origin = Origin.USER
    derived_from: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _fill_times(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        filled = dict(data)
        if filled.get("created_at") is None:
            filled["created_at"] = filled.get("updated_at") or now()
        for name in ("updated_at", "last_accessed_at"):
            if filled.get(name) is None:
                filled[name] = filled["created_at"]
        return filled

    @field_validator("id")
    @classmethod
    def _check_id(cls, value: str) -> str:
        if not value.strip() or len(value) > _MAX_ID:
            raise ValueError(f"must have 1 to {_MAX_ID} characters")
        if not value.isprintable():
            raise ValueError("must not hold control characters")
        return value

    @field_validator("content", mode="before")
    @classmethod
    def _check_content(cls, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"must be text, not {type(value).__name__}")
        if not value.strip():
            raise ValueError("must not be blank")
        return clean(value)

    @field_validator("kind", mode="before")
    @classmethod
    def _check_kind(cls, value: object) -> Kind:
        return Kind.parse(value)

    @field_validator("importance", mode="before")
    @classmethod
    def _check_importance(cls, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"must be a number from 0 to 1, not {type(value).__name__}")
        if not (math.isfinite(value) and 0 <= value <= 1):
            raise ValueError("must be a number from 0 to 1")
        return float(value)

    @field_validator("tags", mode="before")
    @classmethod
    def _check_tags(cls, value: object) -> tuple[str, ...]:
        return normalise_tags(value)

    @field_validator("metadata", mode="before")
    @classmethod
    def _check_metadata(cls, value: object) -> dict[str, JsonValue]:
        if not isinstance(value, Mapping):
            raise ValueError(f"must be an object, not {type(value).__name__}")
        checked = _json(value, 0)
        assert isinstance(checked, dict)
        return checked

    @field_validator("scope")
    @classmethod
    def _check_scope(cls, value: Scope) -> Scope:
        return value.require_writable()

    @field_validator("created_at", "updated_at", "last_accessed_at", "expires_at", mode="before")
    @classmethod
    def _check_time(cls, value: object) -> datetime | None:
        return None if value is None else parse_time(value)

    @field_validator("derived_from", mode="before")
    @classmethod
    def _check_sources(cls, value: object) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError("must be a list of item ids")
        return tuple(clean(str(item)) for item in value)

    @classmethod
    def make(cls, **fields: object) -> Self:
        """Build a record, with an error of ours where a field is outside its rules.

        Raises:
            InvalidRecord: Names the fields and their rules, never their values; also where the
                scope cannot be written.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise InvalidRecord(describe(error)) from error

    def changed(self, changes: Mapping[str, object], *, at: datetime | None = None) -> Self:
        """A copy with changes applied and a later `updated_at`.

        Args:
            changes: New values for fields named in `CHANGEABLE`.
            at: The time of the change; moved on where it is not after the present `updated_at`.

        Raises:
            InvalidRecord: A field may not be changed, or its value is outside its rules.
        """
        unknown = sorted(set(changes) - CHANGEABLE)
        if unknown:
            raise InvalidRecord(
                f"cannot change {', '.join(unknown)}; only {', '.join(sorted(CHANGEABLE))}"
            )
        moment = at or now()
        if moment <= self.updated_at:
            moment = _just_after(self.updated_at)
        return self.make(**{**self._fields(), **changes, "updated_at": moment})

    def later_than(self, moment: datetime) -> Self:
        """This record, its `updated_at` moved on where it is not after a moment."""
        if self.updated_at > moment:
            return self
        return self.model_copy(update={"updated_at": _just_after(moment)})

    def copy_out(self) -> Self:
        """A copy that shares nothing mutable with this record."""
        copied = self.__copy__()  # half the time of `model_copy`
        copied.__dict__["metadata"] = _json(self.metadata, 0) if self.metadata else {}
        return copied

    def is_expired(self, at: datetime | None = None) -> bool:
        """Whether the record may no longer be returned."""
        return self.expires_at is not None and self.expires_at <= (at or now())

    def recency(self, at: datetime | None = None) -> datetime:
        """`updated_at`, but never later than now, so that a future time outranks nothing."""
        return min(self.updated_at, at or now())

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote.

        Raises:
            InvalidRecord: It is not such a line.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InvalidRecord(describe(error)) from error

    def _fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in type(self).model_fields}


def normalise_tags(value: object) -> tuple[str, ...]:
    """Tags as they are kept: lower-cased, stripped, each once, in order; one text is one tag.

    Raises:
        ValueError: Not a list of texts, more than 64 tags, or one over 128 characters.
    """
    if isinstance(value, str):
        value = (value,)
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise ValueError("must be a list of texts")
    tags: dict[str, None] = {}
    for item in value:
        tag = clean(str(item)).strip().lower()
        if len(tag) > _MAX_TAG:
            raise ValueError(f"must have at most {_MAX_TAG} characters each")
        if tag:
            tags[tag] = None
    if len(tags) > _MAX_TAGS:
        raise ValueError(f"must be at most {_MAX_TAGS}")
    return tuple(tags)


def describe(error: ValidationError) -> str:
    """What a validation refused: fields and rules, never the values, which may be secret."""
    return "; ".join(
        f"{'.'.join(map(str, part['loc'])) or 'record'} "
        + part["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        for part in error.errors(include_url=False, include_input=False, include_context=False)
    )


def _just_after(moment: datetime) -> datetime:
    try:
        return moment + timedelta(microseconds=1)
    except OverflowError:
        return moment


def _json(value: object, depth: int) -> JsonValue:
    """A JSON value copied, cleaned and checked."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"must not nest deeper than {_MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("must not hold NaN or infinity")
        return float(value)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("must have text keys")
        return {clean(name): _json(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, depth + 1) for item in value]
    raise ValueError(f"must be JSON; {type(value).__name__} is not")
