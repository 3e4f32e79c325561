"""Reflection in the background: the turn does not wait, and nothing fails in silence."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from memsheaf.models import CancelToken, ChatModel
from memsheaf.stack import MemoryStack, Scope
from memsheaf.stack.fanout import reason_of

from .reflection import Applied, ReflectionReport, ReflectionSettings, reflect, undo

__all__ = ["Reflector"]

_MOST_WAITING = 1_000
_KEPT_REPORTS = 100


class Reflector:
    """Reflects on runs, one after the other, on a thread of its own.

    Runs of one scope that come while another waits are one reflection, on the newest messages.

    Args:
        stack: The memories.
        model: Any chat model; a cheap one will do.
        settings: When, and on how much.
    """

    def __init__(
        self, stack: MemoryStack, model: ChatModel, *, settings: ReflectionSettings | None = None
    ) -> None:
        self._stack = stack
        self._model = model
        self._settings = settings or ReflectionSettings()
        self._runs: dict[Scope, int] = {}
        self._waiting: dict[Scope, list[Any]] = {}
        self._busy = False
        self._closed = False
        self._cancel = CancelToken()
        self._reports: deque[ReflectionReport] = deque(maxlen=_KEPT_REPORTS)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def reports(self) -> tuple[ReflectionReport, ...]:
        """What the last reflections did, oldest first."""
        with self._changed:
            return tuple(self._reports)

    def after_run(
        self, messages: Sequence[Any], scope: Scope, *, tool_calls: int = 0, failed: bool = False
    ) -> bool:
        """Count a run, and reflect on it in the background where it is due.

        Args:
            messages: The conversation, without blocks of memory.
            scope: Whose memory.
            tool_calls: How many tools the run called.
            failed: Whether it, or a tool of it, ended in an error.

        Returns:
            Whether a reflection will follow.

        Raises:
            ScopeError: The scope cannot be written.
        """
        scope.require_writable()
        with self._changed:
            run = self._runs[scope] = self._runs.get(scope, 0) + 1
            if self._closed or not self._settings.due(run, tool_calls, failed=failed):
                return False
            if scope not in self._waiting and len(self._waiting) >= _MOST_WAITING:
                self._reports.append(ReflectionReport(scope, error="too many runs are waiting"))
                return False
            self._waiting[scope] = list(messages)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="memsheaf-reflection", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
            return True

    def undo(self, report: ReflectionReport) -> tuple[Applied, ...]:
        """Take a reflection back, see `undo`."""
        return undo(report, self._stack)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until nothing waits; False where that took longer than `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Let what waits end, for `timeout` seconds at the most; then stop the model."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._cancel.cancel()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or bool(self._waiting))
                if self._closed:
                    return
                scope = next(iter(self._waiting))
                messages = self._waiting.pop(scope)
                self._busy = True
            try:
                report = reflect(
                    messages,
                    self._stack,
                    self._model,
                    scope=scope,
                    settings=self._settings,
                    cancel=self._cancel,
                )
            except Exception as error:
                report = ReflectionReport(scope, error=reason_of(error))
            with self._changed:
                self._busy = False
                self._reports.append(report)
                self._changed.notify_all()
