"""Circuit breaker: stop asking what keeps failing, try again after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Breaker"]


class Breaker:
    """Opens after consecutive failures; after a pause one trial call decides.

    Args:
        failures: How many failures in a row open it.
        pause: Seconds until the trial.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        failures: int = 5,
        pause: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = failures
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._retry_at: float | None = None

    def refuses(self) -> str | None:
        """Why the call should not be made, or None; None may start the one trial."""
        if self._retry_at is None:
            return None
        with self._lock:
            if self._retry_at is None:
                return None
            wait = self._retry_at - self._clock()
            if wait > 0:
                return f"not asked after {self._failed} failures in a row; next try in {wait:.0f} s"
            self._retry_at = self._clock() + self._pause
            return None

    def succeeded(self) -> None:
        """Close it."""
        if self._failed or self._retry_at is not None:
            with self._lock:
                self._failed, self._retry_at = 0, None

    def failed(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failed += 1
            if self._failed >= self._limit:
                self._retry_at = self._clock() + self._pause

    def reset(self) -> None:
        """Forget the failures, for instance after the provider was opened again."""
        self.succeeded()
