"""Ollama's own chat API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._client import HttpModel
from ._http import HttpSettings
from ._wire import Growing, GrowingCall, as_json, as_object, count, items, mapping, string, text_of
from .chat import ChatRequest, Message, StreamEvent, ToolCallReady, Usage
from .errors import BadRequest, ModelUnavailable


class Ollama(HttpModel):
    """A model that an Ollama server runs.

    Args:
        model: As `ollama list` names it.
        base_url: Where the server listens.
        api_key: Sent as a bearer token, for servers behind a gateway.
        settings: Timeouts, retries, limits.

    >>> with Ollama("llama3.2") as model:
    ...     model
    <Ollama llama3.2 at 127.0.0.1:11434>
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "http://127.0.0.1:11434",
        api_key: str | None = None,
        settings: HttpSettings | None = None,
    ) -> None:
        super().__init__(OllamaWire(), base_url, model, api_key=api_key, settings=settings)


class OllamaWire:
    """`/api/chat`: one JSON object, or one a line."""

    path = "/api/chat"
    sse = False

    def headers(self, api_key: str) -> dict[str, str]:
        """A bearer token where there is a key."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def has_optional(self, request: ChatRequest, *, stream: bool) -> bool:
        """Nothing is optional."""
        return False

    def body(
        self, model: str, request: ChatRequest, *, stream: bool, plain: bool
    ) -> dict[str, Any]:
        """Arguments become objects, a tool's result carries the tool's name."""
        names = {
            call["id"]: call["function"]["name"]
            for message in request.messages
            for call in message.get("tool_calls") or ()
        }
        body: dict[str, Any] = {
            "model": model,
            "messages": [_message(message, names) for message in request.messages],
            "stream": stream,
        }
        if request.tools:
            body["tools"] = list(request.tools)
        if request.json_mode:
            body["format"] = "json"
        options = {"temperature": request.temperature, "num_predict": request.max_tokens}
        if options := {key: value for key, value in options.items() if value is not None}:
            body["options"] = options
        return body

    def read(self, payload: dict[str, Any], reply: Growing) -> None:
        """The message."""
        if not isinstance(payload.get("message"), dict) and not payload.get("error"):
            raise reply.bad("the reply has no message")
        for _ in self.feed(payload, reply):
            pass

    def feed(self, payload: dict[str, Any], reply: Growing) -> Iterator[StreamEvent]:
        """One line; a tool call always comes whole."""
        if payload.get("error"):
            raise ModelUnavailable("the server reports an error; see its log", model=reply.label)
        reply.model = reply.model or string(payload.get("model"))
        message = mapping(payload.get("message"))
        yield from reply.say(string(message.get("content")))
        for sent in map(mapping, items(message.get("tool_calls"))):
            function = mapping(sent.get("function"))
            if not string(function.get("name")):
                raise reply.bad("a tool call has no name")
            call = GrowingCall(string(sent.get("id")), string(function.get("name")))
            call.arguments.append(as_json(function.get("arguments")))
            reply.calls.append(call.finished())
            yield ToolCallReady(reply.calls[-1])
        if payload.get("done"):
            reply.ended = True
            reason = string(payload.get("done_reason"))
            reply.finish_reason = "tool_calls" if reply.calls and reason in ("", "stop") else reason
            reply.usage = Usage(
                count(payload.get("prompt_eval_count")), count(payload.get("eval_count"))
            )


def _message(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    role = "system" if message["role"] == "developer" else message["role"]
    sent: dict[str, Any] = {"role": role, "content": text_of(message)}
    if images := _images(message):
        sent["images"] = images
    if calls := message.get("tool_calls"):
        sent["tool_calls"] = [
            {
                "function": {
                    "name": call["function"]["name"],
                    "arguments": as_object(call["function"]["arguments"]),
                }
            }
            for call in calls
        ]
    if name := names.get(message.get("tool_call_id", "")):
        sent["tool_name"] = name
    return sent


def _images(message: Message) -> list[str]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return []
    images = []
    for part in content:
        if part.get("type") == "image_url":
            url = string(mapping(part.get("image_url")).get("url"))
            head, _, data = url.partition(";base64,")
            if not (head.startswith("data:") and data):
                raise BadRequest("Ollama takes images as data: URLs in base64 only")
            images.append(data)
        elif part.get("type") != "text":
            raise BadRequest("a content part is neither text nor image_url; Ollama has no other")
    return images
