"""Hermes: its `state.db`, the JSON of older sessions, and its traces."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .base import Event, Header, ImportOptions, Skipped
from .documents import first_keys
from .hermes_db import SIGNATURE, is_state, rows
from .messages import words_of, write_message
from .render import as_text, chain, content_text, conversation_id, label, moment, some
from .session_json import about_session, messages_of
from .source import Position, Problem, Source, parse_json
from .turns import Turns, mapping_of

__all__ = ["HermesImporter"]

_FORMAT = "hermes"
_SUMMARIES = (
    "[CONTEXT COMPACTION",
    "[CONTEXT SUMMARY]:",
    "[PRIOR CONTEXT",
    "Continue from the compressed conversation context above.",
)
_JSON = ("\x00json:", "\x01json:", "\ufffdjson:")  # before content that is a list of parts
_BESIDE = {"platform", "session_start", "last_updated", "message_count"}


class HermesImporter:
    """Reads all sessions of a database, one session of a JSON document, or lines of a trace."""

    name = _FORMAT
    incremental = False

    def places(self) -> list[Path]:
        """Databases, also of profiles, and sessions; `HERMES_HOME` may name another home."""
        home = Path(os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes"))
        try:
            profiles = sorted(home.glob("profiles/*/state.db"))
        except OSError:  # the other places tell that the home cannot be read
            profiles = []
        return [home / "state.db", home / "sessions", *profiles]

    def detect(self, source: Source) -> float:
        """From the tables of a database, or the names of members."""
        if source.head.startswith(SIGNATURE):
            return 0.95 if source.member is None and is_state(source.path) else 0.0
        text = source.head_text.lstrip()
        if not text.startswith("{"):
            return 0.0
        keys = first_keys(text)
        if "atof_version" in keys:
            return 0.9
        if {"session_id", "messages"} <= keys or {"session_id", "session_start"} <= keys:
            return 0.9 if keys & _BESIDE else 0.0
        return 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Rows that were compacted stay; those that were rewound are read with `all` only."""
        if source.head.startswith(SIGNATURE):
            yield from _database(source, options)
        elif "atof_version" in first_keys(source.head_text):
            yield from _trace(source, options)
        else:
            about = about_session(source, options)
            session = {**about, "id": about.get("session_id") or source.path.stem}
            reader = _Session(session, options)
            yield reader.header()
            for message in messages_of(source, options):
                if isinstance(message, Problem):
                    yield message
                else:
                    yield from reader.read(*message)


def _database(source: Source, options: ImportOptions) -> Iterator[Event]:
    reader: _Session | None = None
    for row in rows(source.path, options.max_record):
        if isinstance(row, Problem):
            yield row
            continue
        message = row.message
        source.done = Position(round(source.size * row.share))
        if reader is None or reader.session is not row.session:
            reader = _Session(row.session, options)
            yield reader.header()
        left = message.get("active") == 0 and not message.get("compacted")
        if left and options.branches == "active":
            yield Skipped("rewound message")
        else:
            yield from reader.read(None, _decoded(message))


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a message: what is JSON in a text is read."""
    message = {name: value for name, value in row.items() if value is not None and name != "id"}
    content = message.get("content")
    if isinstance(content, str) and content.startswith(_JSON):
        message["content"] = _json_or_text(content.partition(":")[2])
    if isinstance(message.get("tool_calls"), str):
        message["tool_calls"] = _json_or_text(message["tool_calls"])
    message.setdefault("name", message.get("tool_name"))
    return message


def _json_or_text(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return text


class _Session:
    """Makes the items of one session.

    A message has no id that a database and a document share. Its key is its content, and how
    many like it came before: two equal ones stay two, and the same session in both is one.
    """

    def __init__(self, session: Mapping[str, Any], options: ImportOptions) -> None:
        self.session = session
        self._options = options
        self._turns = Turns(conversation_id(_FORMAT, session.get("id")))
        self._like: Counter[str] = Counter()

    def header(self) -> Header:
        about = self.session
        parent, title = about.get("parent_session_id"), about.get("title")
        return Header(
            self._turns.conversation,
            started=moment(about.get("started_at") or about.get("session_start")),
            title=title if isinstance(title, str) else None,
            metadata=some(
                format=_FORMAT,
                source_id=about.get("id"),
                project=label(about.get("cwd")),
                branch=label(about.get("git_branch")),
                model=label(about.get("model")),
                parent=conversation_id(_FORMAT, parent) if parent else None,
                platform=label(about.get("source") or about.get("platform")),
                source_user=label(about.get("user_id")),
            ),
        )

    def read(self, line: int | None, message: Mapping[str, Any]) -> Iterator[Event]:
        self._turns.line = line
        role = as_text(message.get("role"))
        parts = (message.get(name) for name in ("content", "tool_calls", "tool_call_id"))
        said = chain("", role, *map(as_text, parts))
        self._like[said] += 1
        key = chain(said, self._like[said])
        if role == "user":
            text, time = words_of(message), message.get("timestamp")
            if text.lstrip().startswith(_SUMMARIES):
                yield self._turns.other("summary", text, "system", key=key, time=time)
                return
            if message.get("observed"):  # others in a group, who did not speak to the agent
                yield self._turns.other("event", text, "system", key=key, time=time)
                return
        model = label(self.session.get("model"))
        yield from write_message(self._turns, message, key, self._options, model)


def _trace(source: Source, options: ImportOptions) -> Iterator[Event]:
    """Lines of scopes: what went into a call of the model, and what came out of it."""
    described: set[str] = set()
    for record in source.records(options.max_record):
        if isinstance(record, Problem):
            yield record
            continue
        value = record.value
        about, data = mapping_of(value.get("metadata")), mapping_of(value.get("data"))
        kind, stage = as_text(value.get("category")), as_text(value.get("scope_category"))
        field = {"start": "content", "end": "assistant_message"}.get(stage, "")
        text = content_text(data.get(field))
        if kind != "llm" or not text.strip():
            yield Skipped(f"{label(kind) or 'unknown'} {label(stage) or 'line'}")
            continue
        session = about.get("session_id") or source.path.stem
        turns = Turns(conversation_id(_FORMAT, session), record.line)
        if turns.conversation not in described:
            described.add(turns.conversation)
            platform = label(about.get("platform"))
            metadata = some(format=_FORMAT, source_id=label(session), platform=platform)
            yield Header(turns.conversation, metadata=metadata)
        original = label(value.get("uuid"))
        yield turns.message(
            text,
            "user" if stage == "start" else "assistant",
            key=chain("", original or text, stage),
            time=value.get("timestamp"),
            metadata=some(id=original, parent=label(value.get("parent_uuid"))),
        )
