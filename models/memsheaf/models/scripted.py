"""A model that follows a script: for tests and for examples without a network."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from typing import Unpack

from .cancel import CancelToken
from .chat import (
    ChatOptions,
    ChatReply,
    ChatRequest,
    Done,
    Message,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
)
from .errors import ModelCancelled, ModelError, ModelTimeout

Scripted = str | ChatReply | ToolCall | Sequence[ToolCall] | BaseException
Script = Sequence[Scripted] | Callable[[ChatRequest], Scripted]


class ScriptedModel:
    """Answers from a list, one reply a call, or from a function of the request.

    A reply is text, a `ChatReply`, one or more tool calls, or an exception to raise. Safe to use
    from several threads.

    Args:
        script: The replies, or the function.
        name: Label in messages and replies.
        delay: Seconds before each reply; ends early on cancel and on timeout.

    Attributes:
        calls: Every request so far, in order.

    >>> model = ScriptedModel(["hello"])
    >>> model.complete([{"role": "user", "content": "hi"}]).text
    'hello'
    >>> model.calls[0].messages[0]["content"]
    'hi'
    """

    def __init__(self, script: Script = (), *, name: str = "scripted", delay: float = 0.0) -> None:
        self.calls: list[ChatRequest] = []
        self._script = script if callable(script) else tuple(script)
        self._name = name
        self._delay = delay
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The label."""
        return self._name

    def __repr__(self) -> str:
        return f"<ScriptedModel {self._name}>"

    def complete(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> ChatReply:
        """The next reply."""
        request, place = self._record(messages, options)
        self._wait(request)
        return self._reply(request, place)

    async def acomplete(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> ChatReply:
        """The next reply."""
        request, place = self._record(messages, options)
        await self._async_wait(request)
        return self._reply(request, place)

    def stream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> Generator[StreamEvent, None, None]:
        """The next reply, word by word."""
        ChatRequest.build(messages, **options)
        return self._events(messages, options)

    def astream(
        self, messages: Sequence[Message], **options: Unpack[ChatOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """The next reply, word by word."""
        ChatRequest.build(messages, **options)
        return self._async_events(messages, options)

    def _events(
        self, messages: Sequence[Message], options: ChatOptions
    ) -> Generator[StreamEvent, None, None]:
        reply = self.complete(messages, **options)
        for event in _pieces(reply):
            self._check(options.get("cancel"))
            yield event

    async def _async_events(
        self, messages: Sequence[Message], options: ChatOptions
    ) -> AsyncGenerator[StreamEvent, None]:
        reply = await self.acomplete(messages, **options)
        for event in _pieces(reply):
            self._check(options.get("cancel"))
            yield event

    def _record(self, messages: Sequence[Message], options: ChatOptions) -> tuple[ChatRequest, int]:
        request = ChatRequest.build(messages, **options)
        self._check(request.cancel)
        with self._lock:
            self.calls.append(request)
            return request, len(self.calls) - 1

    def _wait(self, request: ChatRequest) -> None:
        allowed = self._allowed(request)
        if allowed > 0:
            (request.cancel or CancelToken()).wait(allowed)
        self._after(request, allowed)

    async def _async_wait(self, request: ChatRequest) -> None:
        allowed = self._allowed(request)
        if allowed > 0:
            loop = asyncio.get_running_loop()
            woken = asyncio.Event()
            token = request.cancel or CancelToken()
            # Running into the timeout is the normal case: the delay passed.
            with token.linked(lambda: _wake(loop, woken)), suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), allowed)
        self._after(request, allowed)

    def _allowed(self, request: ChatRequest) -> float:
        return self._delay if request.timeout is None else min(self._delay, request.timeout)

    def _after(self, request: ChatRequest, waited: float) -> None:
        self._check(request.cancel)
        if waited < self._delay:
            raise ModelTimeout(f"no whole reply within {waited:g} s", model=self._name)

    def _check(self, cancel: CancelToken | None) -> None:
        if cancel is not None and cancel.cancelled:
            raise ModelCancelled("the call was cancelled", model=self._name)

    def _reply(self, request: ChatRequest, place: int) -> ChatReply:
        if callable(self._script):
            scripted = self._script(request)
        elif place < len(self._script):
            scripted = self._script[place]
        else:
            raise ModelError(
                f"the script has {len(self._script)} replies and this is call {place + 1}",
                model=self._name,
            )
        if isinstance(scripted, BaseException):
            raise scripted
        if isinstance(scripted, ChatReply):
            return scripted
        if isinstance(scripted, str):
            return ChatReply(text=scripted, model=self._name)
        calls = (scripted,) if isinstance(scripted, ToolCall) else tuple(scripted)
        return ChatReply(text="", tool_calls=calls, model=self._name, finish_reason="tool_calls")


def _wake(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> None:
    loop.call_soon_threadsafe(woken.set)


def _pieces(reply: ChatReply) -> Iterator[StreamEvent]:
    for piece in re.findall(r"\s*\S+|\s+", reply.text):
        yield TextDelta(piece)
    for call in reply.tool_calls:
        yield ToolCallReady(call)
    yield Done(reply)
