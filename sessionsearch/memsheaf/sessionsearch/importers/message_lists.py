"""Lists of messages without ids: in one document, one list a line, or one message a line."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .base import Event, Header, ImportOptions
from .documents import parts_of
from .messages import words_of, write_message
from .render import chain, conversation_id, label, some
from .source import Problem, Source
from .turns import Turns, mapping_of

__all__ = ["Shape", "read_lists"]

_IDS = ("conversation_id", "session_id", "thread_id", "chat_id")  # these name conversations
_LOOSE_IDS = ("id", "uuid")  # these do where they are long; short ones only count
_LONG = 16
_SAID = (
    "role",
    "type",
    "content",
    "name",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "arguments",
    "input",
    "output",
    "call_id",
    "summary",
    "refusal",
)
_MEMBERS = frozenset(
    {
        *_IDS,
        *_LOOSE_IDS,
        "custom_id",
        "title",
        "name",
        "model",
        "role",
        "content",
        "type",
        "data",
        "tool_calls",
        "request",
        "response",
        "body",
        "choices",
        "lc",
        "kwargs",
        "values",
    }
)
_ENDS = 10_000  # lists that may be continued by a later one
_OPENING = 40  # messages within which the first answer is looked for
_OPENING_SIZE = 4_000_000  # characters of them


class Shape(Protocol):
    """How a format writes messages.

    Attributes:
        format: Its name.
        into: The members of a document that hold its list.
    """

    format: str
    into: Collection[str]

    def message(self, value: object) -> Mapping[str, Any] | None:
        """A message in the shape of the OpenAI API, or None where it is none."""
        ...

    def messages(self, value: Mapping[str, Any]) -> Sequence[object] | None:
        """The list of a document, or None where it has none."""
        ...


def read_lists(source: Source, shape: Shape, options: ImportOptions) -> Iterator[Event]:
    """The conversations of a file.

    A document that is one list is one conversation. Of many lists each is one; a list that
    begins with the whole of an earlier one continues it, as the requests of an agent do.

    Args:
        source: JSON or JSON lines.
        shape: How messages are written.
        options: How to read.
    """
    lists = _Lists(shape, options)
    own = _Own(shape, options)
    for part in parts_of(source, shape.into, options):
        value = part.value
        if part.flaw:
            yield Problem(part.line, part.flaw)
        elif part.index is None and part.key is not None:
            own.member(part.key, value)
        elif (message := shape.message(value)) is not None:
            yield from own.take(part.line, message)
        else:
            about = mapping_of(value)
            found = value if isinstance(value, list) else shape.messages(about)
            if found is None:
                yield Problem(part.line, "neither a message nor a list of messages")
            else:
                yield from lists.take(part.line, found, about)
    if not own.begun:  # the only object holds its list deeper, or is a message
        members = own.members
        if (message := shape.message(members)) is not None:
            yield from own.take(1, message)
        elif found := shape.messages(members):
            yield from lists.take(1, found, members)
    yield from own.end()


@dataclass(slots=True)
class _Own:
    """The conversation that the whole file is; its first messages wait until its id is known."""

    shape: Shape
    options: ImportOptions
    members: dict[str, Any] = field(default_factory=dict)
    _opening: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    _size: int = 0
    _turns: Turns | None = None
    _key: str = ""

    @property
    def begun(self) -> bool:
        """Whether it has a message."""
        return self._turns is not None or bool(self._opening)

    def member(self, name: str, value: object) -> None:
        if name in _MEMBERS:
            self.members[name] = value

    def take(self, line: int, message: Mapping[str, Any]) -> Iterator[Event]:
        if self._turns is not None:
            yield from self._write(self._turns, line, message)
            return
        self._opening.append((line, message))
        words = words_of(message)
        self._size += len(words)
        answered = message.get("role") == "assistant" and bool(words)
        asked = any(each.get("role") == "user" for _, each in self._opening)
        enough = len(self._opening) >= _OPENING or self._size > _OPENING_SIZE
        if (answered and asked) or enough:
            yield from self._open()

    def end(self) -> Iterator[Event]:
        if self._turns is None and self._opening:
            yield from self._open()
        if self._turns is not None:  # members may stand behind the list
            yield _header(self.shape.format, self._turns.conversation, self.members)

    def _open(self) -> Iterator[Event]:
        opening = ""
        for _, message in self._opening:
            opening = _next_key(opening, message)
        conversation = _id_of(self.shape.format, self.members) or conversation_id(
            self.shape.format, opening
        )
        self._turns = Turns(conversation)
        yield _header(self.shape.format, conversation, self.members)
        for line, message in self._opening:
            yield from self._write(self._turns, line, message)
        self._opening.clear()

    def _write(self, turns: Turns, line: int, message: Mapping[str, Any]) -> Iterator[Event]:
        turns.line = line
        self._key = _next_key(self._key, message)
        model = label(self.members.get("model"))
        yield from write_message(turns, message, self._key, self.options, model)


@dataclass(slots=True)
class _Lists:
    """Conversations that are whole lists; the end of each is remembered for a while."""

    shape: Shape
    options: ImportOptions
    _ends: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def take(
        self, line: int, listed: Sequence[object], about: Mapping[str, Any]
    ) -> Iterator[Event]:
        about = {**mapping_of(about.get("request")), **mapping_of(about.get("body")), **about}
        messages, keys, key = [], [], ""
        for value in listed:
            message = self.shape.message(value)
            if message is None:
                yield Problem(line, "an element of the list is no message")
                continue
            key = _next_key(key, message)
            messages.append(message)
            keys.append(key)
        if not messages:
            yield Problem(line, "a list without messages")
            return
        known = max((n for n, each in enumerate(keys) if each in self._ends), default=-1)
        conversation = _id_of(self.shape.format, about)
        if conversation is None and known >= 0:
            conversation = self._ends[keys[known]]
        elif conversation is None:
            conversation = conversation_id(self.shape.format, key)
        elif known >= 0 and self._ends[keys[known]] != conversation:
            known = -1
        self._ends[key] = conversation
        self._ends.move_to_end(key)
        if len(self._ends) > _ENDS:
            self._ends.popitem(last=False)
        yield _header(self.shape.format, conversation, about)
        turns, model = Turns(conversation, line), label(about.get("model"))
        for message, each in zip(messages[known + 1 :], keys[known + 1 :], strict=True):
            yield from write_message(turns, message, each, self.options, model)


def _next_key(key: str, message: Mapping[str, Any]) -> str:
    """The key of a message from the one before it: equal messages get keys of their own."""
    said = {name: message[name] for name in _SAID if message.get(name)}
    return chain(key, json.dumps(said, sort_keys=True))


def _id_of(format: str, about: Mapping[str, Any]) -> str | None:
    for name in (*_IDS, *_LOOSE_IDS):
        value = about.get(name)
        text = label(str(value)) if isinstance(value, str | int) else None
        if text is not None and (name in _IDS or len(text) >= _LONG):
            return conversation_id(format, text)
    return None


def _header(format: str, conversation: str, about: Mapping[str, Any]) -> Header:
    title = about.get("title") or about.get("name")
    ids = (about.get(name) for name in (*_IDS, *_LOOSE_IDS, "custom_id"))
    return Header(
        conversation,
        title if isinstance(title, str) else None,
        some(
            format=format,
            source_id=next((label(str(i)) for i in ids if isinstance(i, str | int)), None),
            model=label(about.get("model")),
        ),
    )
