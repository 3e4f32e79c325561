"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, and `.jsonl` since 0.40."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memsheaf.sessionsearch.items import ItemOrigin

from .base import Event, Header, ImportOptions, Skipped
from .documents import first_keys
from .render import (
    as_text,
    call_text,
    chain,
    content_text,
    conversation_id,
    entry,
    label,
    moment,
    place,
    some,
)
from .session_json import about_session, messages_of
from .source import Problem, Source

__all__ = ["GeminiImporter"]

_FORMAT = "gemini-cli"
_TALK = {"user", "gemini"}
_NOTES = {"info", "warning", "error"}
_INJECTED = (
    "This is the Gemini CLI. We are setting up the context",
    "<session_context>",
    "<hook_context>",
    "System: Please continue.",
)


class GeminiImporter:
    """Reads sessions as one document, and as lines where a later line replaces an earlier one."""

    name = _FORMAT
    incremental = False
    exclusive = True

    def places(self) -> list[Path]:
        """The folder of all projects; `GEMINI_CLI_HOME` may name another home."""
        home = Path(os.path.expanduser(os.environ.get("GEMINI_CLI_HOME") or "~"))
        return [home / ".gemini" / "tmp"]

    def detect(self, source: Source) -> float:
        """From the names of the members, and the kinds of messages."""
        text = source.head_text.lstrip()
        if not text.startswith("{"):
            return 0.0
        if _is_lines(source):
            records = source.first_records
            if {"sessionId", "projectHash"} <= records[0].keys():
                return 0.95
            return 0.8 if any(record.get("type") == "gemini" for record in records) else 0.0
        keys = first_keys(text)
        if {"sessionId", "projectHash"} <= keys:
            return 0.95
        if "messages" not in keys:
            return 0.0
        return (
            0.8
            if '"gemini"' in text and not keys.isdisjoint(("projectHash", "lastUpdated"))
            else 0.0
        )

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Messages, thoughts, tool calls with their results; `all` keeps what was rewound."""
        if _is_lines(source):
            about, messages = _lines(source, options)
        else:
            about, messages = about_session(source, options), messages_of(source, options)
        session = about.get("sessionId") or source.path.stem
        conversation = conversation_id(_FORMAT, session)
        title = about.get("summary")
        yield Header(
            conversation,
            started=moment(about.get("startTime")),
            title=title if isinstance(title, str) else None,
            metadata=some(
                format=_FORMAT,
                source_id=label(session),
                project_hash=label(about.get("projectHash")),
                kind=label(about.get("kind")),
                **_places(source.path, about),
            ),
        )
        reader = _Messages(conversation, options, child=about.get("kind") == "subagent")
        for message in messages:
            if isinstance(message, Problem):
                yield message
            else:
                yield from reader.read(*message)
        yield Header(conversation, metadata=some(model=reader.model))


class _Messages:
    def __init__(self, conversation: str, options: ImportOptions, *, child: bool) -> None:
        self._conversation = conversation
        self._thinking = options.include_thinking
        self._child = child
        self._chain = ""
        self.model: str | None = None

    def read(self, line: int, message: Mapping[str, Any]) -> Iterator[Event]:
        kind = label(message.get("type"))
        if kind == "user":
            yield from self._user(line, message)
        elif kind == "gemini":
            yield from self._gemini(line, message)
        elif kind in _NOTES:
            text = content_text(message.get("content"))
            if text.strip():
                yield self._item(line, message, "note", "event", text, role="system")
        else:
            yield Skipped(kind or "unknown")

    def _user(self, line: int, message: Mapping[str, Any]) -> Iterator[Event]:
        text, put_in = _own(message.get("content"))
        shown = _own(message.get("displayContent"))[0]
        own = shown if shown.strip() else text
        if own.strip():
            kind, role = ("event", "system") if self._child else ("message", "user")
            yield self._item(line, message, "text", kind, own, role=role)
        if put_in:
            part = "injected" if own.strip() else "text"
            yield self._item(line, message, part, "event", put_in, role="system")
        if shown.strip() and text.strip() not in ("", shown.strip()):  # files that were put in
            yield self._item(line, message, "sent", "event", text, role="system")

    def _gemini(self, line: int, message: Mapping[str, Any]) -> Iterator[Event]:
        self.model = label(message.get("model")) or self.model
        for number, thought in enumerate(_listed(message.get("thoughts"))):
            words = [as_text(thought.get(name)) for name in ("subject", "description")]
            text = "\n".join(filter(None, words))
            if text.strip():
                item = self._item(line, message, f"thought{number}", "reasoning", text, at=thought)
                if self._thinking:  # made in any case: the keys of the others stay the same
                    yield item
        text = content_text(message.get("content"))
        if text.strip():
            yield self._item(line, message, "text", "message", text)
        for number, call in enumerate(_listed(message.get("toolCalls"))):
            name = label(call.get("name")) or "tool"
            about = some(name=name, call_id=label(call.get("id")), agent=label(call.get("agentId")))
            text = call_text(name, call.get("args"))
            yield self._item(line, message, f"call{number}", "tool_call", text, data=about, at=call)
            result = _result(call)
            if result.strip():
                yield self._item(
                    line,
                    message,
                    f"result{number}",
                    "tool_result",
                    result,
                    role="tool",
                    data=about,
                    at=call,
                    status="failed" if call.get("status") == "error" else "completed",
                )

    def _item(
        self,
        line: int,
        message: Mapping[str, Any],
        part: str,
        type: str,
        text: str,
        *,
        role: str = "assistant",
        at: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Event:
        original = label(message.get("id"))
        if original:
            key = f"{original}:{part}"
        else:
            key = self._chain = chain(self._chain, part, message.get("timestamp"), text)
        time = (at or {}).get("timestamp") or message.get("timestamp")
        return entry(
            self._conversation,
            line,
            type=type,
            role=role,
            origin=_ORIGINS[role],
            text=text,
            key=key,
            created_at=moment(time),
            response_id=original if role == "assistant" else None,
            metadata=some(id=original, model=label(message.get("model"))),
            **more,
        )


def _own(content: object) -> tuple[str, str]:
    """The words of a message, and what the program put beside or in place of them."""
    own: list[str] = []
    put_in: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        text = content_text(part)
        if text:
            (put_in if text.lstrip().startswith(_INJECTED) else own).append(text)
    return "\n".join(own), "\n".join(put_in)


_ORIGINS = {
    "user": ItemOrigin.USER,
    "assistant": ItemOrigin.AGENT,
    "tool": ItemOrigin.TOOL,
    "system": ItemOrigin.AUTOMATION,
}


def _result(call: Mapping[str, Any]) -> str:
    """What a tool answered: what the model got, else what the person saw."""
    texts = []
    for part in _listed(call.get("result")):
        answer = part.get("functionResponse")
        response = answer.get("response") if isinstance(answer, Mapping) else None
        if isinstance(response, Mapping):
            told = response.get("output", response.get("error", response))
            texts.append(as_text(told))
        else:
            texts.append(content_text(part))
    if not any(texts):
        display = call.get("resultDisplay")
        texts.append(as_text(display))
    return "\n".join(filter(None, texts))


def _places(path: Path, about: Mapping[str, Any]) -> dict[str, str | None]:
    """The project's folder, and the session of which this is a sub-agent's.

    Sessions lie in `<project>/chats/`, those of sub-agents in a folder named after their parent.
    A file beside `chats` holds the path of the project; older versions keep only its hash.
    """
    inside = path.parent.parent.name == "chats"
    chats = path.parent.parent if inside else path.parent
    project = None
    if chats.name == "chats":
        try:
            with (chats.parent / ".project_root").open(encoding="utf-8") as file:
                project = place(file.read(4096).strip())
        except (OSError, ValueError):
            project = None
    folders = about.get("directories")  # of a main session those that were added to it
    if not project and about.get("kind") == "subagent" and isinstance(folders, list) and folders:
        project = place(folders[0])
    return {
        "project": project,
        "parent": conversation_id(_FORMAT, path.parent.name) if inside else None,
    }


def _is_lines(source: Source) -> bool:
    first = source.head_text.lstrip().split("\n", 1)[0].rstrip()
    if "\n" not in source.head_text.strip() and '"messages"' in first:
        return False  # a document on one line
    return first.endswith("}") and bool(source.first_records) and first != "{}"


def _lines(
    source: Source, options: ImportOptions
) -> tuple[dict[str, Any], Iterator[tuple[int, dict[str, Any]] | Problem]]:
    """The last state of the header and the messages that are left, in two passes.

    Only ids are held: which line has the last version of each message.
    """
    about: dict[str, Any] = {}
    last: dict[str, int] = {}
    for record in source.records(options.max_record):
        if isinstance(record, Problem):
            continue
        value = record.value
        change, back = value.get("$set"), value.get("$rewindTo")
        if isinstance(change, Mapping):
            about.update({name: change[name] for name in change if name != "messages"})
            if isinstance(change.get("messages"), list):
                if options.branches == "active":
                    last.clear()
                last.update({_id(each): record.line for each in _listed(change["messages"])})
        elif "$rewindTo" in value:
            if options.branches == "active":
                _rewind(last, back)
        elif "type" in value:
            last[_id(value)] = record.line
        else:
            about.update(value)
    again = source.again()
    return about, _left(again, options, last)


def _left(
    source: Source, options: ImportOptions, last: Mapping[str, int]
) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    for record in source.records(options.max_record):
        if isinstance(record, Problem):
            yield record
            continue
        change = record.value.get("$set")
        told = change.get("messages") if isinstance(change, Mapping) else [record.value]
        for message in _listed(told):
            if "type" in message and last.get(_id(message)) == record.line:
                yield record.line, message


def _rewind(last: dict[str, int], back: object) -> None:
    """Drop a message and the later ones; all of them where its id is unknown."""
    ids = list(last)
    start = ids.index(back) if isinstance(back, str) and back in last else 0
    for each in ids[start:]:
        del last[each]


def _id(message: Mapping[str, Any]) -> str:
    """Its id; without one, a hash of it."""
    original = message.get("id")
    return original if isinstance(original, str) else chain("", as_text(message))


def _listed(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
