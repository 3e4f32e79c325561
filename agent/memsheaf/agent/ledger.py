"""The ledger: which blocks were issued, and what each turn of a conversation was sent."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from memsheaf.providers.forking import watch_forks
from memsheaf.stack import (
    SCOPE_FIELDS,
    ClosedError,
    ForgetReport,
    ProviderUnavailable,
    Scope,
    StoreCorrupt,
    UsageError,
    hookimpl,
)
from memsheaf.stack.disk import our_errors
from memsheaf.stack.text import clean

__all__ = ["BlockLedger", "Sent"]

_SCHEMA = """
    CREATE TABLE sent (
        number INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        conversation TEXT NOT NULL,
        turn TEXT NOT NULL,
        block_id TEXT NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (owner, conversation, turn)
    );
    CREATE TABLE held (
        record_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (record_id, number)
    ) WITHOUT ROWID;
    CREATE TABLE issued (number INTEGER PRIMARY KEY, block_id TEXT NOT NULL UNIQUE);
"""
_OF = " owner = :owner AND (:conversation IS NULL OR conversation = :conversation)"
_ERASE_HELD = "DELETE FROM held WHERE number IN (SELECT number FROM sent WHERE" + _OF + ")"
_ERASE_SENT = "DELETE FROM sent WHERE" + _OF
_KEPT = 0.9  # of a full table, so that old rows go rarely
_CONVERSATIONS = 64  # that were asked last and are kept at hand
_PAUSE = 0.005  # seconds between two tries where SQLite itself does not wait


class Sent(NamedTuple):
    """What a turn was sent: a block and its id, both empty where nothing was injected."""

    block_id: str
    text: str


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
    Sent(block_id='0123456789abcdef', text='the block')
    >>> ledger.sent(mira, "monday")
    {'turn-1': Sent(block_id='0123456789abcdef', text='the block')}
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
        self._path = None if path is None else Path(path)
        self._turns, self._ids, self._timeout = turns, ids, timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._recent: dict[tuple[str, str], dict[str, Sent]] = {}
        self._version = -1
        with self._using():
            pass  # what is wrong with the file is said at once
        watch_forks(self)

    def __contains__(self, block_id: object) -> bool:
        """Whether a block with this id was issued."""
        if not isinstance(block_id, str) or not block_id.isascii():
            return False
        with self._using() as connection:
            row = connection.execute("SELECT 1 FROM issued WHERE block_id = ?", (block_id,))
            return row.fetchone() is not None

    def issue(self, block_id: str) -> None:
        """Remember an id without a conversation."""
        with self._writing() as connection:
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
    ) -> Sent:
        """Remember what a turn was sent.

        Args:
            scope: Whose conversation.
            conversation: Its name.
            turn: The key of the turn.
            block_id: The block's id; empty where nothing was injected.
            text: The block.
            records: The ids of the memories in it.

        Returns:
            What counts for the turn: what was kept first, if it was kept before.
        """
        owner = _owner(scope)
        _check(conversation)
        with self._lock:
            made = self._keep(owner, conversation, turn, Sent(block_id, text), records)
            if (known := self._recent.get((owner, conversation))) is not None:
                known[turn] = made
        return made

    def sent(self, scope: Scope, conversation: str) -> Mapping[str, Sent]:
        """What each turn of a conversation was sent; another scope's conversation is empty."""
        owner = _owner(scope)
        _check(conversation)
        with self._using() as connection:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:  # another process, or object, has written
                self._recent.clear()
                self._version = version
            known = self._recent.pop((owner, conversation), None)
            if known is None:
                rows = connection.execute(
                    "SELECT turn, block_id, text FROM sent WHERE owner = ? AND conversation = ?",
                    (owner, conversation),
                )
                known = {turn: Sent(block_id, text) for turn, block_id, text in rows}
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
        with self._writing() as connection:
            owners = connection.execute("SELECT DISTINCT owner FROM sent").fetchall()
            for (owner,) in owners:
                if scope.matches(Scope(*json.loads(owner))):
                    values = {"owner": owner, "conversation": conversation}
                    connection.execute(_ERASE_HELD, values)
                    count += connection.execute(_ERASE_SENT, values).rowcount
            self._recent.clear()
        self._overwrite()
        return count

    def drop(self, record_ids: Sequence[str]) -> int:
        """Empty the blocks that hold one of these memories; their turns stay without a block.

        Returns:
            How many blocks were emptied.
        """
        count = 0
        with self._writing() as connection:
            for record_id in record_ids:
                count += connection.execute(
                    "UPDATE sent SET text = '', block_id = '' WHERE text <> '' AND number IN"
                    " (SELECT number FROM held WHERE record_id = ?)",
                    (record_id,),
                ).rowcount
                connection.execute("DELETE FROM held WHERE record_id = ?", (record_id,))
            self._recent.clear()
        if count:
            self._overwrite()
        return count

    @hookimpl
    def after_forget(self, report: ForgetReport) -> None:
        """Drop what a forgotten memory was in."""
        self.drop(report.deleted)

    def close(self) -> None:
        """Let go of the file; calling it again does nothing."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def before_fork(self) -> None:
        """Let go of the file, which may not be open across a fork."""
        self._lock.acquire()
        if self._path is not None:
            self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the file is opened when it is needed."""
        self._lock.release()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock, our_errors(f"the ledger {self._path or 'in memory'}"):
            if self._closed:
                raise ClosedError("the ledger is closed; open it again")
            if self._connection is None:
                self._connection = self._connect()
                # One that lives in memory is often not closed by anybody.
                self._finalizer = weakref.finalize(self, self._connection.close)
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _keep(
        self, owner: str, conversation: str, turn: str, made: Sent, records: Sequence[str]
    ) -> Sent:
        with self._writing() as connection:
            row = connection.execute(
                "SELECT block_id, text FROM sent WHERE owner = ? AND conversation = ? AND turn = ?",
                (owner, conversation, turn),
            ).fetchone()
            if row is not None:
                return Sent(*row)
            number = connection.execute(
                "INSERT INTO sent (owner, conversation, turn, block_id, text)"
                " VALUES (?, ?, ?, ?, ?)",
                (owner, conversation, turn, *made),
            ).lastrowid
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
        first, last = connection.execute("SELECT min(number), max(number) FROM sent").fetchone()
        full = first is not None and last - first >= self._turns
        if full:
            oldest = (last - max(1, int(self._turns * _KEPT)),)
            connection.execute("DELETE FROM held WHERE number <= ?", oldest)
            connection.execute("DELETE FROM sent WHERE number <= ?", oldest)
        first, last = connection.execute("SELECT min(number), max(number) FROM issued").fetchone()
        if first is not None and last - first >= self._ids:
            oldest = (last - max(1, int(self._ids * _KEPT)),)
            connection.execute("DELETE FROM issued WHERE number <= ?", oldest)
        return full

    def _overwrite(self) -> None:
        """Empty the write-ahead log, which holds deleted text; another reader may delay it."""
        with self._using() as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._finalizer()
            self._connection = None
            self._recent.clear()
            self._version = -1

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None:
            _make(self._path)
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._write_ahead(connection)
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL; SQLite does not wait by itself where another process does the same."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


def _make(path: Path) -> None:
    """Make folder and file for their owner only; a link could lead anywhere."""
    for ending in ("", "-wal", "-shm"):
        if os.path.islink(f"{path}{ending}"):
            raise ProviderUnavailable(f"{path}{ending} is a symbolic link; remove it")
    for folder in reversed([f for f in path.absolute().parents if not f.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if version == 0 and tables == 0:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
    elif version != 1:
        raise StoreCorrupt("it is no ledger of this version of Memsheaf; name another file")
    connection.execute("COMMIT")


def _check(conversation: object) -> None:
    if not isinstance(conversation, str) or clean(conversation) != conversation:
        raise UsageError("conversation must be text without NUL and lone surrogates")


def _owner(scope: Scope) -> str:
    return json.dumps([getattr(scope, name) for name in SCOPE_FIELDS])


def _issue(connection: sqlite3.Connection, block_id: str) -> None:
    connection.execute("INSERT OR IGNORE INTO issued (block_id) VALUES (?)", (block_id,))
