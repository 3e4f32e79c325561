"""The lines of Claude Code, one after the other, as items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memsheaf.sessionsearch.items import ItemOrigin

from .base import Entry, Event, Header, ImportOptions, Skipped
from .claude_later import Queue, Summaries, mark_of
from .claude_line import Line
from .claude_text import Piece, pieces
from .render import (
    as_text,
    call_text,
    content_text,
    conversation_id,
    entry,
    label,
    place,
    some,
)
from .source import Problem, Record, Source

__all__ = ["ClaudeLines"]

_FORMAT = "claude-code"
_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2)}


class ClaudeLines:
    """Turns records into events; `source.state` goes from one import of a file to the next."""

    def __init__(self, source: Source, options: ImportOptions) -> None:
        self._source = source
        self._state = source.state
        self._thinking = options.include_thinking
        self._held: Entry | None = None  # an assistant's text that may be written once more
        self._described: dict[str, set[str]] = {}
        self._latest: tuple[object, ...] = ()
        self._summaries = Summaries(self._state)
        self._queue = Queue(self._state)

    def read(self, record: Record) -> Iterator[Event]:
        """The events of one line."""
        for event in self._events(record):
            if isinstance(event, Entry):
                yield from self._settle(event)
            else:
                yield event

    def rest(self) -> Iterator[Event]:
        """What was held back until the end."""
        if self._held is not None:
            yield self._held
            self._held = None
        for _ in range(self._summaries.left):
            yield Skipped("summary of another session")

    def _settle(self, event: Entry) -> Iterator[Event]:
        """Hold an assistant's text back: a longer version of it replaces it."""
        held, item = self._held, event.item
        if held is not None and not (
            item.response_id is not None
            and item.response_id == held.item.response_id
            and item.type == "message"
            and held.conversation == event.conversation
            and item.text.startswith(held.item.text)
        ):
            yield held
        self._held = None
        if item.type == "message" and item.response_id is not None:
            self._held = event
        else:
            yield event

    def _events(self, record: Record) -> Iterator[Event]:
        value = record.value
        message = value.get("message")
        kind = value.get("type")
        if kind is None and isinstance(message, Mapping):
            kind = message.get("role")
        if not isinstance(kind, str):
            yield Problem(record.line, "a record without a type")
            return
        if kind == "summary":
            yield from self._summary(record)
            return
        line = self._line(record, message if isinstance(message, Mapping) else {})
        if kind in ("user", "assistant"):
            if not isinstance(message, Mapping):
                yield Problem(record.line, "a message that is no object")
            elif "content" not in message:
                yield Problem(record.line, "a message without content")
            else:
                yield from self._describe(line)
                yield from self._user(line) if kind == "user" else self._assistant(line)
                yield from self._found_summaries(line)
        elif kind == "system":
            yield from self._system(line)
        elif kind in ("tool_use", "tool_result"):  # on lines of their own, in old versions
            yield from self._describe(line)
            block = {"content": value.get("output"), **value}
            yield self._call(line, block) if kind == "tool_use" else self._result(line, block)
        elif kind == "attachment":
            yield from self._attachment(line)
        elif kind == "queue-operation":
            yield from self._queued(line)
        elif kind in _TITLES:
            field, rank = _TITLES[kind]
            yield from self._title(line.conversation, value.get(field), rank)
        else:
            yield Skipped(label(kind) or "unknown")

    def _line(self, record: Record, message: Mapping[str, Any]) -> Line:
        value = record.value
        session = value.get("sessionId") or value.get("session_id")
        if isinstance(session, str):
            self._state["session"] = session
        else:
            session = self._state.get("session") or self._source.path.stem
        conversation = conversation_id(_FORMAT, session)
        side = value.get("isSidechain") is True
        agent = label(value.get("agentId"))
        if side and session != f"agent-{agent}":
            conversation += f"/agent-{agent}" if agent else "/sidechain"
        return Line(record.line, conversation, side, value, message, self._state)

    def _describe(self, line: Line) -> Iterator[Event]:
        """A header, where the line tells something new of its conversation."""
        value = line.value
        project, branch = place(value.get("cwd")), label(value.get("gitBranch"))
        model = label(line.message.get("model"))
        latest = (line.conversation, project, branch, model)
        if latest == self._latest:
            return
        self._latest = latest
        about = {"project": project, "branch": branch, "model": model}
        told = self._described.get(line.conversation)
        if told is None:
            told = self._described[line.conversation] = set()
            session = label(self._state.get("session"))
            about |= {"format": _FORMAT, "source_id": session, **self._agent(line)}
        new = {
            name: text
            for name, text in about.items()
            if name not in told and text and text != "<synthetic>"
        }
        if new:
            told.update(new)
            yield Header(line.conversation, metadata=new)

    def _agent(self, line: Line) -> dict[str, str | None]:
        if not line.side:
            return {}
        parent, mark, _ = line.conversation.rpartition("/")
        path = self._source.path
        if not mark and path.parent.name == "subagents":
            parent = conversation_id(_FORMAT, path.parent.parent.name)
        return {
            "parent": parent,
            "agent": label(line.value.get("agentId")),
            "agent_type": self._kind(),
        }

    def _kind(self) -> str | None:
        """The kind of a sub-agent, from the small file beside its own."""
        try:
            with self._source.path.with_suffix(".meta.json").open("rb") as file:
                about = json.loads(file.read(4096))
        except (OSError, ValueError, RecursionError):
            return None
        return label(about.get("agentType")) if isinstance(about, dict) else None

    def _user(self, line: Line) -> Iterator[Event]:
        content = line.message["content"]
        from_tool = "toolUseResult" in line.value
        own: list[str] = []
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, Mapping) and block.get("type") == "tool_result":
                yield self._result(line, block)
                continue
            text = content_text(block)
            if not text.strip():
                continue
            if line.side and f"title {line.conversation}" not in self._state:
                yield from self._title(line.conversation, text.strip().split("\n", 1)[0], 1)
            for piece in self._pieces(line, text, from_tool):
                if piece.own:
                    own.append(piece.text)
                else:
                    yield line.piece(piece)
        if own:
            text = "\n".join(own)
            if not self._queue.take(text):
                yield line.piece(Piece(text))

    def _pieces(self, line: Line, text: str, from_tool: bool) -> Iterator[Piece]:
        value = line.value
        if value.get("isCompactSummary") is True:
            yield Piece(text, "summary", "system", ItemOrigin.AUTOMATION)
        elif from_tool:
            yield Piece(text, "event", "tool", ItemOrigin.TOOL)
        elif line.side or value.get("isMeta") is True or not _human(value):
            yield Piece(text, "event", "system", ItemOrigin.AUTOMATION)
        else:
            yield from pieces(text)

    def _assistant(self, line: Line) -> Iterator[Event]:
        content = line.message["content"]
        texts: list[str] = []
        for block in content if isinstance(content, list) else [content]:
            kind = block.get("type") if isinstance(block, Mapping) else "text"
            if kind == "text":
                texts.append(content_text(block))
                continue
            yield from self._spoken(line, texts)
            if kind in ("thinking", "redacted_thinking"):
                words = as_text(block.get("thinking"))
                if words.strip():
                    item = line.item(type="reasoning", role="assistant", text=words, response=True)
                    if self._thinking:  # made in any case: the keys of the others stay the same
                        yield item
            elif isinstance(kind, str) and kind.endswith("tool_use"):
                yield self._call(line, block)
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                yield self._result(line, block)
            else:
                yield Skipped(f"part {label(kind) or 'unknown'}")
        yield from self._spoken(line, texts)

    def _spoken(self, line: Line, texts: list[str]) -> Iterator[Event]:
        text = "\n".join(filter(None, texts))
        texts.clear()
        if not text.strip():
            return
        if (
            line.value.get("isApiErrorMessage") is True
            or line.message.get("model") == "<synthetic>"
        ):
            piece = Piece(text, "event", "system", ItemOrigin.AUTOMATION)
            yield line.piece(piece)
        else:
            yield line.item(type="message", role="assistant", text=text, response=True)

    def _call(self, line: Line, block: Mapping[str, Any]) -> Event:
        name, call = label(block.get("name")) or "tool", label(block.get("id"))
        arguments = block.get("input")
        return line.item(
            type="tool_call",
            role="assistant",
            text=call_text(name, arguments),
            data=some(name=name, call_id=call),
            response=True,
        )

    def _result(self, line: Line, block: Mapping[str, Any]) -> Event:
        call = label(block.get("tool_use_id"))
        text = content_text(block.get("content"))
        result = line.value.get("toolUseResult")
        if not text and isinstance(result, Mapping):
            text = "\n".join(filter(None, (as_text(result.get(k)) for k in ("stdout", "stderr"))))
        failed = block.get("is_error") is True
        return line.item(
            type="tool_result",
            role="tool",
            origin=ItemOrigin.TOOL,
            text=text,
            data=some(call_id=call),
            status="failed" if failed else "completed",
        )

    def _system(self, line: Line) -> Iterator[Event]:
        content, kind = line.value.get("content"), label(line.value.get("subtype"))
        if kind == "init":  # of a stream
            yield from self._describe(line)
        if not isinstance(content, str) or not content.strip():
            yield Skipped(f"system {kind or 'line'}")
            return
        yield from self._describe(line)
        if kind == "local_command":
            for piece in pieces(content):
                yield line.piece(replace(piece, type="event"))
        else:
            piece = Piece(content, "event", "system", ItemOrigin.AUTOMATION)
            yield line.piece(piece, data=some(kind=kind))

    def _attachment(self, line: Line) -> Iterator[Event]:
        about = line.value.get("attachment")
        about = about if isinstance(about, Mapping) else {}
        kind = label(about.get("type"))
        if kind == "queued_command":
            text = content_text(about.get("prompt"))
            told = about.get("commandMode") in (None, "prompt") and _human(about) and not line.side
            if told and text.strip():
                yield from self._describe(line)
                for piece in pieces(text):
                    if not (piece.own and self._queue.take(piece.text)):
                        yield line.piece(piece)
                return
        elif kind == "file" and (text := _file_text(about)):
            yield from self._describe(line)
            yield line.piece(Piece(text, "attachment", "user", ItemOrigin.IMPORT))
            return
        yield Skipped(f"attachment {kind or 'line'}")

    def _queued(self, line: Line) -> Iterator[Event]:
        text, operation = line.value.get("content"), line.value.get("operation")
        if operation not in (None, "enqueue", "remove") or not isinstance(text, str):
            yield Skipped("queue-operation")
            return
        for piece in pieces(text):
            if operation == "remove" and (not piece.own or self._queue.holds(piece.text)):
                continue  # it was told when it went in
            if piece.own:
                self._queue.put(piece.text)
            yield from self._describe(line)
            stamp = as_text(line.value.get("timestamp"))
            key = f"queue:{stamp}:{mark_of(piece.text)}" if stamp else None
            yield line.piece(piece, key=key)

    def _summary(self, record: Record) -> Iterator[Event]:
        text, leaf = record.value.get("summary"), record.value.get("leafUuid")
        if not isinstance(text, str) or not isinstance(leaf, str):
            yield Problem(record.line, "a summary without text or leaf")
        elif conversation := self._summaries.put(leaf, record.line, text):
            yield from self._summed_up(conversation, record.line, leaf, text)

    def _found_summaries(self, line: Line) -> Iterator[Event]:
        uuid = line.value.get("uuid")
        if isinstance(uuid, str) and (found := self._summaries.message(uuid, line.conversation)):
            yield from self._summed_up(line.conversation, found[0], uuid, found[1])

    def _summed_up(self, conversation: str, line: int, leaf: str, text: str) -> Iterator[Event]:
        yield from self._title(conversation, text, 1)
        yield entry(
            conversation,
            line,
            type="summary",
            role="system",
            origin=ItemOrigin.AUTOMATION,
            text=text,
            metadata={"leaf": leaf},
            key=f"summary:{leaf}:{mark_of(text)}",
        )

    def _title(self, conversation: str, title: object, rank: int) -> Iterator[Event]:
        """The title that a person gave stays before the one that a model gave."""
        name = f"title {conversation}"
        if isinstance(title, str) and title.strip() and rank >= self._state.get(name, 0):
            self._state[name] = rank
            yield Header(conversation, title=title)


def _human(value: Mapping[str, Any]) -> bool:
    origin = value.get("origin")
    return not isinstance(origin, Mapping) or origin.get("kind") in (None, "human")


def _file_text(about: Mapping[str, Any]) -> str:
    content = about.get("content")
    file = content.get("file") if isinstance(content, Mapping) else None
    text = file.get("content") if isinstance(file, Mapping) else None
    return f"{as_text(about.get('filename'))}\n{text}" if isinstance(text, str) else ""
