"""What goes into a chat model and what comes out of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Required, TypedDict, Unpack, runtime_checkable

from .cancel import CancelToken
from .errors import BadReply, BadRequest

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
Role = Literal["system", "developer", "user", "assistant", "tool"]


class FunctionCall(TypedDict):
    """The function part of a tool call; `arguments` is JSON text."""

    name: str
    arguments: str


class MessageToolCall(TypedDict):
    """A tool call inside an assistant message."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict, total=False):
    """One message in OpenAI form.

    `content` is text, a list of parts (`{"type": "text", "text": …}`, `{"type": "image_url", …}`)
    or None for an assistant that only calls tools. A tool message has `tool_call_id`.
    """

    role: Required[Role]
    content: str | Sequence[Mapping[str, Any]] | None
    name: str
    tool_calls: Sequence[MessageToolCall]
    tool_call_id: str


class ChatOptions(TypedDict, total=False):
    """The options of one call; each may be left out.

    tools: Tool schemas in OpenAI form.
    json_mode: Ask for one JSON value; a server without such a mode is asked in words.
    temperature: As the server understands it.
    max_tokens: Longest reply, in tokens of the model.
    timeout: Seconds for the whole call, retries and streaming included.
    cancel: Ends the call from another thread.
    """

    tools: Sequence[Mapping[str, Any]]
    json_mode: bool
    temperature: float | None
    max_tokens: int | None
    timeout: float | None
    cancel: CancelToken | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One checked call: the messages and every option.

    Raises:
        BadRequest: Messages or options are not what the types say.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    json_mode: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    cancel: CancelToken | None = None

    @classmethod
    def build(cls, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatRequest:
        """Check the arguments of a call."""
        if unknown := options.keys() - ChatOptions.__annotations__.keys():
            raise BadRequest(
                f"unknown option {sorted(unknown)}; known are {sorted(ChatOptions.__annotations__)}"
            )
        if not messages:
            raise BadRequest("messages is empty; pass at least one message")
        for place, message in enumerate(messages):
            _check(place, message)
        if (timeout := options.get("timeout")) is not None and not timeout > 0:
            raise BadRequest("timeout must be a number of seconds above 0")
        if (max_tokens := options.get("max_tokens")) is not None and max_tokens < 1:
            raise BadRequest("max_tokens must be 1 or more")
        checked = {**options, "tools": tuple(options.get("tools") or ())}
        return cls(messages=tuple(messages), **checked)  # type: ignore[arg-type]


def _check(place: int, message: Message) -> None:
    role = message.get("role")
    if role not in ROLES:
        raise BadRequest(f"messages[{place}] has no known role; use one of {sorted(ROLES)}")
    content = message.get("content")
    if not (content is None or isinstance(content, str | Sequence)):
        raise BadRequest(f"messages[{place}].content must be text, a list of parts or None")
    if role == "tool" and not message.get("tool_call_id"):
        raise BadRequest(f"messages[{place}] is a tool result without tool_call_id")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants to run; `arguments` is the JSON text as it came."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any]:
        """The arguments as an object.

        Raises:
            BadReply: The model sent something else than a JSON object.
        """
        try:
            value = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise BadReply(f"the arguments of tool call {self.name!r} are not JSON") from error
        if not isinstance(value, dict):
            raise BadReply(f"the arguments of tool call {self.name!r} are not a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the server counted; `cached_tokens` are those of the input read from a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A whole reply.

    Attributes:
        text: What the model said, "" when it only calls tools.
        tool_calls: In the model's order.
        usage: None where the server does not say.
        model: The model that answered, as the server names it.
        finish_reason: "stop", "length", "tool_calls", "content_filter", or the server's own word.
        id: The server's id of the reply, "" where it has none.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str = ""
    finish_reason: str = "stop"
    id: str = ""

    def as_message(self) -> Message:
        """The assistant message to append to the conversation."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["content"] = self.text or None
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        return message


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallReady:
    """A tool call, complete with its arguments."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Done:
    """The last event: the reply as `complete` would have returned it."""

    reply: ChatReply


StreamEvent = TextDelta | ToolCallReady | Done


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers messages; the async face answers the same as the sync one."""

    @property
    def name(self) -> str:
        """A label for messages and logs, without secrets."""
        ...

    def complete(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """Answer the messages."""
        ...

    async def acomplete(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> ChatReply:
        """Answer the messages; cancelling the task ends the request."""
        ...

    def stream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Generator[StreamEvent, None, None]:
        """Answer piece by piece; the last event is `Done`. Closing the iterator ends the call."""
        ...

    def astream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Answer piece by piece, as `stream` does."""
        ...
