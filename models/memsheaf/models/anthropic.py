"""Anthropic's messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._client import HttpModel
from ._http import HttpSettings
from ._wire import (
    JSON_IN_WORDS,
    Growing,
    GrowingCall,
    as_json,
    as_object,
    count,
    items,
    mapping,
    string,
    text_of,
)
from .chat import ChatRequest, Message, StreamEvent, ToolCallReady, Usage
from .errors import BadRequest, ModelUnavailable

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class AnthropicMessages(HttpModel):
    """A Claude model, or any server that speaks the messages API.

    System messages go into `system`, tool calls and results into their blocks. The API has no
    JSON mode: JSON is asked for in words.

    Args:
        model: As the server names it.
        api_key: Sent as `x-api-key`.
        base_url: Without the version.
        max_tokens: Longest reply where a call names none; the API insists on a number.
        settings: Timeouts, retries, limits.

    >>> with AnthropicMessages("claude-small", api_key="secret") as model:
    ...     model
    <AnthropicMessages claude-small at api.anthropic.com>
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str = "https://api.anthropic.com",
        max_tokens: int = 4096,
        settings: HttpSettings | None = None,
    ) -> None:
        wire = AnthropicWire(max_tokens)
        super().__init__(wire, base_url, model, api_key=api_key, settings=settings)


class AnthropicWire:
    """The messages API, version 2023-06-01."""

    path = "/v1/messages"
    sse = True

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens

    def headers(self, api_key: str) -> dict[str, str]:
        """The version, and the key where there is one."""
        key = {"x-api-key": api_key} if api_key else {}
        return {"anthropic-version": "2023-06-01", **key}

    def has_optional(self, request: ChatRequest, *, stream: bool) -> bool:
        """Nothing is optional."""
        return False

    def body(
        self, model: str, request: ChatRequest, *, stream: bool, plain: bool
    ) -> dict[str, Any]:
        """System text apart, neighbours of one role merged: the API wants turns to alternate."""
        system = [text_of(m) for m in request.messages if m["role"] in ("system", "developer")]
        if request.json_mode:
            system.append(JSON_IN_WORDS)
        turns: list[dict[str, Any]] = []
        for message in request.messages:
            if message["role"] in ("system", "developer"):
                continue
            role = "assistant" if message["role"] == "assistant" else "user"
            blocks = _blocks(message)
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"].extend(blocks)
            elif blocks:
                turns.append({"role": role, "content": blocks})
        body: dict[str, Any] = {
            "model": model,
            "messages": turns,
            "max_tokens": request.max_tokens or self._max_tokens,
            "stream": stream,
        }
        if system := [text for text in system if text]:
            body["system"] = "\n\n".join(system)
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body

    def read(self, payload: dict[str, Any], reply: Growing) -> None:
        """The text blocks joined, the tool calls in order."""
        if not isinstance(payload.get("content"), list):
            raise reply.bad("the reply has no content")
        _head(payload, reply)
        for block in map(mapping, items(payload["content"])):
            if block.get("type") == "text":
                list(reply.say(string(block.get("text"))))
            elif block.get("type") == "tool_use":
                call = _open(block, reply)
                call.arguments.append(as_json(block.get("input")))
                reply.calls.append(call.finished())
        _finish(payload, reply)

    def feed(self, payload: dict[str, Any], reply: Growing) -> Iterator[StreamEvent]:
        """One event; kinds that are not known are skipped, as the API asks."""
        index = payload.get("index")
        match payload.get("type"):
            case "message_start":
                _head(mapping(payload.get("message")), reply)
            case "content_block_start":
                block = mapping(payload.get("content_block"))
                if block.get("type") == "tool_use":
                    reply.open_calls[index] = _open(block, reply)
                elif block.get("type") == "text":
                    yield from reply.say(string(block.get("text")))
            case "content_block_delta":
                delta = mapping(payload.get("delta"))
                if delta.get("type") == "text_delta":
                    yield from reply.say(string(delta.get("text")))
                elif delta.get("type") == "input_json_delta" and index in reply.open_calls:
                    reply.open_calls[index].arguments.append(string(delta.get("partial_json")))
            case "content_block_stop" if index in reply.open_calls:
                reply.calls.append(reply.open_calls.pop(index).finished())
                yield ToolCallReady(reply.calls[-1])
            case "message_delta":
                _finish(mapping(payload.get("delta")), reply)
                _count(mapping(payload.get("usage")), reply)
            case "message_stop":
                reply.ended = True
            case "error":
                raise ModelUnavailable(
                    "the server reports an error; try again later", model=reply.label
                )


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [
            {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": text_of(message),
            }
        ]
    content = message.get("content") or ""
    parts: Sequence[Mapping[str, Any]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    # The API refuses empty text.
    blocks = [_part(part) for part in parts if part.get("type") != "text" or part.get("text")]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        blocks.append(
            {
                "type": "tool_use",
                "id": call["id"],
                "name": function["name"],
                "input": as_object(function["arguments"]),
            }
        )
    return blocks


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "text": part["text"]}
    if part.get("type") == "image_url":
        url = string(mapping(part.get("image_url")).get("url"))
        head, comma, data = url.partition(",")
        if head.startswith("data:") and head.endswith(";base64") and comma:
            kind = head.removeprefix("data:").removesuffix(";base64")
            source = {"type": "base64", "media_type": kind, "data": data}
        else:
            source = {"type": "url", "url": url}
        return {"type": "image", "source": source}
    raise BadRequest("a content part is neither text nor image_url; the messages API has no other")


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = mapping(tool.get("function"))
    if not function.get("name"):
        raise BadRequest("a tool is not in OpenAI form; it needs function.name")
    return {
        "name": function["name"],
        "description": string(function.get("description")),
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }


def _open(block: Mapping[str, Any], reply: Growing) -> GrowingCall:
    if not string(block.get("name")):
        raise reply.bad("a tool call has no name")
    return GrowingCall(string(block.get("id")), string(block.get("name")))


def _head(payload: Mapping[str, Any], reply: Growing) -> None:
    reply.id = string(payload.get("id"))
    reply.model = string(payload.get("model"))
    _count(mapping(payload.get("usage")), reply)


def _count(usage: Mapping[str, Any], reply: Growing) -> None:
    """A stream counts twice: input at its start, output at its end."""
    if usage:
        before = reply.usage or Usage()
        cached = count(usage.get("cache_read_input_tokens"))
        fresh = count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens"))
        reply.usage = Usage(
            fresh + cached or before.input_tokens,
            count(usage.get("output_tokens")) or before.output_tokens,
            cached or before.cached_tokens,
        )


def _finish(payload: Mapping[str, Any], reply: Growing) -> None:
    reason = string(payload.get("stop_reason"))
    reply.finish_reason = _REASONS.get(reason, reason)
