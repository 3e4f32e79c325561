"""Forks: a store lets go of its connections before one, and rebuilds what another thread held."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Forkable", "watch_forks"]


class Forkable(Protocol):
    """What must be in order when the process is copied."""

    def before_fork(self) -> None:
        """Take the locks, close what may not cross a fork."""

    def after_fork(self, *, child: bool) -> None:
        """Release the locks."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_stopped: list[Forkable] = []


def watch_forks(item: Forkable) -> None:
    """Tell an object of every fork, as long as it lives."""
    _watched.add(item)


def _before() -> None:
    _stopped[:] = sorted(_watched, key=id)
    for item in _stopped:
        item.before_fork()


def _after(child: bool) -> None:
    for item in reversed(_stopped):
        item.after_fork(child=child)
    _stopped.clear()


os.register_at_fork(
    before=_before,
    after_in_parent=lambda: _after(False),
    after_in_child=lambda: _after(True),
)
