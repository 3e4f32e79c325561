"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, and what `claude -p` streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from .base import Event, ImportOptions
from .claude_lines import ClaudeLines
from .json_stream import json_parts
from .render import label
from .source import Problem, Record, Source

__all__ = ["ClaudeCodeImporter"]

_TALK = {"user", "assistant"}
_OTHERS = {
    "ai-title",
    "attachment",
    "custom-title",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "progress",
    "queue-operation",
    "summary",
    "system",
}
_MARKS = {"sessionId", "parentUuid", "isSidechain", "session_id", "leafUuid", "messageId"}


class ClaudeCodeImporter:
    """Reads main and sub-agent files, line by line."""

    name = "claude-code"
    incremental = True
    exclusive = True

    def places(self) -> list[Path]:
        """The folders of projects; `CLAUDE_CONFIG_DIR` may name others, with commas."""
        told = os.environ.get("CLAUDE_CONFIG_DIR")
        if told:
            bases = [_home(part.strip()) for part in told.split(",") if part.strip()]
        else:
            settings = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
            bases = [_home("~/.claude"), _home(settings) / "claude"]
        return [base / "projects" for base in bases]

    def detect(self, source: Source) -> float:
        """From the first records: messages beside a session's id, or lines of known types."""
        sure = 0.0
        for record in _first_records(source):
            kind = label(record.get("type"))
            marked = not _MARKS.isdisjoint(record)
            if kind in _TALK and isinstance(record.get("message"), Mapping):
                if marked:
                    return 0.95
                sure = max(sure, 0.7)
            elif kind in _OTHERS and (marked or "snapshot" in record):
                sure = max(sure, 0.8)
            elif (
                "type" not in record
                and "uuid" in record
                and isinstance(record.get("message"), Mapping)
            ):
                sure = max(sure, 0.6)
        return sure

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """One item per part of a message; what the program put in is no user's words."""
        lines = ClaudeLines(source, options)
        for record in _records(source, options):
            if isinstance(record, Problem):
                yield record
            else:
                yield from lines.read(record)
        yield from lines.rest()


def _home(name: str) -> Path:
    return Path(os.path.expanduser(name))


def _is_list(source: Source) -> bool:
    return source.head_text.lstrip().startswith("[")


def _first_records(source: Source) -> list[Mapping[str, object]]:
    if not _is_list(source):
        return list(source.first_records)
    with closing(source.open()) as file:
        first = (part.value for part, _ in zip(json_parts(file), range(3), strict=False))
        return [value for value in first if isinstance(value, Mapping)]


def _records(source: Source, options: ImportOptions) -> Iterator[Record | Problem]:
    if not _is_list(source):
        yield from source.records(options.max_record)
        return
    with closing(source.open()) as file:
        for part in json_parts(file, max_bytes=options.max_record):
            if part.flaw:
                yield Problem(part.line, part.flaw)
            elif isinstance(part.value, dict):
                yield Record(part.line, part.value)
            else:
                yield Problem(part.line, "not a JSON object")
