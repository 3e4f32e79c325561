"""Claude.ai exports: `conversations.json`, or one conversation as its page's own API gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import OTHER_BRANCH, Event, Header, ImportOptions, Skipped
from .documents import exported, first_keys, surest
from .render import chain, content_text, conversation_id, label, moment, some
from .source import Problem, Source
from .turns import Turns, mapping_of, text_or_none

__all__ = ["ClaudeAiImporter"]

_OWN = frozenset(
    {
        "uuid",
        "name",
        "summary",
        "model",
        "created_at",
        "updated_at",
        "project",
        "current_leaf_message_uuid",
        "chat_messages",
    }
)
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_SPOKEN = ("text", "voice_note")


class ClaudeAiImporter:
    """Reads the conversations of a Claude.ai export; the branch that is shown, or all of them."""

    name = "claude-ai"
    incremental = False

    def detect(self, source: Source) -> float:
        """Chat messages in the first conversation, of a file or of an archive's member."""
        return surest(source, _sure)

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Each conversation in turn."""
        for found in exported(source, _sure, _OWN, options):
            if isinstance(found, Problem):
                yield found
            else:
                yield from _conversation(*found, options)


def _sure(source: Source) -> float:
    keys = first_keys(source.head_text)
    if "chat_messages" in keys and keys & {"uuid", "name"}:
        return 0.95
    return 0.6 if {"uuid", "name", "summary", "account"} <= keys else 0.0


def _conversation(line: int, value: Mapping[str, Any], options: ImportOptions) -> Iterator[Event]:
    listed = value.get("chat_messages")
    if not isinstance(listed, list):
        yield Problem(line, "a conversation without its chat_messages")
        return
    messages = [message for message in listed if isinstance(message, dict)]
    if len(messages) < len(listed):
        yield Problem(line, f"{len(listed) - len(messages)} messages are no JSON objects")
    source_id = label(value.get("uuid"))
    if source_id is None:
        first = messages[0] if messages else {}
        source_id = chain("", value.get("name"), value.get("created_at"), _spoken(first))
    conversation = conversation_id("claude-ai", source_id)
    yield Header(
        conversation,
        text_or_none(value.get("name")),
        some(
            format="claude-ai",
            source_id=source_id,
            model=text_or_none(value.get("model")),
            project=text_or_none(mapping_of(value.get("project")).get("name")),
        ),
        moment(value.get("created_at")),
    )
    turns = Turns(conversation, line)
    if summary := text_or_none(value.get("summary")):
        yield turns.other(
            "summary",
            summary,
            "assistant",
            key=f"summary:{chain('', summary)}",
            time=value.get("created_at"),
        )
    shown = _branch(messages, value.get("current_leaf_message_uuid"))
    for message in shown:
        yield from _message(turns, message, options, None)
    on_it = {id(message) for message in shown}
    for message in messages:
        if id(message) in on_it:
            continue
        if options.branches == "all":
            yield from _message(turns, message, options, "replaced")
        else:
            yield Skipped(OTHER_BRANCH)


def _branch(messages: list[dict[str, Any]], leaf: object) -> list[dict[str, Any]]:
    """The messages from the first to the shown leaf; all of them where nothing tells branches."""
    by_id = {m["uuid"]: m for m in messages if isinstance(m.get("uuid"), str)}
    if not any(isinstance(message.get("parent_message_uuid"), str) for message in messages):
        return messages
    at = leaf if isinstance(leaf, str) and leaf in by_id else messages[-1].get("uuid")
    path: dict[str, dict[str, Any]] = {}
    while isinstance(at, str) and at in by_id and at not in path:
        path[at] = by_id[at]
        at = by_id[at].get("parent_message_uuid")
    return list(reversed(path.values()))


def _message(
    turns: Turns, message: Mapping[str, Any], options: ImportOptions, branch: str | None
) -> Iterator[Event]:
    role = _ROLES.get(str(message.get("sender")), "unknown")
    text, files = _spoken(message), _files(message)
    own = label(message.get("uuid"))
    key = own or chain("", role, message.get("created_at"), text)
    common: dict[str, Any] = {
        "time": message.get("created_at"),
        "metadata": some(
            id=own,
            parent=text_or_none(message.get("parent_message_uuid")),
            model=text_or_none(message.get("model")),
            branch=branch,
        ),
        "response_id": own,
    }
    waits = bool(text or files)  # the words, which stand where their first block stands
    if not waits and not message.get("content") and not message.get("attachments"):
        yield Skipped("empty message")
    for place, block in enumerate(_list(message.get("content"))):
        kind = mapping_of(block).get("type")
        at: dict[str, Any] = {"key": f"{key}:{place}", **common}
        if kind in _SPOKEN:
            if waits:
                yield turns.message(text, role, key=key, data=some(attachments=files), **common)
            waits = False
        elif kind == "thinking":
            if options.include_thinking and (thought := text_or_none(block.get("thinking"))):
                yield turns.other("reasoning", thought, role, **at)
        elif kind == "tool_use":
            yield turns.tool_call(block.get("name"), block.get("input"), call_id=_call(block), **at)
        elif kind == "tool_result":
            at["status"] = "failed" if block.get("is_error") is True else "completed"
            output = block.get("content")
            yield turns.tool_result(output, name=block.get("name"), call_id=_call(block), **at)
        else:
            yield Skipped(f"block {label(kind) or 'of no type'}")
    if waits:
        yield turns.message(text, role, key=key, data=some(attachments=files), **common)
    for place, file in enumerate(map(mapping_of, _list(message.get("attachments")))):
        if extracted := text_or_none(file.get("extracted_content")):
            data = some(name=text_or_none(file.get("file_name")))
            at = {"key": f"{key}:file:{place}", **common}
            yield turns.other("attachment", extracted, role, data=data, **at)


def _spoken(message: Mapping[str, Any]) -> str:
    """The words of a message: those of its text blocks, or the flat text where it has no blocks."""
    blocks = [block for block in _list(message.get("content")) if isinstance(block, dict)]
    if blocks:
        texts = (
            content_text(block.get("text")) for block in blocks if block.get("type") in _SPOKEN
        )
        return "\n\n".join(text for text in texts if text)
    return content_text(message.get("text"))


def _files(message: Mapping[str, Any]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for field in ("attachments", "files", "files_v2"):
        for file in _list(message.get(field)):
            fields = mapping_of(file)
            if name := text_or_none(fields.get("file_name")):
                kind = text_or_none(fields.get("file_kind")) or text_or_none(
                    fields.get("file_type")
                )
                found.setdefault(name, {"kind": kind or "file", "name": name})
    return list(found.values())


def _call(block: Mapping[str, Any]) -> object:
    return block.get("tool_use_id") or block.get("id")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
