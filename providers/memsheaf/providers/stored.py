"""Reading back the line of JSON that a record was stored as, quickly."""

from __future__ import annotations

from datetime import UTC

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from memsheaf.stack import Kind, MemoryRecord, Origin, Scope, ScopeError

__all__ = ["read_stored"]

_TIMES = ("created_at", "updated_at", "last_accessed_at")


class _Line(BaseModel):
    """The fields as `MemoryRecord.to_json` writes them, with their types."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1, max_length=256)
    content: str
    kind: Kind
    importance: float = Field(ge=0, le=1, strict=True)
    tags: tuple[str, ...]
    evergreen: bool
    metadata: dict[str, JsonValue]
    scope: Scope
    created_at: AwareDatetime
    updated_at: AwareDatetime
    last_accessed_at: AwareDatetime
    access_count: int = Field(ge=0, le=2**53)
    expires_at: AwareDatetime | None
    origin: Origin
    derived_from: tuple[str, ...]


_NAMES = set(_Line.model_fields)  # one for all records: a set of its own would double each


def read_stored(text: str) -> MemoryRecord:
    r"""Read what `MemoryRecord.to_json` wrote, in a third of the time of `from_json`.

    What passed the rules when it was stored has the right types still; only what has not, or
    holds a NUL, goes through all rules again.

    Raises:
        InvalidRecord: It is no such line.

    >>> record = MemoryRecord(content="Mira plays the cello", scope=Scope(user_id="mira"))
    >>> read_stored(record.to_json()) == record
    True
    """
    if "\\u0000" in text:
        return MemoryRecord.from_json(text)
    try:
        fields = _Line.model_validate_json(text).__dict__
        fields["scope"].require_writable()
        if not fields["content"].strip() or not fields["id"].isprintable():
            raise ValueError("blank, or an id that cannot be shown")
        for name in _TIMES:
            fields[name] = fields[name].astimezone(UTC)
        if fields["expires_at"] is not None:
            fields["expires_at"] = fields["expires_at"].astimezone(UTC)
        made = MemoryRecord.model_construct(_NAMES, **fields)
        return made.copy_out() if made.metadata else made  # which checks it
    except (ValueError, ScopeError, OverflowError):
        return MemoryRecord.from_json(text)
