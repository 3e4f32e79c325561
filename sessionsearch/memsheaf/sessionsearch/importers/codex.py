"""OpenAI Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`, old and new."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .base import Event, ImportOptions
from .codex_lines import CodexLines
from .documents import first_keys
from .json_stream import json_parts
from .render import label
from .source import Problem, Record, Source

__all__ = ["CodexImporter"]

_WRAPPED = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_BARE = {"message", "reasoning", "function_call", "function_call_output", "local_shell_call"}


class CodexImporter:
    """Reads rollouts line by line, and the single documents of the first versions."""

    name = "codex"
    incremental = True
    exclusive = True

    def places(self) -> list[Path]:
        """The folders of sessions; `CODEX_HOME` may name another one."""
        home = Path(os.path.expanduser(os.environ.get("CODEX_HOME") or "~/.codex"))
        return [home / "sessions", home / "archived_sessions"]

    def detect(self, source: Source) -> float:
        """From the first records: lines with a payload, or bare items behind a session's line."""
        if _is_document(source):
            return 0.9
        records = source.first_records
        for record in records:
            if label(record.get("type")) in _WRAPPED and isinstance(record.get("payload"), Mapping):
                return 0.95
        if records and {"id", "timestamp"} <= records[0].keys() and "type" not in records[0]:
            kinds = {label(record.get("type")) for record in records[1:]}
            states = any("record_type" in record for record in records[1:])
            return 0.9 if states or kinds & _BARE else 0.0
        return 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Each text once, though Codex writes it twice; what it put in is no user's words."""
        lines = CodexLines(source, options)
        for record in _records(source, options):
            if isinstance(record, Problem):
                yield record
            else:
                yield from lines.read(record)


def _is_document(source: Source) -> bool:
    text = source.head_text.lstrip()
    if not text.startswith("{") or '"items"' not in text:
        return False
    return {"session", "items"} <= first_keys(text)


def _records(source: Source, options: ImportOptions) -> Iterator[Record | Problem]:
    if not _is_document(source):
        yield from source.records(options.max_record)
        return
    with closing(source.open()) as file:
        for part in json_parts(file, {"items"}, max_bytes=options.max_record):
            value: Any = part.value
            if part.flaw:
                yield Problem(part.line, part.flaw)
            elif isinstance(value, dict):
                meta = {"type": "session_meta", "payload": value}
                yield Record(part.line, meta if part.key == "session" else value)
