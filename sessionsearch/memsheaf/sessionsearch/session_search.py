"""Session search: what did we say about it, three sessions ago."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from memsheaf.stack import InvalidRecord, Scope

from .copies import Placed, without_copies
from .default_index import DefaultIndex
from .indexes import Candidate, IndexDamaged, ItemQuery, SessionIndex, Sort, find_index
from .items import Conversation, Item
from .log import ConversationLog
from .queries import Moment, Names, asked_words, limit_of, query_of
from .ranking import SessionRanking, ranking_of
from .results import ConversationHit, Explanation, SessionHit, SessionResult

__all__ = ["SessionSearch", "open_sessions"]

LOG_NAME = "sessions.db"
Answer = TypeVar("Answer")


class SessionSearch:
    """Finds what was said in the conversations of a log.

    The index follows the log: each call first takes in what any process has appended, deleted or
    erased since. Safe for threads.

    Args:
        log: The conversations; it is not closed with the search.
        index: The name of an index adapter, or one; None for the default.
        preset: The ranking of the default index: `default`, `raxol`, or settings.

    >>> from tempfile import TemporaryDirectory
    >>> from memsheaf.sessionsearch import NewItem
    >>> mira = Scope(user_id="mira")
    >>> with TemporaryDirectory() as folder, open_sessions(folder) as sessions:
    ...     _ = sessions.log.append("c", NewItem("message", "We hid the cello in the hall"), mira)
    ...     sessions.search("where is the cello?", scope=mira)[0].snippet
    'We hid the «cello» in the hall'
    """

    def __init__(
        self,
        log: ConversationLog,
        *,
        index: SessionIndex | str | None = None,
        preset: str | SessionRanking | None = None,
    ) -> None:
        self.log = log
        self._owns_log = False
        self._lock = threading.RLock()
        ranking = ranking_of(preset)
        if index is None:
            self._index: SessionIndex = DefaultIndex(log, ranking)
        elif isinstance(index, str):
            self._index = find_index(index)(log, ranking)
        else:
            self._index = index

    @property
    def rebuilt(self) -> str | None:
        """Why the index began anew, where what was kept could not be used."""
        return self._index.rebuilt

    def catch_up(self) -> int:
        """Take in what the log has and the index has not; return how many items became findable."""
        added = 0
        with self._lock:
            if self.log.sequence() == self._index.sequence:
                return 0
            while True:
                changes = self.log.changes(self._index.sequence)
                try:
                    added += self._index.apply(changes)
                except IndexDamaged as error:
                    if not self._index.sequence:
                        raise  # it was empty: beginning anew would not help
                    self._index.reset(str(error))
                    continue
                if not changes.more:
                    return added

    def index(self, items: Iterable[Item]) -> int:
        """Make items of the log findable now; again: nothing.

        Returns:
            How many items became findable.

        Raises:
            InvalidRecord: Something is not an item of a log.
        """
        for item in items:
            if not isinstance(item, Item):
                raise InvalidRecord(f"index takes items, not {type(item).__name__}")
        return self.catch_up()

    def attach(self, conversation: str, scope: Scope) -> int:
        """Make a conversation findable now, and all that follows in it.

        Returns:
            How many items it has.

        Raises:
            NotFound: The scope sees no such conversation.
        """
        found = self.log.conversation(conversation, scope)
        self.catch_up()
        return found.item_count

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        scope: Scope,
        conversation: Names | None = None,
        roles: Names | None = None,
        types: Names | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        project: str | None = None,
        sort: Sort = "relevance",
    ) -> SessionResult[SessionHit]:
        """The items that match a text best.

        Args:
            text: Any string; its words are alternatives.
            limit: At most this many, up to 1,000.
            scope: Whose conversations.
            conversation: Only this one, or these, by id.
            roles: Only these roles.
            types: Only these types.
            since: Only items not older than this.
            until: Only items not younger than this.
            project: Only conversations of this project, or of folders below it.
            sort: By relevance; or by time, among the items that hold at least half as much of the
                query as the best does.

        Raises:
            InvalidQuery: A limit, time, order or name is wrong.
            ScopeError: The scope has no field set.
        """
        number = limit_of(limit)
        query = query_of(
            self.log, text, scope, conversation, roles, types, since, until, project, sort
        )
        places = self._ranked(query, number)
        return SessionResult(self._hits(places, query), lambda: self._explained(query))

    def discover(
        self,
        text: str,
        limit: int = 5,
        *,
        scope: Scope,
        hits: int = 3,
        lines: int = 1,
        conversation: Names | None = None,
        roles: Names | None = None,
        types: Names | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        project: str | None = None,
    ) -> SessionResult[ConversationHit]:
        """The conversations that match a text best, one row each.

        Args:
            text: Any string; its words are alternatives.
            limit: At most this many conversations.
            scope: Whose conversations.
            hits: How many of its best items a row shows.
            lines: How many of its first and last messages a row shows.
            conversation: Only this one, or these, by id.
            roles: Only items of these roles.
            types: Only items of these types.
            since: Only items not older than this.
            until: Only items not younger than this.
            project: Only conversations of this project, or of folders below it.
        """
        number, per_row, ends = limit_of(limit), limit_of(hits), limit_of(lines)
        query = query_of(
            self.log, text, scope, conversation, roles, types, since, until, project, "relevance"
        )
        asked = max(50, 10 * number)
        while True:
            places = self._ranked(query, asked)
            rows: dict[int, list[Placed]] = {}
            for place in places:
                rows.setdefault(place[0].conversation, []).append(place)
            if len(rows) >= number or len(places) < asked:
                break
            asked *= 4
        found = []
        for best in list(rows.values())[:number]:
            shown = self._hits(best[:per_row], query)
            if shown:
                about = shown[0].conversation
                first = self._lines(about.id, scope, ends, "asc")
                last = self._lines(about.id, scope, ends, "desc")
                found.append(ConversationHit(about, best[0][0].score, tuple(shown), first, last))
        return SessionResult(found, lambda: self._explained(query))

    def scroll(
        self, item_id: str, *, scope: Scope, before: int = 5, after: int = 5
    ) -> tuple[Item, ...]:
        """The window around an item, the item included.

        Raises:
            NotFound: The scope sees no such item.
        """
        item = self.log.item(item_id, scope)
        earlier = self.log.items(
            item.conversation, scope, before=item.seq, limit=limit_of(before), order="desc"
        )
        later = self.log.items(item.conversation, scope, after=item.seq, limit=limit_of(after))
        return (*reversed(earlier), item, *later)

    def read(
        self,
        conversation: str,
        *,
        scope: Scope,
        after: int | None = None,
        limit: int | None = None,
        types: Names | None = None,
    ) -> tuple[Item, ...]:
        """The items of a conversation, in order.

        Raises:
            NotFound: The scope sees no such conversation.
        """
        self.log.conversation(conversation, scope)
        return tuple(self.log.items(conversation, scope, after=after, limit=limit, types=types))

    def browse(
        self,
        limit: int = 10,
        *,
        scope: Scope,
        since: Moment | None = None,
        until: Moment | None = None,
        project: str | None = None,
    ) -> tuple[Conversation, ...]:
        """The conversations of a scope, that with the latest item first."""
        number = limit_of(limit)
        found = self.log.conversations(
            scope, since=since, until=until, limit=None if project is not None else number
        )
        if project is not None:
            below = f"{project.rstrip('/')}/"
            found = [
                each
                for each in found
                if isinstance(name := each.metadata.get("project"), str)
                and (name == project or name.startswith(below))
            ]
        return tuple(found[:number])

    def save(self) -> None:
        """Save the index now; `close` does so where reading the log again would take a while."""
        with self._lock:
            self._index.save()

    def close(self) -> None:
        """Save the index and end; again: nothing."""
        with self._lock:
            self._index.close()
        if self._owns_log:
            self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ranked(self, query: ItemQuery, limit: int) -> list[Placed]:
        """The best candidates, each with those of the same text in other conversations."""
        with self._lock:
            self.catch_up()
            asked = limit + max(3, limit // 4)
            while True:
                found = self._asked(query, asked) if limit else []
                places = without_copies(found)
                if len(places) >= limit or len(found) < asked:
                    return places[:limit]
                asked *= 4

    def _asked(self, query: ItemQuery, limit: int) -> Sequence[Candidate]:
        return self._answered(lambda: self._index.search(query, limit))

    def _answered(self, ask: Callable[[], Answer]) -> Answer:
        """What the index answers; one that is damaged is rebuilt first."""
        try:
            return ask()
        except IndexDamaged as error:
            self._index.reset(str(error))
            self.catch_up()
            return ask()

    def _hits(self, places: Sequence[Placed], query: ItemQuery) -> list[SessionHit]:
        """The items behind candidates, as the log shows them to the scope now."""
        wanted = [each.position for best, same in places for each in (best, *same)]
        read = self.log.at(wanted, query.scope)
        hits = []
        for best, same in places:
            found = read.get(best.position)
            if found is not None:
                copies = [read[each.position][1].id for each in same if each.position in read]
                conversation, item = found
                hits.append(
                    SessionHit(
                        item, conversation, best.score, best.relevance, query.text, tuple(copies)
                    )
                )
        return hits

    def _lines(self, conversation: str, scope: Scope, count: int, order: str) -> tuple[Item, ...]:
        found = self.log.items(
            conversation, scope, limit=count, types="message",
            order="asc" if order == "asc" else "desc",
        )  # fmt: skip
        return tuple(found if order == "asc" else reversed(found))

    def _explained(self, query: ItemQuery) -> Explanation:
        with self._lock:
            counts = self._answered(lambda: self._index.counts(query))
        return Explanation(
            self._index.name, asked_words(query.text), counts.conversations, counts.items,
            counts.matched, counts.removed,
        )  # fmt: skip


def open_sessions(
    folder: str | Path,
    *,
    index: str | None = None,
    preset: str | SessionRanking | None = None,
) -> SessionSearch:
    """Open the log of a folder, made for its owner only, with its index.

    Args:
        folder: Where log and index lie.
        index: The name of an index adapter; None for the default.
        preset: The ranking of the default index.

    Returns:
        A search whose `log` is closed with it.
    """
    log = ConversationLog(Path(folder).expanduser() / LOG_NAME)
    try:
        opened = SessionSearch(log, index=index, preset=preset)
    except BaseException:
        log.close()
        raise
    opened._owns_log = True
    return opened
