"""The local store: a log in diskcache, and an index in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
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
    finish,
    hookimpl,
    read_cursor,
)
from memsheaf.stack.forking import watch_forks
from memsheaf.stack.ranking import Match, RankingProfile, ranking_profile
from memsheaf.stack.times import now

from .catalog import micros
from .live_view import LiveView
from .local_records import read_row
from .local_view import TextSettings, partition_of
from .oplog import Row, Writer

__all__ = ["LocalOptions", "LocalStore", "build"]

_POOL = 200  # a profile orders at least this many of the best by text
_STORE_CHUNK = 1_000


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
        self._text = TextSettings(analyzer, 0.9 if k1 is None else k1, 0.4 if b is None else b)
        self._text.empty()  # refuses settings that do not work, before anything is opened
        self._fuzzy, self._timeout = fuzzy, timeout
        self._lock = threading.RLock()
        self._live: LiveView | None = None
        self._closed = False
        watch_forks(self)

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        """Hits by the ranking profile; blank text returns the most recently updated."""
        scope.require_readable()
        if limit <= 0:
            return []
        live = self._opened()
        view = live.current()
        if not text.strip():
            return self._recent(live, scope, limit, filters)
        where = None if scope.is_everyone else partition_of(scope)
        asked = max(limit, _POOL) if self._ranked else limit
        text = content_words(text) if self._text.analyzer.startswith("english") else text
        while True:
            found = view.index.search(text, asked, where=where, fuzzy=self._fuzzy)
            records = view.records.listed(view.catalog, [hit.id for hit in found])
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
        live = self._opened()
        with live.log.writing() as writer:
            replaced = _put(live, writer, record)
        live.wrote(1, erased=replaced)

    @hookimpl
    def store_many(self, records: Sequence[MemoryRecord]) -> list[Exception | None]:
        """Keep several records, some hundreds in a commit; what is refused has its error."""
        live = self._opened()
        outcomes: list[Exception | None] = []
        replaced = False
        for start in range(0, len(records), _STORE_CHUNK):
            chunk = records[start : start + _STORE_CHUNK]
            told: list[Exception | None] = []
            try:
                with live.log.writing() as writer:
                    for record in chunk:
                        try:
                            replaced |= _put(live, writer, record)
                            told.append(None)
                        except (IdUnavailable, InvalidRecord) as error:
                            told.append(error)
            except ProviderError as error:  # the whole commit was rolled back
                told = [error] * len(chunk)
            outcomes += told
        if stored := outcomes.count(None):
            live.wrote(stored, erased=replaced)
        return outcomes

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete a record and overwrite its text."""
        live = self._opened()
        with live.log.writing() as writer:
            held = _held(writer, record_id, scope)
            if held is None:
                return False
            writer.push(record_id, None, held[0])
            live.drop_snapshot()
        live.wrote(1, erased=True)
        return True

    @hookimpl
    def update(self, record_id: str, scope: Scope, changes: Mapping[str, Any]) -> bool:
        """Change fields of a record in one transaction."""
        values = {name: value for name, value in changes.items() if name != "updated_at"}
        live = self._opened()
        with live.log.writing() as writer:
            held = _held(writer, record_id, scope)
            if held is None:
                return False
            row, record = held
            changed = record.changed(values, at=changes.get("updated_at"))
            writer.push(record_id, changed.to_json(), row)
            live.drop_snapshot()
        live.wrote(1, erased=True)
        return True

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record, or None where the scope does not hold it or it is expired."""
        row = self._opened().log.find((record_id,)).get(record_id)
        record = None if row is None or row.text is None else read_row(row)
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
        live = self._opened()
        with live.lock:
            view = live.current()
            ids = view.catalog.ordered(scope, "created", newest=order == "newest", after=place)
            usable = view.records.usable(view.catalog, ids, limit, scope, filters)
            return list(islice(usable, max(0, limit)))

    @hookimpl
    def touch(self, record_ids: Sequence[str], scope: Scope) -> int:
        """Count one recall of each record, in one transaction."""
        count, moment, live = 0, now(), self._opened()
        with live.log.writing() as writer:
            for record_id in dict.fromkeys(record_ids):
                held = _held(writer, record_id, scope)
                if held is None:
                    continue
                row, record = held
                accessed = {
                    "access_count": record.access_count + 1,
                    "last_accessed_at": max(record.last_accessed_at, moment),
                }
                writer.push(record_id, record.model_copy(update=accessed).to_json(), row)
                count += 1
        live.wrote(count, erased=False)
        return count

    @hookimpl
    def check(self) -> str:
        """Raise where the store cannot be read; tells how many memories it holds."""
        return f"{len(self._opened().current().index)} memories"

    @hookimpl
    def close(self) -> None:
        """Overwrite what was deleted, save the index, let go of the files."""
        with self._lock:
            self._closed = True
            live, self._live = self._live, None
            if live is not None:
                live.close()

    def __enter__(self) -> LocalStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def before_fork(self) -> None:
        """Let go of the files, which may not be open across a fork."""
        self._lock.acquire()
        if self._live is not None:
            self._live.quiesce()

    def after_fork(self, *, child: bool) -> None:
        """Go on."""
        if self._live is not None:
            self._live.resume(child=child)
        self._lock.release()

    def _opened(self) -> LiveView:
        live = self._live
        if live is None:
            with self._lock:
                if self._closed:
                    raise ClosedError("the local store is closed; open a new one")
                if self._live is None:
                    self._live = LiveView(self._folder, self._text, self._timeout)
                live = self._live
        return live

    def _recent(
        self, live: LiveView, scope: Scope, limit: int, filters: Filter | None
    ) -> Sequence[Hit]:
        with live.lock:
            view = live.current()
            ids = view.catalog.ordered(scope, "updated", newest=True, ceiling=micros(now()))
            usable = view.records.usable(view.catalog, ids, limit, scope, filters)
            return [Hit(record, 0.0, 0.0) for record in islice(usable, limit)]

    def _rank(self, hits: Sequence[Hit], filters: Filter | None) -> Sequence[Hit]:
        moment = now()
        tags = filters.tags_any if filters is not None else ()
        ranked = []
        for hit in hits:
            match = Match(hit.score, hit.relevance or 0.0)
            explain = partial(self._profile.explain, match, hit.record, moment, tags)
            ranked.append(Hit(hit.record, explain().value, hit.relevance, arithmetic=explain))
        return sorted(ranked, key=lambda hit: (-hit.score, hit.id))


def _put(live: LiveView, writer: Writer, record: MemoryRecord) -> bool:
    """Write a record; True where it replaces another text."""
    row = writer.find(record.id)
    replaces = row is not None and row.text is not None
    if row is not None and replaces:
        held = read_row(row)
        if held.scope != record.scope:
            raise IdUnavailable("the id cannot be used in this scope; leave it out")
        if held.updated_at > record.updated_at:
            return False
        live.drop_snapshot()
    writer.push(record.id, record.to_json(), row)
    return replaces


def _held(writer: Writer, record_id: str, scope: Scope) -> tuple[Row, MemoryRecord] | None:
    """Row and record of an id that the scope may see."""
    row = writer.find(record_id)
    if row is None or row.text is None:
        return None
    record = read_row(row)
    return (row, record) if scope.matches(record.scope) else None


FACTORY = ProviderFactory(lambda options, context: build(options, context.folder), LocalOptions)
