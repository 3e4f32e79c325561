"""The conversation log: append-only, durable, read and followed in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from memsheaf.stack import InvalidRecord, NotFound, ProviderTimeout, Scope

from .changes import Changes, read_changes
from .index_files import IndexFiles
from .items import Conversation, Item, NewItem, check_name, to_json
from .log_append import append, carried, encoded
from .log_file import LogFile
from .log_removal import finish_erasures, hide, overwrite
from .log_rows import at_positions, find, held_from, micros, read, visible
from .log_schema import CHANGES, CONVERSATIONS, ITEMS, KEYS, MARK
from .log_values import END, by_order, number_of, time_of, types_of
from .subscriptions import Subscription

__all__ = ["ConversationLog", "ItemOrder"]

ItemOrder = Literal["asc", "desc"]


class ConversationLog:
    """An append-only log of conversations in one SQLite file.

    Every call takes a scope. A conversation of another scope is not found, and nothing tells
    it from one that does not exist. Threads and processes may share the file.

    Args:
        path: The file; made with mode 0600, missing folders with 0700.
        timeout: Seconds to wait for another writer.

    Raises:
        ProviderError: The file cannot be opened, or is not a log.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, ConversationLog(f"{folder}/log.db") as log:
    ...     mira = Scope(user_id="mira")
    ...     log.append("c", NewItem("message", "Where is the cello?", role="user"), mira)[0].id
    'c:0'
    """

    def __init__(self, path: str | Path, *, timeout: float = 10.0) -> None:
        self._timeout = timeout
        self._file = LogFile(Path(path).expanduser(), timeout)
        try:
            finish_erasures(self._file, 0)  # a process may have ended between an erasure and this
        except BaseException:
            self._file.close()
            raise

    def append(
        self,
        conversation: str,
        items: NewItem | Iterable[NewItem],
        scope: Scope,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[Item, ...]:
        """Append items, all or none; the first append makes the conversation.

        Args:
            conversation: Its id.
            items: One or many; one whose key the conversation has, or had, is left out.
            scope: Whose conversation it is: the one that it was made with.
            title: Replaces the title where it is given.
            metadata: A JSON object that replaces the conversation's own where it is given.

        Returns:
            The items that were added, with their numbers.

        Raises:
            InvalidRecord: A field is outside its rules.
            ScopeError: The scope cannot be written.
            IdUnavailable: The id cannot be used here: another owner's, or a deleted one.
        """
        scope.require_writable()
        check_name("a conversation's id", conversation)
        if title is not None and not isinstance(title, str):
            raise InvalidRecord(f"title must be text, not {type(title).__name__}")
        about = None if metadata is None else to_json("metadata", metadata)
        recorded = micros(datetime.now(UTC))
        if not isinstance(items, NewItem | Iterable):
            raise InvalidRecord(f"append takes NewItem, not {type(items).__name__}")
        batch = [items] if isinstance(items, NewItem) else items
        rows = [encoded(item, recorded) for item in batch]
        with self._file.writing() as connection:
            return append(connection, conversation, scope, rows, title, about, recorded)

    def items(
        self,
        conversation: str,
        scope: Scope,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = 1000,
        order: ItemOrder = "asc",
        types: str | Iterable[str] | None = None,
    ) -> list[Item]:
        """The items of a conversation; none where there is no such conversation in the scope.

        Args:
            conversation: Its id.
            scope: Whose conversations may be seen.
            after: Only numbers above this one.
            before: Only numbers below this one.
            limit: At most this many; None for all.
            order: `asc`, or `desc`, which begins with the newest.
            types: Only these types.

        Raises:
            InvalidQuery: A limit, number, order or type is wrong.
            ScopeError: The scope has no field set.
        """
        scope.require_readable()
        values = {
            "after": number_of("after", after, -1, lowest=-END),
            "before": number_of("before", before, END, lowest=-END),
            "limit": number_of("limit", limit, -1),
            "types": types_of(types),
        }
        statement = by_order(ITEMS, order)
        with self._file.reading() as connection:
            return read(connection, visible(connection, conversation, scope), statement, values)

    def keys(
        self, conversation: str, scope: Scope, *, after: int = -1, before: int | None = None
    ) -> dict[int, str]:
        """The keys of a conversation's items by number, for a log that takes the items over.

        Each is what `NewItem.key` takes: the other log then knows the item by the key that it
        has here. Items without a key are left out.

        Args:
            conversation: Its id.
            scope: Whose conversations may be seen.
            after: Only numbers above this one.
            before: Only numbers below this one.
        """
        scope.require_readable()
        values: dict[str, Any] = {
            "after": number_of("after", after, -1, lowest=-END),
            "before": number_of("before", before, END, lowest=-END),
        }
        with self._file.reading() as connection:
            held = visible(connection, conversation, scope)
            if held is None:
                return {}
            rows = connection.execute(KEYS, {"conversation": held.row, **values})
            return {seq: carried(key) for seq, key in rows}

    def item(self, item_id: str, scope: Scope) -> Item:
        """One item by its id, `<conversation>:<seq>`.

        Raises:
            NotFound: The scope sees no such item.
        """
        conversation, _, number = item_id.rpartition(":")
        if number.isascii() and number.isdigit() and len(number) < 19:
            place = int(number)
            for found in self.items(conversation, scope, after=place - 1, before=place + 1):
                return found
        scope.require_readable()
        raise NotFound("no such item in this scope")

    def conversation(self, conversation: str, scope: Scope) -> Conversation:
        """One conversation.

        Raises:
            NotFound: The scope sees no such conversation.
        """
        scope.require_readable()
        with self._file.reading() as connection:
            held = visible(connection, conversation, scope)
        if held is None:
            raise _not_found()
        return held.conversation

    def owner(self, conversation: str, scope: Scope) -> Scope:
        """Whose a conversation is, also of one that is deleted.

        Raises:
            NotFound: The scope sees no such conversation, or it is erased.
        """
        scope.require_readable()
        with self._file.reading() as connection:
            held = find(connection, conversation)
        if held is None or not scope.matches(held.conversation.scope):
            raise _not_found()
        return held.conversation.scope

    def conversations(
        self,
        scope: Scope,
        *,
        since: datetime | str | float | None = None,
        until: datetime | str | float | None = None,
        limit: int | None = 1000,
        order: ItemOrder = "desc",
    ) -> list[Conversation]:
        """The conversations of a scope, by the time of their latest item.

        Args:
            scope: Whose conversations.
            since: Only those whose latest item is not older than this.
            until: Only those whose latest item is not younger than this.
            limit: At most this many; None for all.
            order: `desc` begins with the newest.

        Raises:
            InvalidQuery: A time, limit or order is wrong.
            ScopeError: The scope has no field set.
        """
        scope.require_readable()
        values: dict[str, Any] = {
            "user_id": scope.user_id,
            "agent_id": scope.agent_id,
            "session_id": scope.session_id,
            "namespace": scope.namespace,
            "since": time_of("since", since),
            "until": time_of("until", until),
            "limit": number_of("limit", limit, -1),
        }
        statement = by_order(CONVERSATIONS, order)
        with self._file.reading() as connection:
            return [held_from(row).conversation for row in connection.execute(statement, values)]

    def subscribe(self, conversation: str, scope: Scope, after: int | None = None) -> Subscription:
        """Follow a conversation, which may not exist yet.

        Args:
            conversation: Its id.
            scope: Whose conversations may be seen.
            after: Only numbers above this one.

        Returns:
            The items that are there, and then each later one exactly once, whichever process
            appends it.
        """
        scope.require_readable()
        start = number_of("after", after, -1)

        def fetch(cursor: int, limit: int | None) -> tuple[list[Item], int]:
            values = {
                "after": cursor,
                "before": END,
                "limit": number_of("limit", limit, -1),
                "types": None,
            }
            with self._file.reading() as connection:
                held = visible(connection, conversation, scope)
                found = read(connection, held, ITEMS["asc"], values)
            return found, found[-1].seq if found else cursor

        snapshot, cursor = fetch(start, None)
        return Subscription(self._file, fetch, tuple(snapshot), cursor)

    def delete(self, conversation: str, scope: Scope, seq: int | None = None) -> bool:
        """Hide a conversation, or one item of it, until it is restored.

        Returns:
            False where the scope sees nothing of the kind.
        """
        place = None if seq is None else number_of("seq", seq, -1)
        return self._removed(conversation, scope, partial(hide, seq=place, hidden=True))

    def restore(self, conversation: str, scope: Scope, seq: int | None = None) -> bool:
        """Show a deleted conversation or item again; False where there is none."""
        place = None if seq is None else number_of("seq", seq, -1)
        return self._removed(conversation, scope, partial(hide, seq=place, hidden=False))

    def erase(self, conversation: str, scope: Scope, seq: int | None = None) -> bool:
        """Remove a conversation's text, or one item's, deleted or not, from every file.

        The ids, times and hashed keys stay, so that a second import brings nothing back. A saved
        index, beside the log or in it, is removed, and made again by the next search.

        Returns:
            False where the scope sees nothing of the kind.

        Raises:
            ProviderTimeout: The text is gone from the log, and a reader still holds the
                write-ahead log; the next erasure or opening of the log empties it.
        """
        place = None if seq is None else number_of("seq", seq, -1)
        erased = self._removed(conversation, scope, partial(overwrite, seq=place))
        if erased:
            IndexFiles(self.path).drop()
        if not finish_erasures(self._file, self._timeout):
            raise ProviderTimeout("erased, but a reader holds the old pages; erase again later")
        return erased

    def numbers(self, conversations: Iterable[str], scope: Scope) -> frozenset[int]:
        """The numbers of the conversations among these that the scope sees."""
        scope.require_readable()
        with self._file.reading() as connection:
            found = [visible(connection, each, scope) for each in conversations]
        return frozenset(held.row for held in found if held is not None)

    def at(self, positions: Iterable[int], scope: Scope) -> dict[int, tuple[Conversation, Item]]:
        """Those of the items at these positions, see `changes`, that the scope sees."""
        scope.require_readable()
        with self._file.reading() as connection:
            return at_positions(connection, positions, scope)

    @property
    def file(self) -> LogFile:
        """The database, for an index that lives in it; canonical tables are never written there."""
        return self._file

    @property
    def path(self) -> Path:
        """The file, links resolved."""
        return self._file.path

    def sequence(self) -> int:
        """The number of the latest change; an index that knows it is current."""
        with self._file.reading() as connection:
            return int(connection.execute(CHANGES).fetchone()[0])

    def mark(self, sequence: int) -> str | None:
        """What tells the change of this number from one of another log; None where none is."""
        with self._file.reading() as connection:
            found = connection.execute(MARK, (sequence,)).fetchone()
        return None if found is None else str(found[0])

    def changes(self, after: int, limit: int = 5000) -> Changes:
        """What an index has to look at again, in every scope; it must guard the scopes itself.

        Args:
            after: The number of the latest change that it knows.
            limit: How many items about, at most.
        """
        with self._file.reading() as connection:
            return read_changes(connection, after, limit)

    def close(self) -> None:
        """Close the file and end the subscriptions; again: nothing."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _removed(self, conversation: str, scope: Scope, remove: Callable[..., bool]) -> bool:
        """Do something to a conversation that is not erased, where the scope sees it."""
        scope.require_readable()
        with self._file.writing() as connection:
            held = find(connection, conversation)
            if held is None or not scope.matches(held.conversation.scope):
                return False
            return remove(connection, held)


def _not_found() -> NotFound:
    return NotFound("no such conversation in this scope")
