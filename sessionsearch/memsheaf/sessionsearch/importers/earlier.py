"""What came before in a conversation, in this import or an earlier one, where it matters."""

from __future__ import annotations

from dataclasses import replace

from memsheaf.sessionsearch.items import Item, NewItem
from memsheaf.sessionsearch.log import ConversationLog
from memsheaf.stack import Scope

__all__ = ["Earlier"]

_CALLS = 256  # that may wait for their result


class Earlier:
    """The end of a conversation: as it was before a file was read, and as the file goes on.

    A file that grows is read in parts. A result stands without the name of its tool, which only
    the call tells, and an answer may be written once more as it grows: both may lie on either
    side of a cut.

    Args:
        log: The conversations.
        conversation: Its id.
        scope: Whose it is.
        exists: Whether the log has it.
    """

    def __init__(
        self, log: ConversationLog, conversation: str, scope: Scope, *, exists: bool
    ) -> None:
        self._log, self._conversation, self._scope = log, conversation, scope
        self._names: dict[str, str] = {}  # of tools, by the id of the call
        self._looked = not exists  # for calls

    def named(self, item: NewItem) -> NewItem:
        """A result with the name of its tool, where its call came before it."""
        call, name = item.data.get("call_id"), item.data.get("name")
        if not isinstance(call, str):
            return item
        if item.type == "tool_call" and isinstance(name, str):
            self._names.pop(call, None)
            self._names[call] = name
            if len(self._names) > _CALLS:
                del self._names[next(iter(self._names))]
        elif item.type == "tool_result" and not name and (found := self._name(call)):
            return replace(item, data={"name": found, **item.data})
        return item

    def _name(self, call: str) -> str | None:
        if call not in self._names and not self._looked:
            self._looked = True
            known = {}
            for each in reversed(self._latest(_CALLS, "tool_call")):
                made, name = each.data.get("call_id"), each.data.get("name")
                if isinstance(made, str) and isinstance(name, str):
                    known[made] = name
            self._names = {**known, **self._names}
        return self._names.get(call)

    def outgrown(self, first: Item, before: NewItem | None) -> None:
        """Hide the last item of an earlier import where the first of this one is all of it.

        Args:
            first: The first one that was added.
            before: What the file has before it; None where reading began with it. Where the file
                has the shorter text too, both were said.
        """
        for last in self._latest(1, before=first.seq):
            alike = _words(last) == (first.type, first.role, first.text[: len(last.text)])
            if last.response_id is None:  # without any id its place has to tell which one it is
                same = before is not None and "id" not in last.metadata
            else:
                same = last.response_id == first.response_id
            both = before is not None and _words(before) == _words(last)
            if alike and last.text and same and not both:
                self._log.delete(self._conversation, self._scope, last.seq)

    def _latest(
        self, limit: int, types: str | None = None, before: int | None = None
    ) -> list[Item]:
        return self._log.items(
            self._conversation, self._scope, before=before, limit=limit, order="desc", types=types
        )


def _words(item: NewItem | Item) -> tuple[str, str | None, str]:
    return item.type, item.role, item.text
