"""Turns in a conversation log: appended once, and a log that fails is an outcome."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from memsheaf.sessionsearch import ConversationLog, Item, NewItem
from memsheaf.stack import MemsheafError, NotFound, Outcome, Scope
from memsheaf.stack.forking import watch_forks

from .context import failed
from .continuing import enough, is_clear, new_items

__all__ = ["Recorded", "TurnLog"]

_TYPES = ("message", "tool_call", "tool_result")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was kept of a turn.

    Attributes:
        items: The items that are new in the log.
        reflecting: Whether a reflection follows.
        learning: Whether the user model was handed something.
        outcomes: What failed.
    """

    items: tuple[Item, ...] = ()
    reflecting: bool = False
    learning: bool = False
    outcomes: tuple[Outcome, ...] = ()


class TurnLog:
    """Where an agent's turns are kept; without a log, nowhere.

    Args:
        log: The log.
        scope: Whose conversations.
    """

    def __init__(self, log: ConversationLog | None, scope: Scope) -> None:
        self._log, self._scope = log, scope
        self._lock = threading.Lock()
        watch_forks(self)

    def append(
        self, items: Sequence[NewItem], conversation: str, *, title: str | None = None
    ) -> Recorded:
        """Append items as they are."""
        if self._log is None or not items:
            return Recorded()
        try:
            return Recorded(self._log.append(conversation, items, self._scope, title=title))
        except MemsheafError as error:
            return Recorded(outcomes=(failed("sessions", error),))

    def append_new(
        self, items: Sequence[NewItem], conversation: str, *, title: str | None = None
    ) -> Recorded:
        """Append those of a conversation's items that the log does not have yet."""
        if self._log is None:
            return Recorded()
        with self._lock:
            try:
                fresh = self._new(self._log, items, conversation)
            except MemsheafError as error:
                return Recorded(outcomes=(failed("sessions", error),))
            return self.append(fresh, conversation, title=title)

    def _new(
        self, log: ConversationLog, items: Sequence[NewItem], conversation: str
    ) -> list[NewItem]:
        said: list[Item] = []
        complete = True
        for limit in enough(items):
            said = log.items(conversation, self._scope, limit=limit, order="desc", types="message")
            said.reverse()
            complete = len(said) < limit
            if complete or is_clear(items, said):
                break
        asked = max((item.seq for item in said if item.role == "user"), default=-1)
        answers = log.items(conversation, self._scope, after=asked, limit=None, types=_TYPES)
        held = [item for item in said if item.seq <= asked] + answers
        try:
            last = log.conversation(conversation, self._scope).last_seq
        except NotFound:
            last = None
        return new_items(items, held, 0 if last is None else last + 1, complete=complete)

    def before_fork(self) -> None:
        """Nothing is to be done before the process is copied."""

    def after_fork(self, *, child: bool) -> None:
        """Let the child record: a thread that held the lock is the parent's."""
        if child:
            self._lock = threading.Lock()
