"""Between HTTP and a protocol: what a protocol must say, and the reply as it grows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from .chat import ChatReply, ChatRequest, Message, StreamEvent, TextDelta, ToolCall, Usage
from .errors import BadReply

JSON_IN_WORDS = "Reply with one JSON value and nothing else."


class Wire(Protocol):
    """One protocol: its path, headers and bodies, and how its replies are read."""

    path: str
    sse: bool

    def headers(self, api_key: str) -> dict[str, str]:
        """Headers of every request."""
        ...

    def body(
        self, model: str, request: ChatRequest, *, stream: bool, plain: bool
    ) -> dict[str, Any]:
        """The request; `plain` leaves out what some servers refuse."""
        ...

    def has_optional(self, request: ChatRequest, *, stream: bool) -> bool:
        """Whether `plain` would make a difference."""
        ...

    def read(self, payload: dict[str, Any], reply: Growing) -> None:
        """Read a whole reply."""
        ...

    def feed(self, payload: dict[str, Any], reply: Growing) -> Iterator[StreamEvent]:
        """Read one event of a stream; sets `reply.ended` at the last."""
        ...


@dataclass(slots=True)
class GrowingCall:
    """A tool call whose arguments still arrive."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def finished(self) -> ToolCall:
        """The call; some servers send no id, but the tool's result must name one."""
        return ToolCall(
            self.id or f"call_{uuid4().hex[:16]}", self.name, "".join(self.arguments) or "{}"
        )


@dataclass(slots=True)
class Growing:
    """A reply in the making."""

    label: str
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    open_calls: dict[Any, GrowingCall] = field(default_factory=dict)
    usage: Usage | None = None
    model: str = ""
    finish_reason: str = ""
    id: str = ""
    ended: bool = False
    _held: str = ""

    def say(self, text: str) -> Iterator[StreamEvent]:
        """Add text; half of a surrogate pair is held until its other half comes."""
        text = self._held + text
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        if text := whole_characters(text):
            self.texts.append(text)
            yield TextDelta(text)

    def flush(self) -> Iterator[StreamEvent]:
        """Give out what was held back, at the end."""
        held, self._held = self._held, ""
        if held:
            self.texts.append("\ufffd")
            yield TextDelta("\ufffd")

    def done(self) -> ChatReply:
        """The finished reply."""
        return ChatReply(
            text="".join(self.texts),
            tool_calls=tuple(self.calls),
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason or ("tool_calls" if self.calls else "stop"),
            id=self.id,
        )

    def bad(self, what: str) -> BadReply:
        """An error that names the model."""
        return BadReply(f"{what}; check that base_url speaks this protocol", model=self.label)


def whole_characters(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def string(value: object) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """The value if it is a whole number of 0 or more, else 0."""
    return value if isinstance(value, int) and value > 0 else 0


def as_json(value: object) -> str:
    """JSON text of arguments that a server sends as text or as an object."""
    if isinstance(value, str):
        return whole_characters(value)
    return json.dumps(value, ensure_ascii=False) if value is not None else "{}"


def as_object(arguments: str) -> dict[str, Any]:
    """Arguments as the object that a protocol insists on; what does not parse is kept as text."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": arguments}


def text_of(message: Message) -> str:
    """The text of a message, its parts joined by line breaks."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(string(part.get("text")) for part in content if part.get("type") == "text")
