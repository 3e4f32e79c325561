"""What Claude Code tells apart from its subject: words in the queue, and summaries of a leaf."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

__all__ = ["Queue", "Summaries", "mark_of"]

_KEPT = 256
_RECENT = 16  # messages that the next import of a file still knows
_KEPT_TEXT = 8_000_000  # characters of summaries that wait


class Queue:
    """Words that were typed while the model worked. A later line may tell them once more.

    Args:
        state: Where the words that wait are kept, as hashes, from one import to the next.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def put(self, text: str) -> None:
        """Words go into the queue."""
        self._state["queued"] = (*self._waiting(), mark_of(text))[-_KEPT:]

    def holds(self, text: str) -> bool:
        """Whether the words were told when they went into the queue."""
        return mark_of(text) in self._waiting()

    def take(self, text: str) -> bool:
        """Whether words that reach the model were told before.

        Words that were not queued mean that nothing waits any longer.
        """
        waiting = list(self._waiting())
        if not waiting:
            return False
        mark = mark_of(text)
        if found := mark in waiting:
            waiting.remove(mark)
        self._state["queued"] = tuple(waiting) if found else ()
        return found

    def _waiting(self) -> tuple[str, ...]:
        return tuple(self._state.get("queued", ()))


class Summaries:
    """Summaries name the last message of what they sum up, which stands before or behind them.

    Args:
        state: Where ids of the latest messages are kept from one import to the next.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._waiting: dict[str, tuple[int, str]] = {}
        self._size = 0
        self._recent: deque[tuple[str, str]] = deque(
            ((uuid, conversation) for uuid, conversation in state.get("recent", ())), _KEPT
        )
        self.left = 0
        """How many named a leaf that did not come: it is in another file."""

    def put(self, leaf: str, line: int, text: str) -> str | None:
        """A summary comes; the conversation of its leaf, or None where that is not known yet."""
        for uuid, conversation in self._recent:
            if uuid == leaf:
                return conversation
        self._take(leaf)
        self._waiting[leaf] = (line, text)
        self._size += len(text)
        self.left += 1
        while len(self._waiting) > _KEPT or self._size > _KEPT_TEXT:
            self._take(next(iter(self._waiting)))
        return None

    def message(self, uuid: str, conversation: str) -> tuple[int, str] | None:
        """A message comes; the line and the text of the summary that waited for it."""
        self._recent.append((uuid, conversation))
        self._state["recent"] = (*self._state.get("recent", ()), (uuid, conversation))[-_RECENT:]
        found = self._take(uuid) if self._waiting else None
        self.left -= found is not None
        return found

    def _take(self, leaf: str) -> tuple[int, str] | None:
        found = self._waiting.pop(leaf, None)
        if found is not None:
            self._size -= len(found[1])
        return found


def mark_of(text: str) -> str:
    """A short hash of a text."""
    data = text.strip().encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()
