"""Servers that fail, stall, lie or refuse: which error, how often asked, what it says."""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
import stamina.instrumentation

from memsheaf.models import (
    AnthropicMessages,
    BadReply,
    BadRequest,
    CancelToken,
    HttpSettings,
    Message,
    ModelBusy,
    ModelCancelled,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    Ollama,
    OpenAICompatible,
    TextDelta,
)

if TYPE_CHECKING:
    from tests.models.conftest import Server

KEY = "sk-very-secret"
PROMPT = "my diary says Zanzibar"
HI: list[Message] = [{"role": "user", "content": PROMPT}]
GOOD = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
DELTA = b'data: {"choices": [{"delta": {"content": "par"}}]}\n\n'


@pytest.fixture
def model(server: Server, settings: HttpSettings) -> Iterator[OpenAICompatible]:
    with OpenAICompatible(server.url, "m", api_key=KEY, settings=settings) as made:
        yield made


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("status", "kind", "asked"),
    [
        (301, ModelRefused, 1),
        (400, ModelRefused, 1),
        (401, ModelRefused, 1),
        (403, ModelRefused, 1),
        (404, ModelRefused, 1),
        (408, ModelUnavailable, 3),
        (409, ModelUnavailable, 3),
        (429, ModelBusy, 3),
        (500, ModelUnavailable, 3),
        (529, ModelUnavailable, 3),
    ],
)
def test_statuses(
    server: Server, model: OpenAICompatible, status: int, kind: type[ModelError], asked: int
) -> None:
    for _ in range(asked):
        server.sends({"error": {"message": f"{KEY} {PROMPT}", "code": "some_code"}}, status)
    with pytest.raises(kind, match=rf"^m at 127\.0\.0\.1:\d+: HTTP {status} \(some_code\)") as info:
        model.complete(HI)
    assert len(server.requests) == asked
    assert KEY not in said(info.value)
    assert "Zanzibar" not in said(info.value)


@pytest.mark.parametrize("code", [f"bad_{KEY}", "my diary says", "x" * 65, 7, None])
def test_only_short_codes_are_shown(server: Server, model: OpenAICompatible, code: object) -> None:
    server.sends({"error": {"code": code}}, 401)
    with pytest.raises(ModelRefused, match=r"HTTP 401; check the API key$"):
        model.complete(HI)


def test_500_then_success(server: Server, model: OpenAICompatible) -> None:
    server.plays(status=500, body=b"oops")
    server.sends(GOOD)
    assert model.complete(HI).text == "ok"


def test_retry_after_is_honoured(server: Server, settings: HttpSettings) -> None:
    waits: list[float] = []
    before = stamina.instrumentation.get_on_retry_hooks()
    stamina.instrumentation.set_on_retry_hooks([lambda details: waits.append(details.wait_for)])
    try:
        server.sends({}, 429, Retry_After="0.25")
        server.sends(GOOD)
        patient = replace(settings, wait_max=1)
        with OpenAICompatible(server.url, "m", settings=patient) as model:
            assert model.complete(HI).text == "ok"
    finally:
        stamina.instrumentation.set_on_retry_hooks(before)
    assert waits == [pytest.approx(0.25)]


def test_a_longer_retry_after_is_told_at_once(server: Server, model: OpenAICompatible) -> None:
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for value, low in (("3600", 3600), (in_an_hour, 3500)):
        server.sends({}, 429, Retry_After=value)
        with pytest.raises(ModelBusy) as info:
            model.complete(HI)
        assert info.value.retry_after is not None
        assert low <= info.value.retry_after <= 3600
    assert len(server.requests) == 2


def test_a_retry_after_that_means_nothing_is_not_trusted(
    server: Server, model: OpenAICompatible
) -> None:
    for value in ("soon", "-5", "1e9"):
        server.sends({}, 429, Retry_After=value)
        server.sends(GOOD)
        assert model.complete(HI).text == "ok"


def test_nobody_listens(closed_port: int, settings: HttpSettings) -> None:
    with (
        OpenAICompatible(f"http://127.0.0.1:{closed_port}", "m", settings=settings) as model,
        pytest.raises(ModelUnavailable, match="check that the server runs") as info,
    ):
        model.complete(HI)
    assert info.value.__cause__ is not None


@pytest.mark.parametrize("hold", ["headers", "body"])
def test_deadline(server: Server, model: OpenAICompatible, hold: str) -> None:
    server.plays(hold=hold, chunks=[b'{"choices"'])
    with pytest.raises(ModelTimeout, match=r"within 0\.2 s") as info:
        model.complete(HI, timeout=0.2)
    assert isinstance(info.value, TimeoutError)
    assert server.left.wait(10)
    assert len(server.requests) == 1


def test_deadline_of_a_stream(server: Server, model: OpenAICompatible) -> None:
    server.plays(hold="body", chunks=[DELTA])
    events = model.stream(HI, timeout=0.3)
    assert next(events) == TextDelta("par")
    with pytest.raises(ModelTimeout):
        next(events)
    assert server.left.wait(10)


def test_a_stream_that_breaks_off_is_not_asked_again(
    server: Server, model: OpenAICompatible
) -> None:
    for drop in (True, False):  # the connection lost, and a clean end without the last event
        server.plays(chunks=[DELTA], drop=drop)
        events = model.stream(HI)
        assert next(events) == TextDelta("par")
        with pytest.raises(ModelUnavailable):
            next(events)
    assert len(server.requests) == 2


def test_a_stream_that_says_nothing_is_asked_again(server: Server, model: OpenAICompatible) -> None:
    server.plays(chunks=[b": hello\n\n"], drop=True)
    server.plays(chunks=[DELTA, b'data: {"choices": [{"finish_reason": "length"}]}\n\n'])
    done = list(model.stream(HI))[-1]
    assert done.reply.finish_reason == "length"  # type: ignore[union-attr]


def test_a_whole_reply_that_breaks_off_is_asked_again(
    server: Server, model: OpenAICompatible
) -> None:
    server.plays(chunks=[b'{"cho'], drop=True)
    server.sends(GOOD)
    assert model.complete(HI).text == "ok"


BROKEN = {
    "html": b"<html>Zanzibar</html>",
    "not utf-8": b'{"choices": "\xff\xfe"}',
    "array": b"[1]",
    "empty": b"",
    "deep": b"[" * 100_000,
    "long number": b'{"choices": ' + b"1" * 5000 + b"}",
    "no choices": b'{"choices": []}',
    "wrong choices": b'{"choices": {"0": 1}}',
    "no message": b'{"choices": [7]}',
    "nameless call": b'{"choices": [{"message": {"tool_calls": [{"function": {}}, 3]}}]}',
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_broken_bodies(server: Server, model: OpenAICompatible, body: bytes) -> None:
    server.plays(body=body)
    with pytest.raises(BadReply, match=r"^m at ") as info:
        model.complete(HI)
    assert "Zanzibar" not in said(info.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("data", [b"data: {oops\n\n", b'data: "\xff"\n\n', b"data: [1]\n\n"])
def test_broken_events(server: Server, model: OpenAICompatible, data: bytes) -> None:
    server.plays(chunks=[DELTA, data])
    events = model.stream(HI)
    next(events)
    with pytest.raises(BadReply):
        next(events)


def test_broken_replies_of_the_others(server: Server, settings: HttpSettings) -> None:
    cases: list[tuple[Any, Any, type[ModelError]]] = [
        (AnthropicMessages, {"content": "text"}, BadReply),
        (AnthropicMessages, {"content": [{"type": "tool_use"}]}, BadReply),
        (Ollama, {"done": True}, BadReply),
        (Ollama, {"message": {"tool_calls": [{}]}}, BadReply),
    ]
    for make, payload, kind in cases:
        server.sends(payload)
        with make("m", base_url=server.url, settings=settings) as model, pytest.raises(kind):
            model.complete(HI)


def test_errors_inside_a_200(server: Server, settings: HttpSettings) -> None:
    once = replace(settings, attempts=1)
    error = {"error": {"type": "overloaded_error", "message": PROMPT}}
    event = b'data: {"type": "error", "error": {"message": "Zanzibar"}}\n\n'
    makers: list[Callable[[], Any]] = [
        lambda: OpenAICompatible(server.url, "m", settings=once),
        lambda: Ollama("m", base_url=server.url, settings=once),
    ]
    for make in makers:
        server.sends(error)
        with make() as model, pytest.raises(ModelUnavailable, match="reports an error") as info:
            model.complete(HI)
        assert "Zanzibar" not in said(info.value)
    server.plays(chunks=[event])
    with (
        AnthropicMessages("m", base_url=server.url, settings=once) as claude,
        pytest.raises(ModelUnavailable, match="reports an error"),
    ):
        list(claude.stream(HI))


@pytest.mark.parametrize("streamed", [False, True])
def test_huge_bodies_are_refused(server: Server, settings: HttpSettings, streamed: bool) -> None:
    server.plays(chunks=[b"x" * 1000] * 30)
    small = replace(settings, max_bytes=20_000)
    with (
        OpenAICompatible(server.url, "m", settings=small) as model,
        pytest.raises(BadReply, match="longer than 20000 bytes"),
    ):
        list(model.stream(HI)) if streamed else model.complete(HI)


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, caught


@pytest.mark.parametrize("hold", ["headers", "body"])
@pytest.mark.parametrize("by", ["token", "close"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_sync_call_ends_from_another_thread(
    server: Server, model: OpenAICompatible, hold: str, by: str, streamed: bool
) -> None:
    server.plays(hold=hold, chunks=[b" "])
    token = CancelToken()

    def call() -> object:
        return (
            list(model.stream(HI, cancel=token)) if streamed else model.complete(HI, cancel=token)
        )

    thread, caught = in_thread(call)
    assert server.arrived.wait(10)
    if by == "token":
        token.cancel()
    else:
        model.close()
    thread.join(10)
    assert [type(error) for error in caught] == [ModelCancelled]
    assert server.left.wait(10)


def test_a_token_ends_the_wait_between_attempts(server: Server, settings: HttpSettings) -> None:
    retrying = threading.Event()
    before = stamina.instrumentation.get_on_retry_hooks()
    stamina.instrumentation.set_on_retry_hooks([lambda _: retrying.set()])
    token = CancelToken()
    try:
        server.sends({}, 429, Retry_After="100")
        patient = replace(settings, wait_max=200, timeout=300)
        with OpenAICompatible(server.url, "m", settings=patient) as model:
            thread, caught = in_thread(lambda: model.complete(HI, cancel=token))
            assert retrying.wait(10)
            token.cancel()
            thread.join(10)
            assert not thread.is_alive()
    finally:
        stamina.instrumentation.set_on_retry_hooks(before)
    assert [type(error) for error in caught] == [ModelCancelled]


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_a_task_closes_the_connection(
    server: Server, model: OpenAICompatible, streamed: bool
) -> None:
    server.plays(hold="headers")

    async def consume() -> None:
        if streamed:
            async for _ in model.astream(HI):
                pass
        else:
            await model.acomplete(HI)

    async def main() -> None:
        task = asyncio.create_task(consume())
        assert await asyncio.to_thread(server.arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert server.left.wait(10)


@pytest.mark.parametrize("streamed", [False, True])
def test_async_calls_end_by_token_and_by_close(
    server: Server, settings: HttpSettings, streamed: bool
) -> None:
    async def main(by: str) -> None:
        server.arrived.clear()
        server.plays(hold="headers")
        token = CancelToken()
        model = OpenAICompatible(server.url, "m", settings=settings)

        async def consume() -> None:
            if streamed:
                async for _ in model.astream(HI, cancel=token):
                    pass
            else:
                await model.acomplete(HI, cancel=token)

        task = asyncio.create_task(consume())
        assert await asyncio.to_thread(server.arrived.wait, 10)
        if by == "token":
            token.cancel()
        else:
            await asyncio.to_thread(model.close)
        with pytest.raises(ModelCancelled):
            await task
        model.close()

    for by in ("token", "close"):
        asyncio.run(main(by))


def test_closing_a_stream_closes_the_connection(server: Server, model: OpenAICompatible) -> None:
    server.plays(hold="body", chunks=[DELTA])
    events = model.stream(HI)
    next(events)
    events.close()
    assert server.left.wait(10)


def test_a_cancelled_token_and_a_closed_client_send_nothing(
    server: Server, model: OpenAICompatible
) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(ModelCancelled, match="cancelled"):
        model.complete(HI, cancel=token)
    model.close()
    model.close()
    for call in (model.complete, lambda messages: list(model.stream(messages))):
        with pytest.raises(ModelCancelled, match="closed; make a new one"):
            call(HI)
    with pytest.raises(ModelCancelled, match="closed"):
        asyncio.run(model.acomplete(HI))
    assert server.requests == []


def test_many_threads_share_one_client(server: Server, model: OpenAICompatible) -> None:
    for _ in range(24):
        server.sends(GOOD)
    results: list[str] = []
    threads = [
        in_thread(lambda: results.extend([model.complete(HI).text for _ in range(3)]))[0]
        for _ in range(8)
    ]
    for thread in threads:
        thread.join(20)
    assert results == ["ok"] * 24


def test_a_forgotten_client_stops_its_thread(server: Server, settings: HttpSettings) -> None:
    server.sends(GOOD)
    model = OpenAICompatible(server.url, "m", settings=settings)
    model.complete(HI)
    serving = [t for t in threading.enumerate() if t.name == "memsheaf-models"]
    del model
    for thread in serving:
        thread.join(10)
    assert [thread.is_alive() for thread in serving] == [False]


def test_keys_and_texts_stay_out_of_logs_and_reprs(
    server: Server, model: OpenAICompatible, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        server.sends({"error": {"message": PROMPT}}, 500)
        server.sends(GOOD)
        model.complete(HI)
    assert caplog.records
    for text in (caplog.text, repr(model), model.name, *map(repr, caplog.records)):
        assert KEY not in text
        assert "Zanzibar" not in text
    assert not any(KEY in repr(r.__dict__) for r in caplog.records)


@pytest.mark.parametrize("key", ["a b", "a\nb", "ключ"])
def test_a_key_no_header_can_carry(key: str) -> None:
    with pytest.raises(BadRequest, match="api_key") as info:
        OpenAICompatible("http://localhost", "m", api_key=key)
    assert key not in said(info.value)


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://x", "http://", "http://u:p@x", "http://x?key=1", "http://[x"]
)
def test_base_urls_that_are_refused(url: str) -> None:
    with pytest.raises(BadRequest, match="base_url"):
        OpenAICompatible(url, "m")


@pytest.mark.parametrize(
    ("messages", "options"),
    [
        ([], {}),
        ([{"role": "robot", "content": "x"}], {}),
        ([{"role": "user", "content": 7}], {}),
        ([{"role": "tool", "content": "x"}], {}),
        (HI, {"timeout": 0}),
        (HI, {"timeout": float("nan")}),
        (HI, {"max_tokens": 0}),
        (HI, {"temprature": 1}),
        (HI, {"tools": [{"x": object()}]}),
        (HI, {"temperature": float("inf")}),
    ],
)
def test_wrong_calls_send_nothing(
    server: Server, model: OpenAICompatible, messages: Any, options: Any
) -> None:
    for call in (model.complete, lambda *a, **k: list(model.stream(*a, **k))):
        with pytest.raises(BadRequest) as info:
            call(messages, **options)
        assert "Zanzibar" not in said(info.value)
    assert server.requests == []
    with pytest.raises(BadRequest, match="model"):
        OpenAICompatible("http://localhost", "")


@pytest.mark.parametrize("wrong", [{"verify": "/no/such/bundle.pem"}, {"proxy": "gopher://x"}])
def test_settings_that_no_client_can_have(settings: HttpSettings, wrong: Any) -> None:
    with OpenAICompatible("http://x", "m", settings=replace(settings, **wrong)) as model:
        with pytest.raises(BadRequest, match="HttpSettings"):
            model.complete(HI)
        with pytest.raises(BadRequest, match="HttpSettings"):
            asyncio.run(model.acomplete(HI))


def test_the_environment_is_not_read(
    server: Server, model: OpenAICompatible, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port}")
    server.sends(GOOD)
    assert model.complete(HI).text == "ok"
