"""ChatGPT exports: `conversations.json`, whole or split, or one conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .base import OTHER_BRANCH, Entry, Event, Header, ImportOptions, Skipped
from .documents import exported, first_keys, surest
from .render import chain, conversation_id, label, moment, some
from .source import Problem, Source, parse_json
from .turns import Turns, mapping_of, text_or_none

__all__ = ["ChatGPTImporter"]

_OWN = frozenset(
    {
        "id",
        "conversation_id",
        "title",
        "create_time",
        "mapping",
        "current_node",
        "default_model_slug",
        "gizmo_id",
    }
)
_TELLING = frozenset({"current_node", "conversation_id", "create_time", "title", "id"})
_RARE = frozenset({"moderation_results", "is_do_not_remember", "safe_urls", "gizmo_id"})
_TOOL = re.compile(r"[A-Za-z_]\w*(\.\w+)*", re.ASCII)
_MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")
_CONTEXTS = ("user_editable_context", "model_editable_context")
_CONTEXT = ("user_profile", "user_instructions", "model_set_context")
_QUOTED = ("title", "url", "text", "result", "summary", "snippet", "content", "output_str")


class ChatGPTImporter:
    """Reads the conversations of a ChatGPT export; the branch that is shown, or all of them."""

    name = "chatgpt"
    incremental = False

    def detect(self, source: Source) -> float:
        """A mapping of nodes in the first conversation, of a file or of an archive's member."""
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
    if "mapping" in keys and keys & _TELLING:
        return 0.95
    return 0.6 if len(keys & _RARE) > 1 and "title" in keys else 0.0


def _conversation(line: int, value: Mapping[str, Any], options: ImportOptions) -> Iterator[Event]:
    nodes = value.get("mapping")
    if not isinstance(nodes, dict):
        yield Problem(line, "a conversation without its mapping")
        return
    nodes = _linked({name: node for name, node in nodes.items() if isinstance(node, dict)})
    source_id = label(value.get("conversation_id")) or label(value.get("id"))
    if source_id is None:
        source_id = chain("", value.get("title"), value.get("create_time"), next(iter(nodes), ""))
    conversation = conversation_id("chatgpt", source_id)
    yield Header(
        conversation,
        text_or_none(value.get("title")),
        some(
            format="chatgpt",
            source_id=source_id,
            model=text_or_none(value.get("default_model_slug")),
            gizmo=text_or_none(value.get("gizmo_id")),
        ),
        moment(value.get("create_time")),
    )
    shown = _branch(nodes, value.get("current_node"))
    turns = Turns(conversation, line)
    for name in shown:
        yield from _message(turns, name, nodes[name], options, None)
    on_it = set(shown)
    for name in _in_order(nodes):
        if name in on_it:
            continue
        if options.branches == "all":
            yield from _message(turns, name, nodes[name], options, "replaced")
        elif isinstance(nodes[name].get("message"), dict):
            yield Skipped(OTHER_BRANCH)


def _linked(nodes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The nodes; one without a known parent gets the one that calls it a child."""
    for name, node in nodes.items():
        listed = node.get("children")
        for child in listed if isinstance(listed, list) else ():
            if _is_name(child) and child in nodes and _parent(nodes[child]) not in nodes:
                nodes[child] = {**nodes[child], "parent": name}
    return nodes


def _parent(node: Mapping[str, Any]) -> str | None:
    parent = node.get("parent")
    return parent if isinstance(parent, str) else None


def _branch(nodes: Mapping[str, Mapping[str, Any]], current: object) -> list[str]:
    """The names of the nodes from the root to the current one, or to the newest leaf."""
    name = current if isinstance(current, str) and current in nodes else _newest_leaf(nodes)
    path: dict[str, None] = {}
    while isinstance(name, str) and name in nodes and name not in path:
        path[name] = None
        name = _parent(nodes[name])
    return list(reversed(path))


def _newest_leaf(nodes: Mapping[str, Mapping[str, Any]]) -> str | None:
    parents = set(map(_parent, nodes.values()))
    leaves = [name for name in nodes if name not in parents] or list(nodes)

    def age(place: int) -> tuple[float, int]:
        message = nodes[leaves[place]].get("message")
        time = moment(message.get("create_time")) if isinstance(message, dict) else None
        return (time.timestamp() if time else float("-inf"), place)

    return leaves[max(range(len(leaves)), key=age)] if leaves else None


def _in_order(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Every node, parents first, as the tree has them."""
    children: dict[str | None, list[str]] = {}
    for name, node in nodes.items():
        parent = _parent(node)
        known = parent in nodes and parent != name
        children.setdefault(parent if known else None, []).append(name)
    stack = list(reversed(children.get(None, [])))
    while stack:
        name = stack.pop()
        yield name
        stack.extend(reversed(children.get(name, [])))


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _message(
    turns: Turns,
    name: str,
    node: Mapping[str, Any],
    options: ImportOptions,
    branch: str | None,
) -> Iterator[Entry | Problem | Skipped]:
    message = node.get("message")
    if not isinstance(message, dict):
        return  # the root
    author = mapping_of(message.get("author"))
    role = label(author.get("role")) or "unknown"
    about = mapping_of(message.get("metadata"))
    content = message.get("content")
    kind = mapping_of(content).get("content_type")
    text = _words(content)
    key = text_or_none(message.get("id")) or name
    files = [*_pointers(content), *_files(about.get("attachments"))]
    common: dict[str, Any] = {
        "key": key or "root",
        "time": message.get("create_time"),
        "metadata": some(
            id=key,
            parent=text_or_none(node.get("parent")),
            model=text_or_none(about.get("model_slug")),
            branch=branch,
        ),
        "data": some(attachments=files),
        "status": "incomplete" if message.get("status") == "in_progress" else "completed",
    }
    hidden = about.get("is_visually_hidden_from_conversation") is True or message.get("weight") == 0
    if kind == "reasoning_recap":
        yield Skipped("reasoning recap")
    elif role == "assistant" and kind != "thoughts" and _to_a_tool(message.get("recipient"), kind):
        yield turns.tool_call(message["recipient"], text, **common)
    elif not text and not files:
        yield Skipped("empty message")
    elif kind == "thoughts":
        if options.include_thinking:
            yield turns.other("reasoning", text, "assistant", **common)
    elif role == "tool":
        yield turns.tool_result(text, name=author.get("name"), **common)
    elif hidden or kind in _CONTEXTS:
        yield turns.other("event", text, "system", **common)
    else:
        yield turns.message(_without_marks(text), role, **common)


def _without_marks(text: str) -> str:
    """A text without what its page shows as a link; of a thing that is named its name stays."""
    return _MARK.sub(_named, text) if "\ue200" in text else text


def _named(mark: re.Match[str]) -> str:
    kind, _, rest = mark[1].partition("\ue202")
    if kind != "entity":
        return ""
    try:
        told = parse_json(rest)
    except ValueError:
        return ""
    return told[1] if isinstance(told, list) and len(told) > 1 and text_or_none(told[1]) else ""


def _to_a_tool(recipient: object, kind: object) -> bool:
    if not isinstance(recipient, str) or recipient in ("", "all", "user"):
        return False
    return kind == "code" or _TOOL.fullmatch(recipient) is not None


def _words(content: object) -> str:
    """The text of a message's content, whatever its type."""
    if isinstance(content, str):
        return content
    fields = mapping_of(content)
    if isinstance(fields.get("parts"), list):
        return _joined(map(_spoken, fields["parts"]))
    if isinstance(fields.get("thoughts"), list):
        thoughts = map(mapping_of, fields["thoughts"])
        return _joined(t.get(field) for t in thoughts for field in ("summary", "content"))
    return _joined(fields.get(field) for field in (*_CONTEXT, *_QUOTED))


def _spoken(part: object) -> str | None:
    """Text, or the transcript of speech; not what describes a picture."""
    if isinstance(part, str):
        return part
    fields = mapping_of(part)
    spoken = fields.get("content_type") in (None, "text", "audio_transcription")
    return text_or_none(fields.get("text")) if spoken else None


def _joined(values: Iterable[object]) -> str:
    return "\n".join(value for value in values if isinstance(value, str) and value.strip())


def _pointers(content: object) -> list[dict[str, str]]:
    """The parts of a content that point to a file."""
    parts = mapping_of(content).get("parts")
    found = []
    for part in parts if isinstance(parts, list) else []:
        if name := text_or_none(mapping_of(part).get("asset_pointer")):
            kind = text_or_none(part.get("content_type")) or "file"
            found.append({"kind": kind, "name": name})
    return found


def _files(attachments: object) -> list[dict[str, str]]:
    found = []
    for one in attachments if isinstance(attachments, list) else []:
        fields = mapping_of(one)
        if name := text_or_none(fields.get("name")) or text_or_none(fields.get("id")):
            found.append({"kind": text_or_none(fields.get("mime_type")) or "file", "name": name})
    return found
