"""The three protocols: what is sent, what is read, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.models import (
    AnthropicMessages,
    BadReply,
    BadRequest,
    ChatModel,
    ChatReply,
    Done,
    HttpSettings,
    Message,
    ModelRefused,
    Ollama,
    OpenAICompatible,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    Usage,
)

if TYPE_CHECKING:
    from tests.models.conftest import Server

HI: list[Message] = [{"role": "user", "content": "hi"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look it up",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
}
CALLED: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "look", "arguments": '{"q": "x"}'},
            },
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": "not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "found x"},
    {"role": "tool", "tool_call_id": "b", "content": "found y"},
    {"role": "user", "content": "and now?"},
]
# U+2028 is a line break for str.splitlines, and plain text inside JSON.
SAID = "Grüße \u2028 \U0001f600 done"
CALL = ToolCall("call_7", "look", '{"q": "ö"}')
WANTED = ChatReply(
    text=SAID,
    tool_calls=(CALL,),
    usage=Usage(11, 5, 0),
    model="m-1",
    finish_reason="tool_calls",
    id="r1",
)


def sse(*payloads: Any, end: str = "\n\n") -> bytes:
    """The events of a stream."""
    return b"".join(
        b"data: " + json.dumps(p, ensure_ascii=False).encode() + end.encode() for p in payloads
    )


@dataclass
class Dialect:
    """One protocol: its client, and the same reply in its words."""

    name: str
    path: str
    whole: Any
    stream: bytes
    wanted: ChatReply

    def client(self, server: Server, settings: HttpSettings, key: str | None = None) -> Any:
        match self.name:
            case "openai":
                return OpenAICompatible(server.url + "/v1/", "m", api_key=key, settings=settings)
            case "anthropic":
                return AnthropicMessages("m", base_url=server.url, api_key=key, settings=settings)
        return Ollama("m", base_url=server.url, api_key=key, settings=settings)


def _openai() -> Dialect:
    def chunk(delta: Any, reason: str | None = None) -> Any:
        return {
            "id": "r1",
            "model": "m-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }

    usage = {"prompt_tokens": 11, "completion_tokens": 5}
    function = {"name": "look", "arguments": CALL.arguments}
    message = {
        "role": "assistant",
        "content": SAID,
        "tool_calls": [{"id": CALL.id, "type": "function", "function": function}],
    }
    opening = {"index": 0, "id": CALL.id, "function": {"name": "look", "arguments": ""}}
    stream = b": a comment\r\n\r\n" + sse(
        chunk({"role": "assistant", "content": SAID[:4]}),
        chunk({"content": SAID[4:]}),
        chunk({"tool_calls": [opening]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"q": '}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"ö"}'}}]}),
        chunk({}, "tool_calls"),
        {"id": "r1", "model": "m-1", "choices": [], "usage": usage},
        end="\r\n\r\n",
    )
    whole = {
        "id": "r1",
        "model": "m-1",
        "usage": usage,
        "choices": [{"message": message, "finish_reason": "tool_calls"}],
    }
    return Dialect(
        "openai", "/v1/chat/completions", whole, stream + b"data: [DONE]\r\n\r\n", WANTED
    )


def _anthropic() -> Dialect:
    whole = {
        "id": "r1",
        "model": "m-1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": SAID},
            {"type": "tool_use", "id": CALL.id, "name": "look", "input": {"q": "ö"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 11, "output_tokens": 5},
    }
    start = {"id": "r1", "model": "m-1", "usage": {"input_tokens": 11, "output_tokens": 1}}

    def text(piece: str) -> Any:
        delta = {"type": "text_delta", "text": piece}
        return {"type": "content_block_delta", "index": 0, "delta": delta}

    def arguments(piece: str) -> Any:
        delta = {"type": "input_json_delta", "partial_json": piece}
        return {"type": "content_block_delta", "index": 1, "delta": delta}

    use = {"type": "tool_use", "id": CALL.id, "name": "look", "input": {}}
    stream = b"event: x\n" + sse(
        {"type": "message_start", "message": start},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        text(SAID[:4]),
        text(SAID[4:]),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": use},
        arguments('{"q": '),
        arguments('"ö"}'),
        {"type": "content_block_stop", "index": 1},
        {"type": "something_new"},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    )
    return Dialect("anthropic", "/v1/messages", whole, stream, WANTED)


def _ollama() -> Dialect:
    calls = [{"id": CALL.id, "function": {"name": "look", "arguments": {"q": "ö"}}}]
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 11, "eval_count": 5}

    def line(message: Any, **more: Any) -> bytes:
        payload = {"model": "m-1", "message": message, "done": False, **more}
        return json.dumps(payload, ensure_ascii=False).encode() + b"\n"

    stream = (
        line({"role": "assistant", "content": SAID[:4]})
        + line({"content": SAID[4:]})
        + line({"content": "", "tool_calls": calls})
        + line({"content": ""}, **end)
    )
    whole = {"model": "m-1", "message": {"content": SAID, "tool_calls": calls}, **end}
    wanted = ChatReply(
        text=SAID,
        tool_calls=(CALL,),
        usage=Usage(11, 5),
        model="m-1",
        finish_reason="tool_calls",
    )
    return Dialect("ollama", "/api/chat", whole, stream, wanted)


@pytest.fixture(params=[_openai(), _anthropic(), _ollama()], ids=lambda d: d.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


@pytest.fixture
def client(dialect: Dialect, server: Server, settings: HttpSettings) -> Iterator[Any]:
    with dialect.client(server, settings, "sk-secret") as made:
        yield made


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def test_whole_reply(server: Server, dialect: Dialect, client: Any) -> None:
    server.sends(dialect.whole)
    reply = client.complete(HI, tools=[TOOL], temperature=0.5, max_tokens=7)
    assert reply == dialect.wanted
    assert reply.tool_calls[0].parsed() == {"q": "ö"}
    assert server.paths == [dialect.path]
    assert isinstance(client, ChatModel)


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_stream_in_any_chunks(server: Server, dialect: Dialect, client: Any, size: int) -> None:
    server.plays(chunks=pieces(dialect.stream, size))
    events: list[StreamEvent] = list(client.stream(HI))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == SAID
    assert [e for e in events if isinstance(e, ToolCallReady)] == [ToolCallReady(CALL)]
    assert events[-1] == Done(dialect.wanted)
    assert server.requests[0]["stream"] is True


def test_the_four_faces_answer_the_same(server: Server, dialect: Dialect, client: Any) -> None:
    async def both() -> tuple[ChatReply, list[StreamEvent]]:
        reply = await client.acomplete(HI)
        return reply, [event async for event in client.astream(HI)]

    server.sends(dialect.whole)
    server.plays(chunks=pieces(dialect.stream, 9))
    server.sends(dialect.whole)
    server.plays(chunks=pieces(dialect.stream, 9))
    sync = client.complete(HI), list(client.stream(HI))
    assert asyncio.run(both()) == sync
    assert server.requests[:2] == server.requests[2:]


def test_one_client_serves_several_loops(server: Server, dialect: Dialect, client: Any) -> None:
    for _ in range(3):
        server.sends(dialect.whole)
        assert asyncio.run(client.acomplete(HI)) == dialect.wanted


def test_sync_call_inside_a_running_loop(server: Server, dialect: Dialect, client: Any) -> None:
    async def notebook() -> ChatReply:
        reply: ChatReply = client.complete(HI)
        return reply

    server.sends(dialect.whole)
    assert asyncio.run(notebook()) == dialect.wanted


def test_keys_travel_in_the_header_of_the_protocol(
    server: Server, dialect: Dialect, client: Any
) -> None:
    server.sends(dialect.whole)
    client.complete(HI)
    sent = server.seen_headers[0]
    if dialect.name == "anthropic":
        assert (sent["x-api-key"], sent["anthropic-version"]) == ("sk-secret", "2023-06-01")
    else:
        assert sent["authorization"] == "Bearer sk-secret"


def test_openai_body(server: Server, settings: HttpSettings) -> None:
    dialect = _openai()
    server.sends(dialect.whole)
    with OpenAICompatible(
        server.url, "m", token_limit_field="max_completion_tokens", settings=settings
    ) as model:
        model.complete(CALLED, tools=[TOOL], temperature=0, max_tokens=9, json_mode=True)
    body = server.requests[0]
    assert body["messages"][: len(CALLED)] == CALLED
    assert "JSON" in body["messages"][-1]["content"]
    assert body["tools"] == [TOOL]
    assert body["response_format"] == {"type": "json_object"}
    assert (body["temperature"], body["max_completion_tokens"]) == (0, 9)
    assert "authorization" not in server.seen_headers[0]


def test_openai_json_mode_leaves_messages_that_speak_of_json_alone(
    server: Server, settings: HttpSettings
) -> None:
    server.sends(_openai().whole)
    asks: list[Message] = [{"role": "user", "content": "Answer as Json."}]
    with OpenAICompatible(server.url, "m", settings=settings) as model:
        model.complete(asks, json_mode=True)
    assert server.requests[0]["messages"] == asks


@pytest.mark.parametrize("status", [400, 422])
def test_openai_json_mode_refused(server: Server, settings: HttpSettings, status: int) -> None:
    whole = _openai().whole
    server.sends({"error": {"message": "response_format?"}}, status)
    server.sends(whole)
    server.sends(whole)
    with OpenAICompatible(server.url, "m", settings=settings) as model:
        assert model.complete(HI, json_mode=True).text == SAID
        assert model.complete(HI, json_mode=True).text == SAID
    assert ["response_format" in body for body in server.requests] == [True, False, False]
    assert "JSON" in server.requests[2]["messages"][-1]["content"]


def test_openai_other_400_is_refused_and_json_mode_kept(
    server: Server, settings: HttpSettings
) -> None:
    for _ in range(2):
        server.sends({"error": {"code": "context_length_exceeded"}}, 400)
    server.sends(_openai().whole)
    with OpenAICompatible(server.url, "m", settings=settings) as model:
        with pytest.raises(ModelRefused, match="context_length_exceeded"):
            model.complete(HI, json_mode=True)
        model.complete(HI, json_mode=True)
    assert "response_format" in server.requests[2]


def test_openai_stream_without_usage_where_the_server_refuses_it(
    server: Server, settings: HttpSettings
) -> None:
    dialect = _openai()
    server.sends({}, 422)
    server.plays(chunks=[dialect.stream])
    with OpenAICompatible(server.url, "m", settings=settings) as model:
        assert list(model.stream(HI))[-1] == Done(WANTED)
    assert ["stream_options" in body for body in server.requests] == [True, False]


def test_openai_tool_calls_without_index_or_id(server: Server, settings: HttpSettings) -> None:
    def chunk(*calls: Any, reason: str | None = None) -> Any:
        return {"choices": [{"delta": {"tool_calls": list(calls)}, "finish_reason": reason}]}

    one = {"id": "1", "function": {"name": "f", "arguments": '{"a"'}}
    two = {"id": "2", "function": {"name": "g", "arguments": {"b": 2}}}
    more = {"function": {"arguments": ": 1}"}}
    server.plays(chunks=[sse(chunk(one), chunk(more), chunk(two), chunk(reason="function_call"))])
    unnamed = {"function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "tool_calls": [unnamed, unnamed]}
    server.sends({"choices": [{"message": message}]})
    with OpenAICompatible(server.url, "m", settings=settings) as model:
        streamed = list(model.stream(HI))[-1]
        whole = model.complete(HI)
    assert isinstance(streamed, Done)
    assert streamed.reply.tool_calls == (
        ToolCall("1", "f", '{"a": 1}'),
        ToolCall("2", "g", '{"b": 2}'),
    )
    assert streamed.reply.finish_reason == whole.finish_reason == "tool_calls"
    ids = [call.id for call in whole.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 2


def test_surrogate_halves_in_two_deltas_join(server: Server, settings: HttpSettings) -> None:
    def chunk(text: str, reason: str | None = None) -> bytes:
        delta = {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}
        return b"data: " + json.dumps(delta).encode() + b"\n\n"

    server.plays(chunks=[chunk("a\ud83d"), chunk("\ude00b"), chunk("\ud83d", "stop")])
    with OpenAICompatible(server.url, "m", settings=settings) as model:
        events = list(model.stream(HI))
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["a", "\U0001f600b", "\ufffd"]
    assert isinstance(events[-1], Done)
    assert events[-1].reply.text == "a\U0001f600b\ufffd"


def test_anthropic_body(server: Server, settings: HttpSettings) -> None:
    server.sends(_anthropic().whole)
    with AnthropicMessages("m", base_url=server.url, settings=settings) as model:
        model.complete(CALLED, tools=[TOOL], json_mode=True)
    body = server.requests[0]
    assert body["system"] == "Be brief.\n\nReply with one JSON value and nothing else."
    assert body["max_tokens"] == 4096
    assert body["tools"] == [
        {
            "name": "look",
            "description": "Look it up",
            "input_schema": TOOL["function"]["parameters"],  # type: ignore[index]
        }
    ]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert [block["input"] for block in body["messages"][1]["content"]] == [
        {"q": "x"},
        {"arguments": "not json"},
    ]
    kinds = [(b["type"], b.get("tool_use_id")) for b in body["messages"][2]["content"]]
    assert kinds == [("tool_result", "a"), ("tool_result", "b"), ("text", None)]


def test_anthropic_images(server: Server, settings: HttpSettings) -> None:
    def image(url: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": url}}

    server.sends(_anthropic().whole)
    parts = [image("data:image/png;base64,AAAA"), image("https://example.org/a.png")]
    with AnthropicMessages("m", base_url=server.url, settings=settings) as model:
        model.complete([{"role": "user", "content": parts}])
        with pytest.raises(BadRequest, match="image_url"):
            model.complete([{"role": "user", "content": [{"type": "input_audio"}]}])
    assert [block["source"] for block in server.requests[0]["messages"][0]["content"]] == [
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "url", "url": "https://example.org/a.png"},
    ]


def test_anthropic_counts_cached_input(server: Server, settings: HttpSettings) -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 2}
    server.sends({"content": [], "usage": usage, "stop_reason": "refusal"})
    with AnthropicMessages("m", base_url=server.url, settings=settings) as model:
        reply = model.complete(HI)
    assert reply.usage == Usage(93, 2, 90)
    assert reply.finish_reason == "content_filter"


def test_ollama_body(server: Server, settings: HttpSettings) -> None:
    server.sends(_ollama().whole)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts: list[dict[str, Any]] = [{"type": "text", "text": "see"}, picture]
    messages: list[Message] = [*CALLED, {"role": "user", "content": parts}]
    with Ollama("m", base_url=server.url, settings=settings) as model:
        model.complete(messages, json_mode=True, temperature=0.1, max_tokens=3, tools=[TOOL])
    body = server.requests[0]
    assert (body["format"], body["options"]) == ("json", {"temperature": 0.1, "num_predict": 3})
    calls = body["messages"][2]["tool_calls"]
    assert calls[0] == {"function": {"name": "look", "arguments": {"q": "x"}}}
    assert body["messages"][3] == {"role": "tool", "content": "found x", "tool_name": "look"}
    assert body["messages"][-1] == {"role": "user", "content": "see", "images": ["AAAA"]}
    assert body["tools"] == [TOOL]


def test_a_reply_goes_back_as_a_message(server: Server, dialect: Dialect, client: Any) -> None:
    server.sends(dialect.whole)
    server.sends(dialect.whole)
    message = client.complete(HI).as_message()
    result: Message = {"role": "tool", "tool_call_id": CALL.id, "content": "x"}
    assert client.complete([*HI, message, result]) == dialect.wanted
    assert message["tool_calls"][0]["function"]["arguments"] == CALL.arguments


def test_lone_surrogates_in_messages_are_sent_as_question_marks(
    server: Server, dialect: Dialect, client: Any
) -> None:
    server.sends(dialect.whole)
    client.complete([{"role": "user", "content": "a\ud800b"}])
    assert "a?b" in json.dumps(server.requests[0])


def test_arguments_that_are_no_object() -> None:
    for arguments in ("[1]", "{", "[" * 100_000):
        with pytest.raises(BadReply, match="look"):
            ToolCall("1", "look", arguments).parsed()
    assert ToolCall("1", "look", "").parsed() == {}
