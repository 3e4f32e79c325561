"""Any server that speaks OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ._client import HttpModel
from ._http import HttpSettings
from ._wire import (
    JSON_IN_WORDS,
    Growing,
    GrowingCall,
    as_json,
    count,
    items,
    mapping,
    string,
    text_of,
)
from .chat import ChatRequest, StreamEvent, ToolCallReady, Usage
from .errors import ModelUnavailable

TokenField = Literal["max_tokens", "max_completion_tokens"]


class OpenAICompatible(HttpModel):
    """A model behind chat completions: OpenAI, vLLM, llama.cpp, LM Studio, OpenRouter and others.

    A server that refuses `response_format` or `stream_options` (400 or 422) is asked again without
    them, with the wish for JSON in words, and not bothered with them afterwards.

    Args:
        base_url: Up to and with the version, for instance "https://api.openai.com/v1".
        model: As the server names it.
        api_key: Sent as a bearer token; None for servers without one.
        token_limit_field: Newer OpenAI models want "max_completion_tokens".
        settings: Timeouts, retries, limits.

    >>> with OpenAICompatible("http://127.0.0.1:8000/v1", "small", api_key="secret") as model:
    ...     model
    <OpenAICompatible small at 127.0.0.1:8000>
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        token_limit_field: TokenField = "max_tokens",
        settings: HttpSettings | None = None,
    ) -> None:
        super().__init__(
            OpenAIWire(token_limit_field), base_url, model, api_key=api_key, settings=settings
        )


class OpenAIWire:
    """Chat completions."""

    path = "/chat/completions"
    sse = True

    def __init__(self, token_limit_field: TokenField) -> None:
        self._token_limit_field = token_limit_field

    def headers(self, api_key: str) -> dict[str, str]:
        """A bearer token where there is a key."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def has_optional(self, request: ChatRequest, *, stream: bool) -> bool:
        """JSON mode, and the usage of a stream."""
        return request.json_mode or stream

    def body(
        self, model: str, request: ChatRequest, *, stream: bool, plain: bool
    ) -> dict[str, Any]:
        """The messages go through as they are."""
        messages: list[Mapping[str, Any]] = list(request.messages)
        # OpenAI refuses JSON mode unless some message speaks of JSON.
        spoken = any("json" in text_of(message).lower() for message in request.messages)
        if request.json_mode and (plain or not spoken):
            messages.append({"role": "system", "content": JSON_IN_WORDS})
        body: dict[str, Any] = {"model": model, "messages": messages, "stream": stream}
        if request.tools:
            body["tools"] = list(request.tools)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body[self._token_limit_field] = request.max_tokens
        if request.json_mode and not plain:
            body["response_format"] = {"type": "json_object"}
        if stream and not plain:
            body["stream_options"] = {"include_usage": True}
        return body

    def read(self, payload: dict[str, Any], reply: Growing) -> None:
        """The first choice."""
        _raise_error(payload, reply)
        choices = items(payload.get("choices"))
        if not choices:
            raise reply.bad("the reply has no choices")
        choice = mapping(choices[0])
        message = choice.get("message")
        if not isinstance(message, dict):
            raise reply.bad("the reply's choice has no message")
        _head(payload, reply)
        list(reply.say(_content(message)))
        for sent in items(message.get("tool_calls")):
            function = mapping(mapping(sent).get("function"))
            if not string(function.get("name")):
                raise reply.bad("a tool call has no name")
            call = GrowingCall(string(mapping(sent).get("id")), string(function.get("name")))
            call.arguments.append(as_json(function.get("arguments")))
            reply.calls.append(call.finished())
        _finish(choice, reply)

    def feed(self, payload: dict[str, Any], reply: Growing) -> Iterator[StreamEvent]:
        """One chunk; the usage comes in a last one without choices, after the finish reason."""
        _raise_error(payload, reply)
        _head(payload, reply)
        for choice in map(mapping, items(payload.get("choices"))[:1]):
            delta = mapping(choice.get("delta"))
            yield from reply.say(_content(delta))
            for sent in map(mapping, items(delta.get("tool_calls"))):
                _grow(sent, reply)
            if choice.get("finish_reason"):
                _finish(choice, reply)
                reply.ended = True
                for call in reply.open_calls.values():
                    if not call.name:
                        raise reply.bad("a tool call has no name")
                    reply.calls.append(call.finished())
                    yield ToolCallReady(reply.calls[-1])
                reply.open_calls.clear()


def _grow(sent: Mapping[str, Any], reply: Growing) -> None:
    index, identity = sent.get("index"), string(sent.get("id"))
    if not isinstance(index, int):
        # Some servers send no index: a new id opens a call, none continues the last.
        known = [key for key, call in reply.open_calls.items() if call.id == identity]
        last = list(reply.open_calls)[-1:]
        index = (known or ([] if identity else last) or [len(reply.open_calls)])[0]
    call = reply.open_calls.setdefault(index, GrowingCall())
    call.id = call.id or identity
    function = mapping(sent.get("function"))
    call.name = call.name or string(function.get("name"))
    if function.get("arguments") is not None:
        call.arguments.append(as_json(function["arguments"]))


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(string(mapping(part).get("text")) for part in content)
    return string(content)


def _head(payload: Mapping[str, Any], reply: Growing) -> None:
    reply.id = reply.id or string(payload.get("id"))
    reply.model = reply.model or string(payload.get("model"))
    if usage := mapping(payload.get("usage")):
        details = mapping(usage.get("prompt_tokens_details"))
        reply.usage = Usage(
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
            count(details.get("cached_tokens")),
        )


def _finish(choice: Mapping[str, Any], reply: Growing) -> None:
    reason = string(choice.get("finish_reason"))
    reply.finish_reason = "tool_calls" if reason == "function_call" else reason


def _raise_error(payload: Mapping[str, Any], reply: Growing) -> None:
    # Gateways report an upstream failure inside a reply with status 200.
    if payload.get("error"):
        raise ModelUnavailable("the server reports an error; try again later", model=reply.label)
