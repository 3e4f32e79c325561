"""One JSON document that holds one session: what it says of itself, and its list of messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from .base import ImportOptions
from .json_stream import json_parts
from .source import Position, Problem, Source

__all__ = ["about_session", "messages_of"]


def about_session(source: Source, options: ImportOptions) -> dict[str, Any]:
    """The members of the document without its messages; in another pass, as they may follow."""
    with closing(source.open()) as file:
        parts = json_parts(file, {"messages"}, max_bytes=options.max_record)
        return {
            part.key: part.value
            for part in parts
            if part.key is not None and part.index is None and part.flaw is None
        }


def messages_of(
    source: Source, options: ImportOptions
) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """Each message with its line, or what is wrong with it."""
    with closing(source.open()) as file:
        for part in json_parts(file, {"messages"}, max_bytes=options.max_record):
            if part.flaw:
                yield Problem(part.line, part.flaw)
            elif part.index is not None and isinstance(part.value, dict):
                source.done = Position(part.offset, part.line)  # for the progress
                yield part.line, part.value
            elif part.index is not None or part.key == "messages":
                yield Problem(part.line, "not a JSON object")
