"""Filters: which records a query may return, beside its text and scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from .errors import InvalidQuery
from .kinds import Kind
from .records import MemoryRecord, describe, normalise_tags
from .scope import Scope
from .times import parse_time

__all__ = ["Filter", "refusal"]


class Filter(BaseModel):
    """Conditions that all have to hold; an empty condition is no condition.

    Attributes:
        kinds: Any of these; a class name stands for all of its kinds.
        tags_any: At least one of these tags.
        tags_all: All of these tags.
        since: Created at or after this time.
        until: Created at or before this time.
        where: Metadata values that must be equal, compared as JSON at the top level.

    >>> Filter.make(kinds=["procedural"], tags_any="Deploy").tags_any
    ('deploy',)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    kinds: tuple[Kind, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    where: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("kinds", mode="before")
    @classmethod
    def _expand_kinds(cls, value: object) -> tuple[Kind, ...]:
        if value is None:
            return ()
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, Iterable):
            raise ValueError("must be a list of kinds")
        return tuple(dict.fromkeys(kind for name in names for kind in Kind.expand(name)))

    @field_validator("tags_any", "tags_all", mode="before")
    @classmethod
    def _normalise_tags(cls, value: object) -> tuple[str, ...]:
        return () if value is None else normalise_tags(value)

    @field_validator("since", "until", mode="before")
    @classmethod
    def _parse_time(cls, value: object) -> datetime | None:
        return None if value is None else parse_time(value)

    @field_validator("where", mode="before")
    @classmethod
    def _default_where(cls, value: object) -> object:
        return {} if value is None else value

    @classmethod
    def make(cls, **conditions: object) -> Self:
        """Build a filter, with an error of ours where a condition is wrong.

        Raises:
            InvalidQuery: Names the condition and its rule.
        """
        try:
            return cls.model_validate(conditions)
        except ValidationError as error:
            raise InvalidQuery(f"filter: {describe(error)}") from error

    @classmethod
    def of(cls, value: Filter | Mapping[str, object] | None) -> Filter | None:
        """Read a filter argument; a filter without a condition becomes None.

        Raises:
            InvalidQuery: A condition is unknown or wrong.
        """
        if value is None:
            return None
        if not isinstance(value, Filter | Mapping):
            raise InvalidQuery(f"filter: must be a Filter or a mapping, not {type(value).__name__}")
        made = value if isinstance(value, Filter) else cls.make(**value)
        return None if made == _NO_CONDITION else made

    def matches(self, record: MemoryRecord) -> bool:
        """Whether a record meets every condition."""
        if self.kinds and record.kind not in self.kinds:
            return False
        if self.tags_any and not set(self.tags_any) & set(record.tags):
            return False
        if self.tags_all and not set(self.tags_all) <= set(record.tags):
            return False
        if self.since is not None and record.created_at < self.since:
            return False
        if self.until is not None and record.created_at > self.until:
            return False
        return all(
            key in record.metadata and _same(record.metadata[key], value)
            for key, value in self.where.items()
        )


def refusal(
    record: MemoryRecord, scope: Scope, filters: Filter | None, moment: datetime
) -> str | None:
    """Why a query may not return a record, or None where it may.

    Args:
        record: The record.
        scope: Who asks.
        filters: Conditions, or None.
        moment: Now.
    """
    if not scope.matches(record.scope):
        return "outside the scope"
    if record.expires_at is not None and record.expires_at <= moment:
        return "expired"
    if filters is not None and not filters.matches(record):
        return "refused by the filter"
    return None


def _same(left: JsonValue, right: JsonValue) -> bool:
    """JSON equality: true and 1 differ at any depth, though Python holds them equal."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right and isinstance(left, bool) == isinstance(right, bool)


_NO_CONDITION = Filter()
