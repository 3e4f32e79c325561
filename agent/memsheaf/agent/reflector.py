"""Reflection in the background: the turn does not wait, and nothing fails in silence."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from memsheaf.models import CancelToken, ChatModel
from memsheaf.stack import MemoryStack, Scope
from memsheaf.stack.fanout import reason_of
from memsheaf.stack.forking import watch_forks

from .reflection import ReflectionReport, ReflectionSettings, reflect, undo
from .reflection_operations import Applied

__all__ = ["Reflector"]

_MOST_WAITING = 1_000
_KEPT_REPORTS = 100
_KEPT_MESSAGES = 200

_Conversation = tuple[Scope, str]


class Reflector:
    """Reflects on runs, one after the other, on a thread of its own; many agents may share one.

    Every conversation of a scope in which there was a run since the last reflection is reflected
    on by itself; runs that come while it waits join it. It holds all this in memory: what waits
    when the process ends is not reflected on.

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
        self._told: dict[_Conversation, list[Any]] = {}  # since the last reflection
        self._waiting: dict[_Conversation, list[Any]] = {}
        self._busy = False
        self._closed = False
        self._cancel = CancelToken()
        self._reports: deque[ReflectionReport] = deque(maxlen=_KEPT_REPORTS)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        watch_forks(self)

    @property
    def reports(self) -> tuple[ReflectionReport, ...]:
        """What the last reflections did, oldest first."""
        with self._changed:
            return tuple(self._reports)

    def after_run(
        self,
        messages: Sequence[Any],
        scope: Scope,
        *,
        conversation: str = "",
        tool_calls: int = 0,
        failed: bool = False,
    ) -> bool:
        """Count a run, and reflect on it in the background where it is due.

        Args:
            messages: The conversation, without blocks of memory.
            scope: Whose memory.
            conversation: Its id.
            tool_calls: How many tools the run called.
            failed: Whether it, or a tool of it, ended in an error.

        Returns:
            Whether a reflection will follow.

        Raises:
            ScopeError: The scope cannot be written.
        """
        scope.require_writable()
        key = (scope, conversation)
        with self._changed:
            if self._closed:
                return False
            run = self._runs[scope] = self._runs.pop(scope, 0) + 1
            _bound(self._runs)
            if self._settings.every is not None:
                _join(self._told, key, messages)
                _bound(self._told)
            if not self._settings.due(run, tool_calls, failed=failed):
                return False
            every = self._settings.every
            counted = every is not None and run % every == 0
            due = [k for k in self._told if k[0] == scope] if counted else [key]
            for one in due:
                told = self._told.pop(one, messages)
                if one not in self._waiting and len(self._waiting) >= _MOST_WAITING:
                    error = "too many conversations wait for reflection"
                    self._reports.append(ReflectionReport(scope, error=error))
                    return False
                _join(self._waiting, one, told)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def before_fork(self) -> None:
        """Hold still while the process is copied."""
        self._changed.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Go on; what waits is the parent's."""
        if child:
            self._changed = threading.Condition()
            self._thread, self._busy = None, False
            self._waiting.clear()
        else:
            self._changed.release()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or bool(self._waiting))
                if self._closed:
                    return
                key = next(iter(self._waiting))
                messages = self._waiting.pop(key)
                self._busy = True
            try:
                report = reflect(
                    messages,
                    self._stack,
                    self._model,
                    scope=key[0],
                    settings=self._settings,
                    cancel=self._cancel,
                )
            except Exception as error:
                report = ReflectionReport(key[0], error=reason_of(error))
            with self._changed:
                self._busy = False
                self._reports.append(report)
                self._changed.notify_all()


def _join(
    held: dict[_Conversation, list[Any]], key: _Conversation, messages: Sequence[Any]
) -> None:
    """Add a run to what is held of its conversation; mostly it holds that already."""
    before = held.get(key, [])
    if before and before[-1] in messages:
        before = []
    held[key] = [*before, *messages][-_KEPT_MESSAGES:]


def _bound(held: dict[Any, Any]) -> None:
    """Drop the oldest of too many."""
    while len(held) > _MOST_WAITING:
        del held[next(iter(held))]
