"""LangChain messages: `messages_to_dict`, `dumps`, and models as they are; read as data only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .base import Event, ImportOptions
from .documents import first_keys
from .message_lists import read_lists
from .source import Source
from .turns import mapping_of, text_or_none

__all__ = ["LangChainImporter"]

_LISTS = ("messages", "chat_history", "history")
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
    "chat": None,  # it names its role
}
_KIND = re.compile(r'"type"\s*:\s*"(human|ai|system|tool|function|chat)"', re.IGNORECASE)
_CLASS = re.compile(r"(Human|AI|System|Developer|Tool|Function|Chat)Message(Chunk)?")
_ENDING = re.compile(r"message(chunk)?$")


class LangChainImporter:
    """Reads what LangChain and LangGraph dump; nothing in it is ever constructed."""

    name = "langchain"
    incremental = False
    format = name
    into: Collection[str] = _LISTS

    def detect(self, source: Source) -> float:
        """A constructor of a message, or a type that only LangChain gives."""
        keys = first_keys(source.head_text, _LISTS)
        if {"lc", "id", "kwargs"} <= keys:
            return 0.95 if _CLASS.search(source.head_text) else 0.0
        if "role" in keys and "data" not in keys:
            return 0.0
        known = "type" in keys and _KIND.search(source.head_text) is not None
        if known and "data" in keys:
            return 0.95
        return 0.85 if known and "content" in keys else 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Each conversation in turn."""
        return read_lists(source, self, options)

    def message(self, value: object) -> Mapping[str, Any] | None:
        """A message in the shape of the OpenAI API."""
        fields = mapping_of(value)
        kind, data = _kind_of(fields)
        if kind not in _ROLES:
            return None
        extra = mapping_of(data.get("additional_kwargs"))
        about = mapping_of(data.get("response_metadata"))
        return {
            "role": _ROLES[kind] or data.get("role"),
            "content": data.get("content"),
            "id": data.get("id"),
            "name": data.get("name"),
            "tool_call_id": data.get("tool_call_id"),
            "tool_calls": data.get("tool_calls") or extra.get("tool_calls"),
            "function_call": extra.get("function_call"),
            "reasoning_content": extra.get("reasoning_content"),
            "model": text_or_none(about.get("model_name")) or text_or_none(about.get("model")),
            "timestamp": extra.get("timestamp") or about.get("created_at"),
        }

    def messages(self, value: Mapping[str, Any]) -> Sequence[object] | None:
        """The list of a state, or of a constructor of a prompt."""
        for holder in (value, mapping_of(value.get("kwargs")), mapping_of(value.get("values"))):
            for name in _LISTS:
                if isinstance(holder.get(name), list):
                    found: list[object] = holder[name]
                    return found
        return None


def _kind_of(fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """What kind of message it is, and where its fields are."""
    named = fields.get("id")
    if fields.get("lc") is not None and isinstance(named, list) and named:
        return _short(named[-1]), mapping_of(fields.get("kwargs"))
    data = fields.get("data")
    return _short(fields.get("type")), data if isinstance(data, dict) else fields


def _short(name: object) -> str:
    return _ENDING.sub("", name.lower()) if isinstance(name, str) else ""
