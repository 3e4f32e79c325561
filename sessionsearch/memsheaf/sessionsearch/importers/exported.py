"""What `memsheaf sessions export` writes: a line for each conversation, then its items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memsheaf.sessionsearch.log_append import is_carried
from memsheaf.stack import parse_time

from .base import Entry, Event, Header, ImportOptions
from .render import chain, entry
from .source import Problem, Source
from .turns import mapping_of, text_or_none

__all__ = ["MemsheafImporter"]

_LONGEST_ID = 512
_ABOUT = {"id", "items", "scope"}
_FIELDS = ("type", "text", "role", "origin", "data", "metadata", "status", "response_id")


class MemsheafImporter:
    """Reads an export back, ids, titles, times and metadata as they were."""

    name = "memsheaf"
    incremental = False

    def detect(self, source: Source) -> float:
        """A line that describes a conversation of a log, as the first one or behind a bad one."""
        records = source.first_records[:3]
        return 0.97 if any(_about(each).keys() >= _ABOUT for each in records) else 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Each line in turn; whose the conversations were plays no part."""
        for record in source.records(options.max_record):
            if isinstance(record, Problem):
                yield record
                continue
            about, item = _about(record.value), mapping_of(record.value.get("item"))
            conversation = about.get("id") if about else item.get("conversation")
            if not _is_id(conversation):
                yield Problem(record.line, "neither a conversation nor an item of one")
            elif about:
                metadata = mapping_of(about.get("metadata"))
                yield Header(str(conversation), text_or_none(about.get("title")), metadata)
            elif item.get("type") != "reasoning" or options.include_thinking:
                yield _entry(str(conversation), record.line, item)


def _about(value: Mapping[str, Any]) -> dict[str, Any]:
    return mapping_of(value.get("conversation"))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_ID and value.isprintable()


def _time(value: object) -> datetime | None:
    """A time as the log had it, also one that no clock of a program could mean."""
    try:
        return None if value is None else parse_time(value)
    except ValueError:
        return None


def _entry(conversation: str, line: int, item: Mapping[str, Any]) -> Entry | Problem:
    number = item.get("seq")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**53:
        return Problem(line, "an item without its number")
    fields = {name: item[name] for name in _FIELDS if item.get(name) is not None}
    for name in ("data", "metadata"):
        fields[name] = mapping_of(item.get(name))
    key = item.get("key")
    if key is not None and not is_carried(key):
        return Problem(line, "an item with a key that no export has")
    made = entry(
        conversation,
        line,
        **{"type": "", **fields},
        created_at=_time(item.get("created_at")),
        key=key or chain("", number, item.get("type"), item.get("role"), item.get("text")),
    )
    if isinstance(made, Problem):
        return made
    return Entry(conversation, made.item, number, keyed=key is not None)
