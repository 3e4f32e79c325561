"""The host's own tools: run side by side, under a time limit, errors told to the model."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from memsheaf.models import CancelToken, ToolCall
from memsheaf.stack.text import clean

from .parameters import BadArguments, decode

__all__ = ["HostTool", "Run", "ToolOutcome", "arun_tools", "refused", "run_tools", "runner"]

_MOST_TOLD = 500
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class HostTool:
    """A tool of the application.

    Args:
        name: Its name.
        description: What the model is told of it.
        parameters: A JSON Schema of its arguments.
        run: Called with the arguments as keywords; may be ``async def``. What it returns goes to
            the model: text as it is, anything else as JSON.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[..., Any]

    def to_schema(self) -> dict[str, Any]:
        """The tool in OpenAI form."""
        about = {"name": self.name, "description": self.description}
        return {"type": "function", "function": {**about, "parameters": dict(self.parameters)}}


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call.

    Attributes:
        call: The call.
        text: What the model is told.
        error: Why it failed, or None.
    """

    call: ToolCall
    text: str
    error: str | None = None


Run = Callable[[ToolCall], Any]
"""Carries a call out; may return an awaitable."""


def runner(tools: Sequence[HostTool]) -> Callable[[str], Run | None]:
    """Look up what carries a call of a name out."""
    by_name = {tool.name: tool for tool in tools}

    def find(name: str) -> Run | None:
        tool = by_name.get(name)
        return None if tool is None else lambda call: tool.run(**decode(call.arguments))

    return find


def run_tools(
    calls: Sequence[ToolCall],
    find: Callable[[str], Run | None],
    *,
    timeout: float,
    cancel: CancelToken | None = None,
) -> list[ToolOutcome]:
    """Carry calls out side by side; an outcome each, in their order.

    Args:
        calls: The calls.
        find: Gives what carries a call out, by the tool's name.
        timeout: Seconds for all of them; one that takes longer is left to itself.
        cancel: Ends the waiting.
    """
    ended: queue.SimpleQueue[tuple[int, ToolOutcome]] = queue.SimpleQueue()

    def work(place: int, call: ToolCall) -> None:
        ended.put((place, _carry_out(call, find, _waited)))

    for place, call in enumerate(calls):
        _start(call, partial(work, place, call))
    outcomes: dict[int, ToolOutcome] = {}
    until = time.monotonic() + timeout
    while len(outcomes) < len(calls) and not (cancel is not None and cancel.cancelled):
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            place, outcome = ended.get(timeout=left if cancel is None else min(left, _POLL))
        except queue.Empty:
            continue
        outcomes[place] = outcome
    return [outcomes.get(place) or _unended(call, cancel) for place, call in enumerate(calls)]


async def arun_tools(
    calls: Sequence[ToolCall],
    find: Callable[[str], Run | None],
    *,
    timeout: float,
    cancel: CancelToken | None = None,
) -> list[ToolOutcome]:
    """See `run_tools`; coroutines run on the caller's loop, the rest on threads."""
    tasks = [asyncio.ensure_future(_on_loop(call, find)) for call in calls]
    until = time.monotonic() + timeout
    waiting = set(tasks)
    try:
        while waiting and not (cancel is not None and cancel.cancelled):
            left = until - time.monotonic()
            if left <= 0:
                break
            wait = left if cancel is None else min(left, _POLL)
            _, waiting = await asyncio.wait(waiting, timeout=wait)
    finally:
        for task in tasks:
            task.cancel()
    return [
        _unended(call, cancel) if task in waiting else _ended(call, task)
        for call, task in zip(calls, tasks, strict=True)
    ]


def refused(call: ToolCall, most: int) -> ToolOutcome:
    """The outcome of a call beyond the most that one reply may make."""
    return _error(call, "too_many_calls", f"only the first {most} calls of a reply are carried out")


async def _on_loop(call: ToolCall, find: Callable[[str], Run | None]) -> ToolOutcome:
    """Carry a call out on a thread; what it returns to be awaited is awaited here."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[ToolOutcome | Awaitable[Any]] = loop.create_future()

    def settle(made: ToolOutcome | Awaitable[Any]) -> None:
        if not ended.done():
            ended.set_result(made)
        elif inspect.iscoroutine(made):
            made.close()

    def work() -> None:
        later: list[Awaitable[Any]] = []
        made = _carry_out(call, find, later.append)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, later[0] if later else made)

    _start(call, work)
    made = await ended
    if isinstance(made, ToolOutcome):
        return made
    try:
        return ToolOutcome(call, _text(await made))
    except (Exception, SystemExit) as error:
        return _failure(call, error)


def _start(call: ToolCall, work: Callable[[], None]) -> None:
    """Run a call on a thread of its own, in the caller's context.

    It is a daemon: a call that hangs holds neither the end of the process nor other threads.
    """
    context = contextvars.copy_context()
    name = f"tool-{call.name[:40]}"
    threading.Thread(target=context.run, args=(work,), name=name, daemon=True).start()


def _carry_out(
    call: ToolCall,
    find: Callable[[str], Run | None],
    wait: Callable[[Awaitable[Any]], Any],
) -> ToolOutcome:
    """Carry a call out in this thread, whatever it raises; `wait` gets what is to be awaited."""
    try:
        run = find(call.name)
        if run is None:
            return _error(call, "unknown_tool", "there is no such tool")
        result = run(call)
        if inspect.isawaitable(result):
            result = wait(result)
        return ToolOutcome(call, _text(result))
    except BaseException as error:
        return _failure(call, error)


def _waited(awaitable: Awaitable[Any]) -> Any:
    async def wait() -> Any:
        return await awaitable

    return asyncio.run(wait())


def _ended(call: ToolCall, task: asyncio.Future[ToolOutcome]) -> ToolOutcome:
    return _failure(call, asyncio.CancelledError()) if task.cancelled() else task.result()


def _text(result: object) -> str:
    return clean(
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    )


def _failure(call: ToolCall, error: BaseException) -> ToolOutcome:
    kind = "invalid_arguments" if isinstance(error, BadArguments | TypeError) else "tool_failed"
    return _error(call, kind, f"{type(error).__name__}: {error}")


def _unended(call: ToolCall, cancel: CancelToken | None) -> ToolOutcome:
    if cancel is not None and cancel.cancelled:
        return _error(call, "interrupted", "the turn was interrupted")
    return _error(call, "timed_out", "the tool took too long")


def _error(call: ToolCall, kind: str, message: str) -> ToolOutcome:
    told = clean(message[:_MOST_TOLD])
    text = json.dumps({"status": "error", "error": kind, "message": told}, ensure_ascii=False)
    return ToolOutcome(call, text, f"{kind}: {told}")
