"""The lines of Codex, one after the other, as items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memsheaf.sessionsearch.items import ItemOrigin

from .base import Event, Header, ImportOptions, Skipped
from .codex_text import Echoes, is_image, split_own
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
from .source import Problem, Record, Source, parse_json

__all__ = ["CodexLines"]

_FORMAT = "codex"
_NOT_ARGUMENTS = {"type", "id", "status", "call_id", "name", "metadata", "encrypted_content"}


class CodexLines:
    """Turns records into events; `source.state` goes from one import of a file to the next."""

    def __init__(self, source: Source, options: ImportOptions) -> None:
        self._source = source
        self._state = source.state
        self._thinking = options.include_thinking
        self._echoes = Echoes(self._state.get("echoes", {}))
        self._line = 0
        self._time: object = None
        self._id: str | None = None

    def read(self, record: Record) -> Iterator[Event]:
        """The events of one line."""
        value = record.value
        self._line, self._time = record.line, value.get("timestamp")
        kind, payload = value.get("type"), value.get("payload")
        self._id = label(payload.get("id")) if isinstance(payload, Mapping) else None
        if isinstance(payload, Mapping):
            known = _LINES.get(kind) if isinstance(kind, str) else None
            if known is None:
                yield Skipped(label(kind) or "unknown")
            else:
                yield from known(self, payload)
        elif isinstance(kind, str):  # an item without a wrapper
            yield from self._response(value)
        elif "record_type" in value:
            yield Skipped(label(value["record_type"]) or "unknown")
        elif "id" in value and "timestamp" in value:
            yield from self._meta(value)
        elif isinstance(value.get("role"), str):
            yield from self._message(value)
        else:
            yield Problem(record.line, "a record without a type")

    @property
    def _conversation(self) -> str:
        return conversation_id(_FORMAT, self._state.get("session") or self._source.path.stem)

    def _meta(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        if self._state.get("session"):  # a fork repeats the line of the session it comes from
            yield Skipped("session_meta of another session")
            return
        session = payload.get("id") or payload.get("session_id")
        if isinstance(session, str) and session:
            self._state["session"] = session
        origin = payload.get("source")
        parent = payload.get("forked_from_id")
        if isinstance(origin, Mapping) and "subagent" in origin:
            self._state["child"] = True
            parent = _deep(origin, "parent_thread_id") or parent
        git = payload.get("git")
        branch = git.get("branch") if isinstance(git, Mapping) else None
        yield from self._tell(project=place(payload.get("cwd")), branch=label(branch))
        about = some(
            format=_FORMAT,
            source_id=label(self._state.get("session")),
            parent=conversation_id(_FORMAT, parent) if isinstance(parent, str) else None,
            program=label(payload.get("originator")),
        )
        yield Header(self._conversation, metadata=about, started=moment(payload.get("timestamp")))

    def _turn(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._tell(project=place(payload.get("cwd")), model=label(payload.get("model")))

    def _tell(self, **about: str | None) -> Iterator[Event]:
        """Keep what the later items have in common, and tell it where it is new."""
        new = {name: text for name, text in about.items() if text and self._state.get(name) != text}
        if new:
            self._state.update(new)
            yield Header(self._conversation, metadata=new)

    def _compacted(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        text = as_text(payload.get("message"))
        if text.strip():
            yield self._item("summary", "system", ItemOrigin.AUTOMATION, text)
        else:
            yield Skipped("compacted")

    def _response(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        kind = payload.get("type")
        if kind == "message":
            yield from self._message(payload)
        elif kind == "reasoning":
            yield from self._reasoning(payload)
        elif not isinstance(kind, str):
            yield Problem(self._line, "an item without a type")
        elif kind.endswith("_output"):
            yield self._result(payload)
        elif kind.endswith("_call"):
            yield self._call(kind, payload)
        else:
            yield Skipped(label(kind) or "unknown")

    def _message(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        role, content = payload.get("role"), payload.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = [text for part in parts if (text := content_text(part)).strip()]
        texts = [text for text in texts if not is_image(text)] or texts[:1]
        if role == "user":
            yield from self._user(texts, "response")
        elif role == "assistant":
            yield from self._agent("\n".join(texts), "response")
        elif texts:
            yield self._item("event", "system", ItemOrigin.AUTOMATION, "\n".join(texts))

    def _user(self, texts: list[str], kind: str) -> Iterator[Event]:
        own = []
        for text in texts:
            said, injected = split_own(text)
            own.append(said)
            if injected and not self._echo("injected", injected, kind):
                yield self._item("event", "system", ItemOrigin.AUTOMATION, injected)
        text = "\n".join(filter(None, own))
        if not text.strip() or self._echo("user", text, kind):
            return
        if self._state.get("child"):  # the other agent's words
            yield self._item("event", "system", ItemOrigin.AUTOMATION, text)
        else:
            yield self._item("message", "user", ItemOrigin.USER, text)

    def _agent(self, text: str, kind: str) -> Iterator[Event]:
        if text.strip() and not self._echo("assistant", text, kind):
            yield self._item("message", "assistant", ItemOrigin.AGENT, text)

    def _reasoning(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        texts = []
        for name in ("summary", "content"):
            parts = payload.get(name)
            texts += [content_text(part) for part in parts] if isinstance(parts, list) else []
        if not any(texts):
            yield Skipped("reasoning without text")
        yield from self._thought(texts, "response")

    def _thought(self, texts: list[str], kind: str) -> Iterator[Event]:
        for text in texts:
            if text.strip() and not self._echo("reasoning", text, kind):
                item = self._item("reasoning", "assistant", ItemOrigin.AGENT, text)
                if self._thinking:  # made in any case: the keys of the others stay the same
                    yield item

    def _call(self, kind: str, payload: Mapping[str, Any]) -> Event:
        name = label(payload.get("name")) or kind.removesuffix("_call")
        arguments: object = None
        for field in ("arguments", "input", "action"):
            if payload.get(field) is not None:
                arguments = payload[field]
                break
        else:
            arguments = {key: payload[key] for key in payload if key not in _NOT_ARGUMENTS}
        if isinstance(arguments, str):
            arguments = _object_or_text(arguments)
        call = label(payload.get("call_id")) or label(payload.get("id"))
        data = some(name=name, call_id=call)
        text = call_text(name, arguments)
        return self._item("tool_call", "assistant", ItemOrigin.AGENT, text, data=data)

    def _result(self, payload: Mapping[str, Any]) -> Event:
        call = label(payload.get("call_id"))
        output: Any = payload.get("output", payload.get("tools"))
        failed = False
        if isinstance(output, str):
            inner = _object_or_text(output)
            if isinstance(inner, Mapping) and "output" in inner:
                about = inner.get("metadata")
                failed = isinstance(about, Mapping) and about.get("exit_code") not in (None, 0)
                output = inner["output"]
        elif isinstance(output, Mapping):
            failed = output.get("success") is False
            output = output.get("content", output)
        text = content_text(output) or ("" if isinstance(output, list) else as_text(output))
        return self._item(
            "tool_result",
            "tool",
            ItemOrigin.TOOL,
            text,
            data=some(call_id=call),
            status="failed" if failed else "completed",
        )

    def _event(self, payload: Mapping[str, Any]) -> Iterator[Event]:
        kind = payload.get("type")
        if kind == "user_message":
            yield from self._user([as_text(payload.get("message"))], "event")
        elif kind == "agent_message":
            yield from self._agent(as_text(payload.get("message")), "event")
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            yield from self._thought([as_text(payload.get("text"))], "event")
        elif kind == "item_completed" and isinstance(payload.get("item"), Mapping):
            yield from self._completed(payload["item"])
        elif kind == "thread_name_updated" and isinstance(payload.get("thread_name"), str):
            yield Header(self._conversation, title=payload["thread_name"])
        else:
            yield Skipped(f"event {label(kind) or 'unknown'}")

    def _completed(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind = item.get("type")
        if kind == "UserMessage":
            parts = item.get("content")
            texts = [content_text(part) for part in parts] if isinstance(parts, list) else []
            yield from self._user(texts, "item")
        elif kind == "AgentMessage":
            yield from self._agent(content_text(item.get("content")), "item")
        elif kind == "Reasoning":
            parts = item.get("summary_text")
            texts = [as_text(part) for part in parts] if isinstance(parts, list) else []
            yield from self._thought(texts, "item")
        else:
            yield Skipped(f"item {label(kind) or 'unknown'}")

    def _echo(self, role: str, text: str, kind: str) -> bool:
        found = self._echoes.is_one(chain("", role, text.strip()), kind)
        self._state["echoes"] = self._echoes.dump()
        return found

    def _item(self, type: str, role: str, origin: ItemOrigin, text: str, **more: Any) -> Event:
        key = self._state["chain"] = chain(self._state.get("chain", ""), type, role, text)
        return entry(
            self._conversation,
            self._line,
            type=type,
            role=role,
            origin=origin,
            text=text,
            key=key,
            created_at=moment(self._time),
            metadata=some(
                id=self._id,
                model=self._state.get("model") if origin is ItemOrigin.AGENT else None,
                project=self._state.get("project"),
                branch=self._state.get("branch"),
            ),
            **more,
        )


_LINES: dict[str, Callable[[CodexLines, Mapping[str, Any]], Iterator[Event]]] = {
    "session_meta": CodexLines._meta,
    "turn_context": CodexLines._turn,
    "compacted": CodexLines._compacted,
    "response_item": CodexLines._response,
    "event_msg": CodexLines._event,
}


def _object_or_text(text: str) -> object:
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _deep(value: Mapping[str, Any], name: str) -> object:
    """The first member of a name in nested objects, a few levels down."""
    level = [value]
    for _ in range(4):
        for each in level:
            if name in each:
                return each[name]
        level = [inner for each in level for inner in each.values() if isinstance(inner, Mapping)]
    return None
