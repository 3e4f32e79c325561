"""A provider's own threads: few, daemonic, and never more however its calls hang."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from .errors import ClosedError

__all__ = ["Call", "LoopThread", "Workers"]

_IDLE_SECONDS = 30.0


class Call:
    """One call on its way: waiting, running, then ended; or given up before it started."""

    __slots__ = (
        "_context",
        "_function",
        "_listeners",
        "_lock",
        "elapsed",
        "error",
        "given_up",
        "result",
        "started",
        "state",
    )

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function: Callable[[], Any] | None = function
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Call], None]] = []
        self.state = "waiting"
        self.given_up = False
        self.started = time.monotonic()
        self.elapsed = 0.0
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run it, unless it was given up; never raises."""
        with self._lock:
            function, self._function = self._function, None
            if function is None or self.state != "waiting":
                return
            self.state = "running"
        try:
            self.result = self._context.run(function)
        except BaseException as error:  # told to the caller through the outcome
            self.error = error
        self.elapsed = time.monotonic() - self.started
        with self._lock:
            self.state = "ended"
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(self)

    def when_ended(self, listener: Callable[[Call], None]) -> None:
        """Call back when it has ended, at once where it has."""
        with self._lock:
            if self.state != "ended":
                self._listeners.append(listener)
                return
        listener(self)

    def give_up(self) -> str:
        """Stop waiting for it: a waiting call will not start. Returns the state it was in."""
        with self._lock:
            was = self.state
            self.given_up = was != "ended"
            if was == "waiting":
                self.state, self._function = "dropped", None
            return was


class Workers:
    """At most `size` daemon threads that take calls in turn and end when idle.

    A call that hangs holds one of them and nothing else: not the caller, not the exit of the
    process. After a fork the child starts with threads of its own.
    """

    def __init__(self, name: str, size: int = 4) -> None:
        self._name = name
        self._size = size
        self._reset()
        _POOLS.add(self)

    def _reset(self) -> None:
        self._ready = threading.Condition()
        self._queue: deque[Call] = deque()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, function: Callable[[], Any]) -> Call:
        """Queue a call; it starts when one of the threads is free.

        Raises:
            ClosedError: `close` was called.
            RuntimeError: There is no thread, and none can be started.
        """
        call = Call(function)
        with self._ready:
            if self._closed:
                raise ClosedError(f"{self._name} is closed")
            while self._queue and self._queue[0].state == "dropped":
                self._queue.popleft()  # while every thread hangs nobody else takes them out
            self._queue.append(call)
            if self._idle >= len(self._queue):
                self._ready.notify()
            elif self._threads < self._size:
                self._threads += 1
                try:
                    threading.Thread(
                        target=self._work, name=f"memsheaf-{self._name}", daemon=True
                    ).start()
                except RuntimeError:
                    self._threads -= 1
                    if not self._threads:  # else those that run will come to it
                        self._queue.pop()
                        raise
        return call

    def close(self) -> None:
        """Let idle threads end; calls that run are left to end by themselves."""
        with self._ready:
            self._closed = True
            self._queue.clear()
            self._ready.notify_all()

    def _work(self) -> None:
        ready = self._ready
        while True:
            with ready:
                self._idle += 1
                while not self._queue:
                    if self._closed or not ready.wait(_IDLE_SECONDS):
                        if self._queue:
                            continue
                        self._idle -= 1
                        self._threads -= 1
                        return
                self._idle -= 1
                call = self._queue.popleft()
            call.run()
            del call


class LoopThread:
    """One event loop on one daemon thread, for a provider's async hooks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._reset()
        _POOLS.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any], timeout: float) -> Any:
        """Run a coroutine to its end, cancelled at the timeout.

        Args:
            coroutine: What to run.
            timeout: Seconds.

        Raises:
            TimeoutError: It did not end in time; it was cancelled.
        """

        async def bounded() -> Any:
            async with asyncio.timeout(timeout):
                return await coroutine

        return asyncio.run_coroutine_threadsafe(bounded(), self._start()).result()

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._serve,
                    args=(loop,),
                    name=f"memsheaf-{self._name}-loop",
                    daemon=True,
                ).start()
                self._loop = loop
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while True:
            try:
                loop.run_forever()
                break
            except (SystemExit, KeyboardInterrupt):
                continue  # a provider raised it; its own call is told, the loop serves the others
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def close(self) -> None:
        """Stop the loop; what still runs on it is cancelled."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


_POOLS: weakref.WeakSet[Workers | LoopThread] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for pool in list(_POOLS):
        pool._reset()  # the parent's threads do not exist here, and its locks may be held


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
