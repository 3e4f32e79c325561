"""The local store: a log in diskcache, and an index in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memsheaf.index import content_words
from memsheaf.stack import (
    SCOPE_FIELDS,
    ClosedError,
    Filter,
    Hit,
    IdUnavailable,
    InvalidQuery,
    InvalidRecord,
    MemoryRecord,
    Order,
    ProviderError,
    ProviderFactory,
    Scope,
    StoreCorrupt,
    finish,
    hookimpl,
    read_cursor,
)
from memsheaf.stack.forking import watch_forks
from memsheaf.stack.ranking import Match, RankingProfile, ranking_profile
from memsheaf.stack.times import now

from .catalog import micros
from .local_view import View, drop_snapshot, partition_of
from .memory_log import MemoryLog
from .oplog import DiskLog, Log, Row, Writer
from .stored import read_stored

__all__ = ["LocalOptions", "LocalStore", "build"]

_POOL = 200  # a profile orders at least this many of the best by text
_BEHIND = 256  # writes that wait for the index at the most
_WORTH_SAVING = 2_000
_STORE_CHUNK = 1_000
_CACHED = 8_192  # records read from JSON that are kept


class LocalOptions(BaseModel):
    """Settings of a local store in a configuration.

    Attributes:
        path: The folder; without one, the workspace's or user's data folder.
        ranking: Name of a ranking profile.
        k1: How slowly repeated words saturate.
        b: How much long memories are held back.
        analyzer: How text becomes terms: english or plain.
        fuzzy: Whether a word that no memory has stands for similar ones.
        timeout: Seconds to wait for another process that writes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None
    ranking: str | None = None
    k1: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    b: float | None = Field(default=None, ge=0, le=1)
    analyzer: str = "english"
    fuzzy: bool = True
    timeout: float = Field(default=5.0, gt=0, allow_inf_nan=False)


def build(options: LocalOptions, folder: Path | None) -> LocalStore:
    """The store of a configuration; a relative path starts at ``folder``."""
    path = folder if options.path is None else options.path.expanduser()
    if folder is not None and path is not None:
        path = folder / path
    return LocalStore(path, **options.model_dump(exclude={"path"}))


class LocalStore:
    """A memory store in a folder, or in memory only where no path is given.

    Threads and processes may share a folder. It is opened by the first call.

    Args:
        path: The folder, made where it is absent.
        ranking: A ranking profile or its name; None is the order of the text's relevance.
        k1: BM25's saturation; None is the profile's or 0.9.
        b: BM25's length normalisation; None is the profile's or 0.4.
        analyzer: Name of a text analyzer.
        fuzzy: Whether a word that no memory has stands for similar ones.
        timeout: Seconds to wait for another process that writes.

    >>> store = LocalStore()
    >>> mira = Scope(user_id="mira")
    >>> store.store(MemoryRecord(content="Mira plays the cello", scope=mira))
    >>> [hit.record.content for hit in store.search("cello", mira, 10, None)]
    ['Mira plays the cello']
    """

    scope_fields = SCOPE_FIELDS
    filters_natively = True

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        ranking: str | RankingProfile | None = None,
        k1: float | None = None,
        b: float | None = None,
        analyzer: str = "english",
        fuzzy: bool = True,
        timeout: float = 5.0,
    ) -> None:
        self._folder = None if path is None else Path(path)
        self.inline = path is None
        self._profile = ranking_profile(ranking)
        self._ranked = ranking not in (None, "default")
        k1 = self._profile.k1 if k1 is None else k1
        b = self._profile.b if b is None else b
        self._text = (analyzer, 0.9 if k1 is None else k1, 0.4 if b is None else b)
        View(*self._text)  # refuses settings that do not work, before anything is opened
        self._fuzzy, self._timeout = fuzzy, timeout
        self._lock = threading.RLock()
        self._log: Log | None = None
        self._view: View | None = None
        self._behind = 0
        self._unerased = False
        self._closed = False
        watch_forks(self)

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        """Hits by the ranking profile; blank text returns the most recently updated."""
        scope.require_readable()
        if limit <= 0:
            return []
        view = self._current()
        if not text.strip():
            return self._recent(view, scope, limit, filters)
        where = None if scope.is_everyone else partition_of(scope)
        asked = max(limit, _POOL) if self._ranked else limit
        text = content_words(text) if self._text[0].startswith("english") else text
        while True:
            found = view.index.search(text, asked, where=where, fuzzy=self._fuzzy)
            records = self._records([hit.id for hit in found])
            scored = [(hit.id, hit.score, hit.relevance) for hit in found]
            keep = len(found) if self._ranked else limit
            hits = finish(scored, records, scope, filters, keep)
            if len(hits) >= limit or len(found) < asked:
                return self._rank(hits, filters)[:limit] if self._ranked else hits
            asked *= 4

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Keep a record; the same id replaces, an older copy is ignored."""
        record.scope.require_writable()
        with self._opened().writing() as writer:
            replaced = self._put(writer, record)
        self._wrote(1, erased=replaced)

    @hookimpl
    def store_many(self, records: Sequence[MemoryRecord]) -> list[Exception | None]:
        """Keep several records, some hundreds in a commit; what is refused has its error."""
        outcomes: list[Exception | None] = []
        replaced = False
        for start in range(0, len(records), _STORE_CHUNK):
            chunk = records[start : start + _STORE_CHUNK]
            told: list[Exception | None] = []
            try:
                with self._opened().writing() as writer:
                    for record in chunk:
                        try:
                            replaced |= self._put(writer, record)
                            told.append(None)
                        except (IdUnavailable, InvalidRecord) as error:
                            told.append(error)
            except ProviderError as error:  # the whole commit was rolled back
                told = [error] * len(chunk)
            outcomes += told
        if stored := outcomes.count(None):
            self._wrote(stored, erased=replaced)
        return outcomes

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete a record and overwrite its text."""
        with self._opened().writing() as writer:
            held = self._held(writer, record_id, scope)
            if held is None:
                return False
            writer.push(record_id, None, held[0])
            self._drop_snapshot()
        self._wrote(1, erased=True)
        return True

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        """Change fields of a record in one transaction."""
        values = {name: value for name, value in changes.items() if name != "updated_at"}
        with self._opened().writing() as writer:
            held = self._held(writer, record_id, scope)
            if held is None:
                return False
            row, record = held
            changed = record.changed(values, at=changes.get("updated_at"))
            writer.push(record_id, changed.to_json(), row)
            self._drop_snapshot()
        self._wrote(1, erased=True)
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record, or None where the scope does not hold it or it is expired."""
        record = self._records([record_id]).get(record_id)
        if record is None or record.is_expired() or not scope.matches(record.scope):
            return None
        return record

    @hookimpl
    def list(
        self, scope: Scope, limit: int, after: str | None, order: Order, filters: Filter | None
    ) -> list[MemoryRecord]:
        """Records by (created_at, id)."""
        scope.require_readable()
        if order not in ("newest", "oldest"):
            raise InvalidQuery("order: use newest or oldest")
        place = None
        if after is not None:
            moment, record_id = read_cursor(after)
            place = (micros(moment), record_id)
        with self._lock:
            view = self._current()
            ids = view.catalog.ordered(scope, "created", newest=order == "newest", after=place)
            return list(islice(self._usable(ids, limit, scope, filters), max(0, limit)))

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one recall of each record, in one transaction."""
        count, moment = 0, now()
        with self._opened().writing() as writer:
            for record_id in dict.fromkeys(record_ids):
                held = self._held(writer, record_id, scope)
                if held is None:
                    continue
                row, record = held
                accessed = {
                    "access_count": record.access_count + 1,
                    "last_accessed_at": max(record.last_accessed_at, moment),
                }
                writer.push(record_id, record.model_copy(update=accessed).to_json(), row)
                count += 1
        self._wrote(count, erased=False)
        return count

    @hookimpl
    def check(self) -> str:
        """Raise where the store cannot be read; tells how many memories it holds."""
        return f"{len(self._current().index)} memories"

    @hookimpl
    def close(self) -> None:
        """Overwrite what was deleted, save the index, let go of the files."""
        with self._lock:
            if self._closed:
                return
            try:
                if self._folder is not None and self._log is not None:
                    self._save(self._log, self._folder)
                    self._log.erase()
            finally:
                self._closed = True
                if self._log is not None:
                    self._log.close()
                self._log = self._view = None

    def __enter__(self) -> LocalStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Log:
        log = self._log
        if log is None:
            with self._lock:
                if self._closed:
                    raise ClosedError("the local store is closed; open a new one")
                if self._log is None:
                    folder = self._folder
                    self._log = MemoryLog() if folder is None else DiskLog(folder, self._timeout)
                log = self._log
        return log

    def _current(self) -> View:
        """The view, moved on to the log's newest row."""
        log = self._opened()
        last = log.last()
        view = self._view
        if view is not None and view.sequence >= last:
            return view
        with self._lock:
            if self._view is None:
                self._view = self._restored(log, last)
            view = self._view
            try:
                view.apply(log.tail(view.sequence))
            except BaseException:
                self._view = None  # it may hold half of the rows
                raise
            self._behind = 0
            return view

    def _restored(self, log: Log, last: int) -> View:
        kept = None
        if self._folder is not None:
            kept = View.restore(self._folder, log.identity, last, *self._text)
        return kept or View(*self._text)

    def _put(self, writer: Writer, record: MemoryRecord) -> bool:
        """Write a record; True where it replaces another text."""
        row = writer.find(record.id)
        if row is not None and row.text is not None:
            held = _read(row)
            if held.scope != record.scope:
                raise IdUnavailable("the id cannot be used in this scope; leave it out")
            if held.updated_at > record.updated_at:
                return False
            self._drop_snapshot()
        writer.push(record.id, record.to_json(), row)
        return row is not None and row.text is not None

    def _held(
        self, writer: Writer, record_id: str, scope: Scope
    ) -> tuple[Row, MemoryRecord] | None:
        row = writer.find(record_id)
        if row is None or row.text is None:
            return None
        record = _read(row)
        return (row, record) if scope.matches(record.scope) else None

    def _records(self, record_ids: Sequence[str]) -> dict[str, MemoryRecord]:
        rows = self._opened().find(record_ids)
        return {
            record_id: _own_copy(_read(row))
            for record_id, row in rows.items()
            if row.text is not None
        }

    def _recent(
        self, view: View, scope: Scope, limit: int, filters: Filter | None
    ) -> Sequence[Hit]:
        with self._lock:
            ids = view.catalog.ordered(scope, "updated", newest=True, ceiling=micros(now()))
            found = islice(self._usable(ids, limit, scope, filters), limit)
            return [Hit(record, 0.0, 0.0) for record in found]

    def _usable(
        self, ids: Iterator[str], limit: int, scope: Scope, filters: Filter | None
    ) -> Iterator[MemoryRecord]:
        moment = now()
        while batch := list(islice(ids, max(limit, 16))):
            records = self._records(batch)
            for record_id in batch:
                record = records.get(record_id)
                if (
                    record is not None
                    and scope.matches(record.scope)
                    and not record.is_expired(moment)
                    and (filters is None or filters.matches(record))
                ):
                    yield record

    def _rank(self, hits: Sequence[Hit], filters: Filter | None) -> Sequence[Hit]:
        moment = now()
        tags = filters.tags_any if filters is not None else ()
        ranked = []
        for hit in hits:
            match = Match(hit.score, hit.relevance or 0.0)
            explain = partial(self._profile.explain, match, hit.record, moment, tags)
            ranked.append(Hit(hit.record, explain().value, hit.relevance, arithmetic=explain))
        return sorted(ranked, key=lambda hit: (-hit.score, hit.id))

    def _wrote(self, count: int, *, erased: bool) -> None:
        """After a commit: overwrite deleted text, and let the index not fall far behind."""
        self._unerased = (erased or self._unerased) and not self._opened().erase()
        self._behind += count
        if self._behind >= _BEHIND:
            self._current()

    def _drop_snapshot(self) -> None:
        if self._folder is not None:
            drop_snapshot(self._folder)

    def _save(self, log: Log, folder: Path) -> None:
        view = self._view
        if view is None or not os.access(folder, os.W_OK):
            return
        self._current()
        if len(view.index) < _WORTH_SAVING or view.saved == view.sequence:
            return
        with log.writing():  # nobody forgets while the snapshot is written
            view.apply(log.tail(view.sequence))
            view.save(folder, log.identity)

    def before_fork(self) -> None:
        """Let go of the files, which may not be open across a fork."""
        self._lock.acquire()
        if self._log is not None:
            self._log.quiesce()

    def after_fork(self, *, child: bool) -> None:
        """Go on; a child derives its index anew."""
        if self._log is not None:
            self._log.resume()
        if child:
            self._view = None  # another thread may have been inside the index
        self._lock.release()


def _own_copy(record: MemoryRecord) -> MemoryRecord:
    return record.copy_out() if record.metadata else record


@lru_cache(maxsize=_CACHED)
def _read(row: Row) -> MemoryRecord:
    try:
        return read_stored(row.text or "")
    except InvalidRecord as error:
        raise StoreCorrupt(
            f"row {row.sequence} of the log is not a record; restore a backup"
        ) from error


FACTORY = ProviderFactory(lambda options, context: build(options, context.folder), LocalOptions)
