"""From the turns of chat formats to items, with their types, roles and origins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .base import Entry
from .render import call_text, content_text, entry, label, moment, some
from .source import Problem, parse_json

__all__ = ["Turns", "mapping_of", "text_or_none"]


class Turns:
    """Makes the entries of one conversation.

    Args:
        conversation: Its id.
        line: Where its source begins, for problems.

    >>> made = Turns("c", 1).message("Where is the cello?", "user", key="1")
    >>> made.item.type, made.item.origin.value
    ('message', 'user')
    """

    def __init__(self, conversation: str, line: int | None = None) -> None:
        self.conversation = conversation
        self.line = line

    def message(self, text: str, role: str, **more: Any) -> Entry | Problem:
        """What a person or the model said; a system prompt is an event."""
        if role in ("user", "assistant"):
            origin = "user" if role == "user" else "agent"
            return self._entry("message", text, role, origin, more)
        return self.other("event", text, role, **more)

    def tool_call(
        self, name: object, arguments: object, *, call_id: object = None, **more: Any
    ) -> Entry | Problem:
        """A call: its text is the name and the arguments, which some write as a text of JSON."""
        called = label(name) or "tool"
        if isinstance(arguments, str):
            arguments = _read(arguments)
        more["data"] = some(name=called, call_id=label(call_id))
        return self._entry("tool_call", call_text(called, arguments), "assistant", "agent", more)

    def tool_result(
        self, output: object, *, name: object = None, call_id: object = None, **more: Any
    ) -> Entry | Problem:
        """What a tool answered."""
        more["data"] = {**some(name=label(name), call_id=label(call_id)), **more.get("data", {})}
        return self._entry("tool_result", content_text(output), "tool", "tool", more)

    def other(
        self,
        kind: Literal["reasoning", "event", "summary", "attachment"],
        text: str,
        role: str,
        **more: Any,
    ) -> Entry | Problem:
        """What nobody said: reasoning, injected text, a summary, the text of an attached file."""
        origins = {"reasoning": "agent", "attachment": "import"}
        return self._entry(kind, text, role, origins.get(kind, "automation"), more)

    def _entry(
        self, kind: str, text: str, role: str, origin: str, more: Mapping[str, Any]
    ) -> Entry | Problem:
        fields = dict(more)
        fields["created_at"] = moment(fields.pop("time", None))
        return entry(
            self.conversation,
            self.line,
            type=kind,
            text=text,
            role=label(role) or "unknown",
            origin=origin,
            **fields,
        )


def _read(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return text


def text_or_none(value: object) -> str | None:
    """A text that holds something."""
    return value if isinstance(value, str) and value.strip() else None


def mapping_of(value: object) -> dict[str, Any]:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}
