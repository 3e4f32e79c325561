"""OpenAI-style chats: lists of messages, requests one a line, lines for fine-tuning, messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .base import Event, ImportOptions
from .documents import first_keys
from .message_lists import read_lists
from .messages import CALL_TYPES
from .source import Source
from .turns import mapping_of

__all__ = ["OpenAiChatImporter"]

_LISTS = ("messages", "input", "history")


class OpenAiChatImporter:
    """Reads JSON and JSON lines whose messages have a `role` and `content` or `tool_calls`."""

    name = "openai-chat"
    incremental = False
    format = name
    into: Collection[str] = _LISTS

    def detect(self, source: Source) -> float:
        """A role and a content in the first message."""
        keys = first_keys(source.head_text, _LISTS)
        if "role" in keys and keys & {"content", "tool_calls", "function_call"}:
            return 0.6 if keys & {"timestamp", "uuid", "type"} else 0.7
        if not source.head_text.lstrip().startswith("{"):
            return 0.0
        records = source.first_records[:5]  # the first line may be a bad one
        return 0.55 if any(map(self._known, records)) else 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Each conversation in turn."""
        return read_lists(source, self, options)

    def _known(self, record: Mapping[str, Any]) -> bool:
        listed = self.messages(record) or [record]
        return "content" in mapping_of(listed[0]) and self.message(listed[0]) is not None

    def message(self, value: object) -> Mapping[str, Any] | None:
        """The object itself, where it has a role or is a call beside messages."""
        fields = mapping_of(value)
        if isinstance(fields.get("role"), str) and not isinstance(fields.get("messages"), list):
            return fields
        return fields if fields.get("type") in CALL_TYPES else None

    def messages(self, value: Mapping[str, Any]) -> Sequence[object] | None:
        """The list of a request or of a line for training, and the answer where it is there."""
        request = mapping_of(value.get("request"))
        for holder in (value, mapping_of(value.get("body")), request, request.get("body")):
            for name in _LISTS:
                found = mapping_of(holder).get(name)
                if isinstance(found, list):
                    return [*found, *_answer(value)]
        return None


def _answer(value: Mapping[str, Any]) -> list[object]:
    """The first choice of the response that was logged beside a request."""
    response = mapping_of(value.get("response"))
    for holder in (value, response, mapping_of(response.get("body"))):
        choices = holder.get("choices")
        if isinstance(choices, list) and choices and "message" in mapping_of(choices[0]):
            return [choices[0]["message"]]
    return []
