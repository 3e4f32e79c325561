"""A token that ends a running call from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CancelToken:
    """Cancels every call that it was handed to, from any thread, once and for good.

    >>> token = CancelToken()
    >>> token.cancel()
    >>> token.cancelled
    True
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """End every call that runs under this token."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            callback()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds; True as soon as the token is cancelled."""
        return self._event.wait(timeout)

    @contextmanager
    def linked(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` once if the token is cancelled inside the block, or was before."""
        key = object()
        with self._lock:
            already = self.cancelled
            if not already:
                self._callbacks[key] = callback
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)
