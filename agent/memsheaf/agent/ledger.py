"""The ledger: which blocks were issued, and what each turn of a conversation was sent."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memsheaf.stack import SCOPE_FIELDS, ForgetReport, Scope, Status, UsageError, hookimpl
from memsheaf.stack.text import clean

from .ledger_file import LedgerFile

__all__ = ["BLOCKS", "BlockLedger", "Sent"]

BLOCKS = "blocks.db"
"""The ledger beside a conversation log."""

_OF = " owner = :owner AND (:conversation IS NULL OR conversation = :conversation)"
_ERASE_HELD = "DELETE FROM held WHERE number IN (SELECT number FROM sent WHERE" + _OF + ")"
_ERASE_SENT = "DELETE FROM sent WHERE" + _OF
_SENT = "SELECT turn, block_id, text, mark FROM sent WHERE owner = ? AND conversation = ?"
_EMPTY = "UPDATE sent SET text = '', block_id = '', mark = '' WHERE"
_EMPTY_HOLDERS = _EMPTY + " text <> '' AND number IN (SELECT number FROM held WHERE record_id = ?)"
_OUTDATED = " owner = ? AND mark NOT IN ('', ?)"
_EMPTY_OUTDATED = _EMPTY + _OUTDATED
_FREE_OUTDATED = "DELETE FROM held WHERE number IN (SELECT number FROM sent WHERE" + _OUTDATED + ")"
_DROPPED = (
    "SELECT 1 FROM dropped WHERE number > ? AND record_id IN (SELECT value FROM json_each(?))"
)
_NUMBERS = (
    "SELECT (SELECT min(number) FROM sent), (SELECT max(number) FROM sent),"
    " (SELECT min(number) FROM issued), (SELECT max(number) FROM issued)"
)
_KEPT = 0.9  # of a full table, so that old rows go rarely
_CONVERSATIONS = 64  # that were asked last and are kept at hand
_MOST_DROPPED = 10_000  # ids: what is being sent while so many are forgotten


class Sent(NamedTuple):
    """What a turn was sent: a block and its id, both empty where nothing was injected.

    Attributes:
        block_id: The block's id.
        text: The block.
        mark: Under which its contexts were kept, see `BlockLedger.outdate`.
    """

    block_id: str
    text: str
    mark: str = ""


class BlockLedger:
    """Remembers the blocks that were sent, in a file or in memory.

    `inject` asks it, so that a history that the framework keeps clean gets its blocks back byte
    for byte; `Scrubber`, `strip_blocks` and `strip_messages` ask it which ids were issued:
    ``block_id in ledger``. Threads and processes may share a file.

    Given to a stack as one of its ``plugins``, it drops the blocks that hold a memory as soon as
    that memory is forgotten.

    Args:
        path: The file, for its owner only; without one the ledger lives in memory.
        turns: Turns whose blocks are kept; the oldest go first.
        ids: Issued ids that are kept.
        timeout: Seconds to wait for another process that writes.

    Raises:
        UsageError: A bound is below 1.
        ProviderUnavailable: The file cannot be opened.
        StoreCorrupt: It is no ledger, or one of a newer version.

    >>> ledger = BlockLedger()
    >>> mira = Scope(user_id="mira")
    >>> ledger.keep(mira, "monday", "turn-1", "0123456789abcdef", "the block", ["m1"])
    Sent(block_id='0123456789abcdef', text='the block', mark='')
    >>> ledger.sent(mira, "monday")
    {'turn-1': Sent(block_id='0123456789abcdef', text='the block', mark='')}
    >>> "0123456789abcdef" in ledger, "fedcba9876543210" in ledger
    (True, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        turns: int = 20_000,
        ids: int = 200_000,
        timeout: float = 5.0,
    ) -> None:
        if turns < 1 or ids < 1:
            raise UsageError("turns and ids must be 1 or more")
        self._turns, self._ids = turns, ids
        self._file = LedgerFile(None if path is None else Path(path), timeout)
        self._recent: dict[tuple[str, str], dict[str, Sent]] = {}
        self._seen = (0, 0)

    def __contains__(self, block_id: object) -> bool:
        """Whether a block with this id was issued."""
        if not isinstance(block_id, str) or not block_id.isascii():
            return False
        with self._file.using() as connection:
            row = connection.execute("SELECT 1 FROM issued WHERE block_id = ?", (block_id,))
            return row.fetchone() is not None

    def issue(self, block_id: str) -> None:
        """Remember an id without a conversation."""
        _check(block_id, "block_id")
        with self._file.writing() as connection:
            _issue(connection, block_id)
            self._bound(connection)

    def keep(
        self,
        scope: Scope,
        conversation: str,
        turn: str,
        block_id: str = "",
        text: str = "",
        records: Sequence[str] = (),
        *,
        mark: str = "",
        since: int | None = None,
    ) -> Sent:
        """Remember what a turn was sent.

        Args:
            scope: Whose conversation.
            conversation: Its name.
            turn: The key of the turn.
            block_id: The block's id; empty where nothing was injected.
            text: The block; NUL and lone surrogates are replaced.
            records: The ids of the memories in it.
            mark: What its contexts were kept under.
            since: A count of `dropped`, from before the memories were looked up: where one of
                them was dropped after it, the turn stays without a block.

        Returns:
            What counts for the turn: what was kept first, if it was kept before.
        """
        owner = _owner(scope)
        _check(conversation)
        _check(turn, "turn")
        _check(block_id, "block_id")
        _check(mark, "mark")
        for record_id in records:
            _check(record_id, "a record's id")
        if not isinstance(text, str):
            raise UsageError("a block must be text")
        with self._file.lock:
            made = Sent(block_id, clean(text), mark)
            made = self._keep(owner, conversation, turn, made, records, since)
            if (known := self._recent.get((owner, conversation))) is not None:
                known[turn] = made
        return made

    def sent(self, scope: Scope, conversation: str) -> Mapping[str, Sent]:
        """What each turn of a conversation was sent; another scope's conversation is empty."""
        owner = _owner(scope)
        _check(conversation)
        with self._file.using() as connection:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            seen = (self._file.opened, version)
            if seen != self._seen:  # another process, or object, has written
                self._recent.clear()
                self._seen = seen
            known = self._recent.pop((owner, conversation), None)
            if known is None:
                rows = connection.execute(_SENT, (owner, conversation))
                known = {turn: Sent(*sent) for turn, *sent in rows}
            self._recent[owner, conversation] = known  # the latest last
            if len(self._recent) > _CONVERSATIONS:
                del self._recent[next(iter(self._recent))]
            return dict(known)

    def erase(self, scope: Scope, conversation: str | None = None) -> int:
        """Delete the blocks of a scope, or of one conversation in it; the ids stay known.

        Args:
            scope: Whose; an unset field matches anything, as in a query.
            conversation: Its name; every conversation where not given.

        Returns:
            How many turns were deleted.

        Raises:
            ScopeError: The scope has no field; `Scope.EVERYONE` is everybody.
        """
        scope.require_readable()
        if conversation is not None:
            _check(conversation)
        count = 0
        with self._file.writing() as connection:
            owners = connection.execute("SELECT DISTINCT owner FROM sent").fetchall()
            for (owner,) in owners:
                if scope.matches(Scope(*json.loads(owner))):
                    values = {"owner": owner, "conversation": conversation}
                    connection.execute(_ERASE_HELD, values)
                    count += connection.execute(_ERASE_SENT, values).rowcount
            self._recent.clear()
        self._file.overwrite()
        return count

    def outdate(self, scope: Scope, mark: str) -> int:
        """Empty the blocks of a scope whose contexts were kept under another mark than this.

        Returns:
            How many blocks were emptied.
        """
        _check(mark, "mark")
        values = (_owner(scope), mark)
        with self._file.writing() as connection:
            connection.execute(_FREE_OUTDATED, values)
            count = connection.execute(_EMPTY_OUTDATED, values).rowcount
            self._recent.clear()
        self._file.overwrite()
        return count

    def dropped(self) -> int:
        """How many memories were dropped so far."""
        with self._file.using() as connection:
            (number,) = connection.execute("SELECT max(number) FROM dropped").fetchone()
            return number or 0

    def drop(self, record_ids: Sequence[str]) -> int:
        """Empty the blocks that hold one of these memories; their turns stay without a block.

        Returns:
            How many blocks were emptied.
        """
        count = 0
        with self._file.writing() as connection:
            for record_id in filter(_is_plain, record_ids):  # no block holds any other
                connection.execute("INSERT INTO dropped (record_id) VALUES (?)", (record_id,))
                count += connection.execute(_EMPTY_HOLDERS, (record_id,)).rowcount
                connection.execute("DELETE FROM held WHERE record_id = ?", (record_id,))
            connection.execute(
                "DELETE FROM dropped WHERE number <= (SELECT max(number) FROM dropped) - ?",
                (_MOST_DROPPED,),
            )
            self._recent.clear()
        if count:
            self._file.overwrite()
        return count

    @hookimpl
    def after_forget(self, report: ForgetReport) -> None:
        """Drop what a forgotten memory was in, also where a provider may yet delete it."""
        late = any(outcome.status is Status.TIMED_OUT for outcome in report.outcomes)
        self.drop([*report.deleted, report.id] if late else report.deleted)

    def close(self) -> None:
        """Let go of the file; calling it again does nothing."""
        self._file.close()

    def _keep(
        self,
        owner: str,
        conversation: str,
        turn: str,
        made: Sent,
        records: Sequence[str],
        since: int | None,
    ) -> Sent:
        place = (owner, conversation, turn)
        with self._file.writing() as connection:
            if since is not None and records:
                found = connection.execute(_DROPPED, (since, json.dumps(records)))
                if found.fetchone() is not None:
                    made, records = Sent("", ""), ()
            added = connection.execute(
                "INSERT INTO sent (owner, conversation, turn, block_id, text, mark)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (*place, *made),
            )
            if not added.rowcount:
                _, *sent = connection.execute(f"{_SENT} AND turn = ?", place).fetchone()
                return Sent(*sent)
            number = added.lastrowid
            connection.executemany(
                "INSERT OR IGNORE INTO held VALUES (?, ?)", [(r, number) for r in records]
            )
            if made.block_id:
                _issue(connection, made.block_id)
            if self._bound(connection):
                self._recent.clear()
        return made

    def _bound(self, connection: sqlite3.Connection) -> bool:
        """Delete the oldest rows of a full table; True where turns were deleted."""
        first, last, first_id, last_id = connection.execute(_NUMBERS).fetchone()
        full = first is not None and last - first >= self._turns
        if full:
            oldest = (last - max(1, int(self._turns * _KEPT)),)
            connection.execute("DELETE FROM held WHERE number <= ?", oldest)
            connection.execute("DELETE FROM sent WHERE number <= ?", oldest)
        if first_id is not None and last_id - first_id >= self._ids:
            oldest = (last_id - max(1, int(self._ids * _KEPT)),)
            connection.execute("DELETE FROM issued WHERE number <= ?", oldest)
        return full


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and clean(value) == value


def _check(value: object, name: str = "conversation") -> None:
    if not _is_plain(value):
        raise UsageError(f"{name} must be text without NUL and lone surrogates")


def _owner(scope: Scope) -> str:
    return json.dumps([getattr(scope, name) for name in SCOPE_FIELDS])


def _issue(connection: sqlite3.Connection, block_id: str) -> None:
    connection.execute("INSERT OR IGNORE INTO issued (block_id) VALUES (?)", (block_id,))
