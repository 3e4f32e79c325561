"""What a conversation has from earlier imports, where what comes now depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memsheaf.sessionsearch.items import Item, NewItem
from memsheaf.sessionsearch.log import ConversationLog
from memsheaf.stack import Scope

__all__ = ["Earlier"]

_CALLS = 256  # that wait for their result


class Earlier:
    """The end of a conversation as it was before a file was read on.

    A file that grows is read in parts. A result stands without the name of its tool, which only
    the call tells, and an answer may be written once more as it grows: both may lie on either
    side of a cut.

    Args:
        log: The conversations.
        conversation: Its id.
        scope: Whose it is.
    """

    def __init__(self, log: ConversationLog, conversation: str, scope: Scope) -> None:
        self._log, self._conversation, self._scope = log, conversation, scope
        self._names: dict[str, str] | None = None
        self._first = True

    def named(self, item: NewItem) -> NewItem:
        """A result with the name of its tool, where the log has the call."""
        call = item.data.get("call_id")
        if item.type != "tool_result" or not isinstance(call, str) or item.data.get("name"):
            return item
        if self._names is None:
            self._names = {
                each.data["call_id"]: each.data["name"]
                for each in reversed(self._latest(_CALLS, "tool_call"))
                if {"call_id", "name"} <= each.data.keys()
            }
        name = self._names.get(call)
        return item if name is None else replace(item, data={"name": name, **item.data})

    def grown(self, item: NewItem) -> Item | None:
        """The item that this one replaces: the log's last one, the beginning of the same answer.

        Only the first item that comes can tell; anything between ends the answer.
        """
        first, self._first = self._first, False
        if not first or item.type != "message" or item.response_id is None:
            return None
        for last in self._latest(1):
            if (
                last.type == "message"
                and last.response_id == item.response_id
                and item.text.startswith(last.text)
            ):
                return last
        return None

    def replaced(self, old: Item, added: Iterable[Item]) -> None:
        """Hide an item where what replaces it is among those that were added."""
        if any(new.type == "message" and new.text.startswith(old.text) for new in added):
            self._log.delete(self._conversation, self._scope, old.seq)

    def _latest(self, limit: int, types: str | None = None) -> list[Item]:
        return self._log.items(
            self._conversation, self._scope, limit=limit, order="desc", types=types
        )
