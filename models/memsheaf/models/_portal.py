"""One daemon thread with an event loop that serves the sync and the async face of a client.

Both faces run the same coroutines on this loop, so they share one connection pool, a sync call
can be cancelled at once, and a client may be used from any thread and any event loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .cancel import CancelToken
from .errors import ModelCancelled

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Work = Callable[["httpx.AsyncClient"], Coroutine[Any, Any, T]]


@dataclass(frozen=True, slots=True)
class _Running:
    thread: threading.Thread
    loop: asyncio.AbstractEventLoop
    client: httpx.AsyncClient
    stop: asyncio.Event
    pid: int

    @property
    def here(self) -> bool:
        # A forked child has the object but not the thread.
        return self.pid == os.getpid()

    def soon(self, callback: Callable[[], object]) -> None:
        """Run `callback` on the loop; a loop that is closed has nothing left to tell."""
        try:
            self.loop.call_soon_threadsafe(callback)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def ask_to_stop(self) -> None:
        if self.here:
            self.soon(self.stop.set)


class Portal:
    """Starts its thread at the first call; `close` ends running calls, sockets and the thread."""

    def __init__(self, make_client: Callable[[], httpx.AsyncClient], label: str) -> None:
        self._make_client = make_client
        self._label = label
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def running(self) -> bool:
        """Whether the thread is there."""
        running = self._running
        return running is not None and running.here

    def start(self) -> None:
        """Start the thread if it is not there; builds the client, which takes some 20 ms."""
        with self._lock:
            self._ensure()

    def submit(self, work: Work[T], cancel: CancelToken | None) -> Future[T]:
        """Run `work` on the loop.

        Raises:
            ModelCancelled: The portal is closed or the token is already cancelled.
        """
        if cancel is not None and cancel.cancelled:
            raise self._cancelled()
        with self._lock:
            running = self._ensure()
            guarded = self._guard(work, running, cancel or CancelToken())
            return asyncio.run_coroutine_threadsafe(guarded, running.loop)

    def close(self) -> None:
        """End every running call with `ModelCancelled` and release everything; may be repeated."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None and running.here:
            running.ask_to_stop()
            if running.thread is not threading.current_thread():
                running.thread.join()

    def _ensure(self) -> _Running:
        if self._closed:
            raise self._cancelled()
        if self._running is not None and self._running.here:
            return self._running
        started: Future[_Running] = Future()
        threading.Thread(
            target=_serve, args=(self._make_client, started), name="memsheaf-models", daemon=True
        ).start()
        running = started.result()
        weakref.finalize(self, running.ask_to_stop)
        self._running = running
        return running

    async def _guard(self, work: Work[T], running: _Running, cancel: CancelToken) -> T:
        task = asyncio.current_task()
        assert task is not None
        with cancel.linked(lambda: running.soon(task.cancel)):
            try:
                return await work(running.client)
            except asyncio.CancelledError:
                if cancel.cancelled or self._closed:
                    raise self._cancelled() from None
                raise

    def _cancelled(self) -> ModelCancelled:
        why = "the client is closed; make a new one" if self._closed else "the call was cancelled"
        return ModelCancelled(why, model=self._label)


def _serve(make_client: Callable[[], httpx.AsyncClient], started: Future[_Running]) -> None:
    async def main() -> None:
        async with make_client() as client:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            thread = threading.current_thread()
            started.set_result(_Running(thread, loop, client, stop, os.getpid()))
            await stop.wait()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    try:
        asyncio.run(main())
    except Exception as error:
        if started.done():
            raise
        started.set_exception(error)
