"""Driving a turn: in this thread or on a loop, whole or event by event."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from typing import Any

from memsheaf.models import ChatModel, ChatReply, Done, ModelError, TextDelta

from .driver import AskModel, RunTools, Turn
from .host_tools import arun_tools, run_tools
from .memory import AgentMemory
from .scrub import Scrubber
from .turn_types import Prompt, ToolsDone, TurnDone, TurnEvent, TurnOptions, TurnResult

__all__ = ["arun_turn", "astream_turn", "run_turn", "stream_turn"]


def run_turn(
    prompt: Prompt,
    *,
    memory: AgentMemory,
    model: ChatModel,
    conversation: str,
    options: TurnOptions | None = None,
) -> TurnResult:
    """Run a turn: record, recall, inject, model and tools until it is done, record, learn.

    The user's words are kept before anything can fail; learning goes on in the background.

    Args:
        prompt: The user's words, one message, or a whole list of messages. With words or one
            message, the conversation so far comes from the log.
        memory: The agent's memory.
        model: Any chat model.
        conversation: Its id in the log.
        options: How the turn runs.

    Returns:
        The result; it tells of every failure, and a turn whose model fails is a result as well.

    Raises:
        UsageError: The prompt does not end with the user's words, two tools have the same name, or
            the conversation's id is not 1 to 512 printable characters.

    >>> from memsheaf.agent import AgentMemory, run_turn
    >>> from memsheaf.models import ScriptedModel
    >>> from memsheaf.providers.local import LocalStore
    >>> from memsheaf.stack import MemoryStack, Scope
    >>> with MemoryStack([LocalStore()], scope=Scope(user_id="mira")) as stack:
    ...     memory = AgentMemory(stack=stack)
    ...     result = run_turn(
    ...         "Hello?", memory=memory, model=ScriptedModel(["Hi!"]), conversation="c"
    ...     )
    >>> result.status, result.text
    ('completed', 'Hi!')
    """
    chosen = options or TurnOptions()
    turn = Turn(prompt, memory, conversation, chosen)
    for event in _events(turn, model, chosen, stream=False):
        if isinstance(event, TurnDone):
            return event.result
    raise AssertionError("a turn ends with its result")


def stream_turn(
    prompt: Prompt,
    *,
    memory: AgentMemory,
    model: ChatModel,
    conversation: str,
    options: TurnOptions | None = None,
) -> Generator[TurnEvent, None, None]:
    """Run a turn event by event; the last is `TurnDone`. See `run_turn`.

    Closed before its end, it keeps what was said so far.
    """
    chosen = options or TurnOptions()
    return _events(Turn(prompt, memory, conversation, chosen), model, chosen, stream=True)


async def arun_turn(
    prompt: Prompt,
    *,
    memory: AgentMemory,
    model: ChatModel,
    conversation: str,
    options: TurnOptions | None = None,
) -> TurnResult:
    """See `run_turn`; memory and log are used off the caller's loop."""
    chosen = options or TurnOptions()
    turn = Turn(prompt, memory, conversation, chosen)
    async for event in _aevents(turn, model, chosen, stream=False):
        if isinstance(event, TurnDone):
            return event.result
    raise AssertionError("a turn ends with its result")


def astream_turn(
    prompt: Prompt,
    *,
    memory: AgentMemory,
    model: ChatModel,
    conversation: str,
    options: TurnOptions | None = None,
) -> AsyncGenerator[TurnEvent, None]:
    """See `stream_turn`; memory and log are used off the caller's loop."""
    chosen = options or TurnOptions()
    return _aevents(Turn(prompt, memory, conversation, chosen), model, chosen, stream=True)


def _events(
    turn: Turn, model: ChatModel, options: TurnOptions, *, stream: bool
) -> Generator[TurnEvent, None, None]:
    steps = _Steps(turn)
    answer: Any = None
    try:
        while not isinstance(need := steps.go_on(answer), TurnResult):
            if isinstance(need, RunTools):
                yield from need.calls
                answer = run_tools(
                    need.calls, turn.find, timeout=options.tool_timeout, cancel=options.cancel
                )
                yield ToolsDone(tuple(answer))
                continue
            try:
                if stream:
                    answer = yield from _streamed(turn, model, need, options)
                else:
                    answer = model.complete(need.messages, **_options(need, options))
            except Exception as error:
                answer = error
        yield TurnDone(need)
    finally:
        steps.close()


def _streamed(
    turn: Turn, model: ChatModel, need: AskModel, options: TurnOptions
) -> Generator[TurnEvent, None, ChatReply]:
    scrubber = Scrubber(turn.issued)
    with closing(model.stream(need.messages, **_options(need, options))) as events:
        for event in events:
            if isinstance(event, TextDelta | Done) and (text := _shown(turn, scrubber, event)):
                yield TextDelta(text)
            if isinstance(event, Done):
                return event.reply
    raise ModelError("the stream ended without its reply", model=model.name)


async def _aevents(
    turn: Turn, model: ChatModel, options: TurnOptions, *, stream: bool
) -> AsyncGenerator[TurnEvent, None]:
    steps = _Steps(turn)
    answer: Any = None
    try:
        while not isinstance(need := await asyncio.to_thread(steps.go_on, answer), TurnResult):
            if isinstance(need, RunTools):
                for call in need.calls:
                    yield call
                answer = await arun_tools(
                    need.calls, turn.find, timeout=options.tool_timeout, cancel=options.cancel
                )
                yield ToolsDone(tuple(answer))
                continue
            try:
                if not stream:
                    answer = await model.acomplete(need.messages, **_options(need, options))
                    continue
                scrubber = Scrubber(turn.issued)
                answer = ModelError("the stream ended without its reply", model=model.name)
                told = model.astream(need.messages, **_options(need, options))
                async with aclosing(told) as events:
                    async for event in events:
                        if isinstance(event, TextDelta | Done) and (
                            text := _shown(turn, scrubber, event)
                        ):
                            yield TextDelta(text)
                        if isinstance(event, Done):
                            answer = event.reply
            except Exception as error:
                answer = error
        yield TurnDone(need)
    finally:
        if not steps.over:
            await asyncio.to_thread(steps.close)


def _shown(turn: Turn, scrubber: Scrubber, event: TextDelta | Done) -> str:
    """What of an event is shown: its text without echoed blocks."""
    text = scrubber.feed(event.text) if isinstance(event, TextDelta) else scrubber.flush()
    turn.hear(text)
    return text


class _Steps:
    """A turn's steps, which one thread at a time may take."""

    def __init__(self, turn: Turn) -> None:
        self._steps = turn.steps()
        self._lock = threading.Lock()
        self.over = False

    def go_on(self, answer: Any) -> AskModel | RunTools | TurnResult:
        """Give the answer to the last need; returns the next one, or the result."""
        with self._lock:
            try:
                if isinstance(answer, Exception):
                    return self._steps.throw(answer)
                return self._steps.send(answer)
            except StopIteration as end:
                self.over = True
                result: TurnResult = end.value
                return result

    def close(self) -> None:
        """End the turn where it is; what was said so far is kept."""
        with self._lock:
            self._steps.close()


def _options(need: AskModel, options: TurnOptions) -> dict[str, Any]:
    tools = {"tools": need.tools} if need.tools else {}
    return {**options.model_options, **tools, "cancel": options.cancel}
