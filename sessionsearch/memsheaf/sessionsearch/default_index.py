"""The default index: BM25 of `memsheaf.index`, with three levels of evidence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index, Document, SnapshotError, content_words
from memsheaf.index.postings import RunsCache, lengths_since, prepare, unite
from memsheaf.stack import ClosedError, ProviderError, Scope

from .catalog import Catalog, Searched
from .changes import Changes
from .content import content_of, same_text
from .evidence import Evidence, Keep
from .index_files import IndexFiles
from .indexes import Candidate, Counts, IndexDamaged, ItemQuery
from .log import ConversationLog
from .log_rows import micros
from .ranking import SessionRanking
from .setting import Setting
from .words import number

__all__ = ["DefaultIndex"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_log = logging.getLogger(__name__)
_FORMAT = 2
_WORDS = "words"
_FEW = 100  # unsaved changes that the next opening takes in from the log
_OFTEN = 50_000  # unsaved changes after which it is saved, or half of what is saved
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def _damage_told(what: str) -> Iterator[None]:
    """Raise `IndexDamaged` where saved arrays are damaged or do not fit together."""
    try:
        yield
    except (SnapshotError, IndexError, ValueError, KeyError) as error:
        raise IndexDamaged(f"{type(error).__name__} in {what}") from error


class DefaultIndex:
    """The index of a log, in memory and saved beside the log.

    Args:
        log: What is indexed.
        ranking: Its settings; None for the default.
    """

    name = "default"

    def __init__(self, log: ConversationLog, ranking: SessionRanking | None = None) -> None:
        self.ranking = ranking or SessionRanking()
        self.rebuilt: str | None = None
        self._log, self._files = log, IndexFiles(log.path)
        self._begin()
        try:
            self._load()
        except (SnapshotError, ValueError, KeyError, TypeError, OSError) as error:
            self.reset(f"{type(error).__name__}: the saved index cannot be used")

    def reset(self, reason: str) -> None:
        """Begin anew; the next `apply` is from the beginning of the log."""
        _log.warning("%s: the index of sessions is rebuilt: %s", self._log.path, reason)
        self.rebuilt = reason
        self._begin()
        self._erased = True  # the files may hold what an erasure did not come to remove

    def _begin(self) -> None:
        """Hold nothing. Rows are counted: unsaved, at the last save, when they became one part."""
        self.sequence = 0
        self._words = BM25Index(partition_fields=1)
        self._catalog = Catalog()
        self._cache = RunsCache()
        self._setting: Setting | None = None
        self._unsaved = self._saved = self._united = 0
        self._erased = False

    def _load(self) -> None:
        """Map what was saved, if it was made of this log.

        Raises:
            SnapshotError: It was not, or it is damaged.
            ValueError: It is damaged.
            OSError: It cannot be read.
        """
        if not self._files.folder.exists():
            return
        with self._files.locked(writing=False):
            if not self._files.folder.exists():  # an erasure came first
                return
            words = BM25Index.load(self._files.folder / _WORDS)
            catalog, about = Catalog.load(self._catalog_file(words.sequence))
        if about["mark"] != self._log.mark(words.sequence):
            raise SnapshotError("it was made of another log, or of one that went on")
        if about["format"] != _FORMAT or catalog.rows.size != about["rows"]:
            raise SnapshotError("it has another format")
        self._words, self._catalog, self.sequence = words, catalog, words.sequence
        self._saved, self._united = catalog.rows.size, about["united"]

    def apply(self, changes: Changes) -> int:
        """Take in a part of the log's feed; doing it twice changes nothing."""
        try:
            with _damage_told("taking in what the log has"):
                return self._apply(changes)
        except IndexDamaged:
            raise
        except BaseException as error:  # what was taken in by half would not be taken in again
            self.reset(f"{type(error).__name__} while it took in what the log has")
            raise

    def _apply(self, changes: Changes) -> int:
        first = self._catalog.rows.size
        documents: list[Document] = []
        for change in changes.changes:
            self._catalog.describe(change.row, change.conversation, change.hidden)
            if change.removed:
                places = self._catalog.places(change.row)
                for seq in change.removed:
                    if seq in places:
                        self._words.remove(f"{change.row}:{seq}")
                        self._cache.clear()
                        self._catalog.remove(places[seq])
            for item in self._catalog.missing(change.row, change.items):
                text = content_of(item)
                if text.strip():
                    created = micros(item.created_at or _EPOCH)
                    position = change.positions[item.seq]
                    self._catalog.add(change.row, item, position, created, same_text(item))
                    key = f"{change.row}:{item.seq}"
                    documents.append(Document(key, text, (str(change.row),)))
        self._words.add_many(documents)
        self._catalog.measure(first, lengths_since(self._words, first))
        if self.sequence and any(change.erased for change in changes.changes):
            self._erased = True
        self.sequence = changes.sequence
        self._unsaved += len(documents) + sum(len(each.removed) for each in changes.changes)
        if not changes.more and self._erased:
            self._words.compact()
        if self._erased or self._unsaved > max(_OFTEN, self._saved // 2):
            many = self._unsaved > _OFTEN
            self._save()
            if many and not self._unsaved:  # it was saved; else more comes, or it is tried again
                self._prepare()
        return len(documents)

    def search(self, query: ItemQuery, limit: int) -> list[Candidate]:
        """The best items, best first."""
        with _damage_told("a search"):
            return self._search(query, limit)

    def _search(self, query: ItemQuery, limit: int) -> list[Candidate]:
        searched = self._catalog.searched(query.scope)
        masks = [mask for _, mask in self._conversation_filters(query)]
        among = np.logical_and.reduce(masks) if masks else None
        evidence = self._evidence(query, searched)
        keep = self._keep(query)
        table = self._catalog.rows
        if query.sort == "relevance":
            rows, score = evidence.best(limit, among, keep)
            if 0 < limit < len(rows):
                first = (score >= np.partition(score, -limit)[-limit]).nonzero()[0]
                rows, score = rows[first], score[first]
            chosen = np.lexsort((rows, -score))[:limit]
        else:
            rows, score = evidence.every(among, keep)
            relevance = evidence.relevance(rows)
            well = relevance * 2 >= relevance.max(initial=0.0)
            rows, score = rows[well], score[well]
            created = table["created"].take(rows)
            newest = query.sort == "newest"
            chosen = np.lexsort((-rows, -created) if newest else (rows, created))[:limit]
        rows = rows[chosen]
        columns = (
            table["conversation"].take(rows),
            table["seq"].take(rows),
            score[chosen],
            evidence.relevance(rows),
            table["same_text"].take(rows),
            table["position"].take(rows),
        )
        return list(map(Candidate, *[column.tolist() for column in columns]))

    def counts(self, query: ItemQuery) -> Counts:
        """What the query looked at."""
        with _damage_told("a count"):
            return self._counts(query)

    def _counts(self, query: ItemQuery) -> Counts:
        searched = self._catalog.searched(query.scope)
        rows, _ = self._evidence(query, searched).every(None)
        owner = self._catalog.rows["conversation"][rows]
        of_conversations = [(name, mask[owner]) for name, mask in self._conversation_filters(query)]
        removed: dict[str, int] = {}
        left = np.ones(len(rows), bool)
        for name, mask in [*of_conversations, *self._item_filters(query, rows)]:
            removed[name] = int(np.count_nonzero(left & ~mask))
            left &= mask
        return Counts(searched.conversations, searched.items, len(rows), removed)

    def save(self) -> None:
        """Save it, unless the log went on meanwhile; what fails is told and tried again later.

        What searches need of frequent words is made ready, as it is when much was taken in.
        """
        self._keep_files(ready=True)

    def _keep_files(self, *, ready: bool) -> None:
        try:
            with _damage_told("saving"):
                if self._catalog.rows.size - self._united > self._united // 4:
                    unite(self._words)
                    self._united = self._catalog.rows.size
                self._save()
                if ready:
                    self._prepare()
        except IndexDamaged as error:
            self.reset(str(error))

    def _prepare(self) -> None:
        setting = self._set(self._catalog.searched(Scope.EVERYONE))
        prepare(self._words, self._cache, number, setting.table)

    def _save(self) -> None:
        try:
            with self._files.locked(writing=True):
                mark = self._log.mark(self.sequence)
                if mark is not None and self._log.sequence() == self.sequence:
                    self._write(mark)
        except (OSError, ProviderError, ClosedError) as error:
            _log.warning("%s: the index is not saved: %s", self._log.path, type(error).__name__)

    def _write(self, mark: str) -> None:
        folder, catalog = self._files.folder, self._catalog_file(self.sequence)
        folder.mkdir(mode=0o700, exist_ok=True)
        about = {
            "format": _FORMAT,
            "mark": mark,
            "rows": self._catalog.rows.size,
            "united": self._united,
        }
        if catalog.exists():  # with words whose rows another process may have put in another order
            (folder / _WORDS / "manifest").unlink(missing_ok=True)
        self._catalog.save(catalog, about)
        self._words.save(folder / _WORDS, sequence=self.sequence)
        for old in folder.glob("catalog-*"):
            if old != catalog:
                old.unlink()
        self._unsaved, self._saved, self._erased = 0, self._catalog.rows.size, False

    def close(self) -> None:
        """Save it where reading the log again would take a while."""
        if self._unsaved > _FEW:
            self._keep_files(ready=False)

    def _catalog_file(self, sequence: int) -> Path:
        return self._files.folder / f"catalog-{sequence}"

    def _conversation_filters(self, query: ItemQuery) -> list[tuple[str, Mask]]:
        """Which conversations pass each filter on them that is set."""
        found: list[tuple[str, Mask]] = []
        if query.conversations is not None:
            found.append(("conversation", self._catalog.chosen(query.conversations)))
        if query.project is not None:
            found.append(("project", self._catalog.in_project(query.project)))
        return found

    def _item_filters(self, query: ItemQuery, rows: Ints) -> list[tuple[str, Mask]]:
        """Which of the rows pass each filter on items that is set."""
        found: list[tuple[str, Mask]] = []
        if query.roles is not None:
            found.append(("roles", self._catalog.of_kind(rows, "role", query.roles)))
        if query.types is not None:
            found.append(("types", self._catalog.of_kind(rows, "type", query.types)))
        created = self._catalog.rows["created"]
        if query.since is not None:
            found.append(("since", created.take(rows) >= query.since))
        if query.until is not None:
            found.append(("until", created.take(rows) <= query.until))
        return found

    def _keep(self, query: ItemQuery) -> Keep | None:
        """Tells which rows pass all filters on items; None where there is none."""
        if not self._item_filters(query, np.zeros(0, np.int64)):
            return None
        return lambda rows: np.logical_and.reduce([m for _, m in self._item_filters(query, rows)])

    def _evidence(self, query: ItemQuery, searched: Searched) -> Evidence:
        setting, text = self._set(searched), content_words(query.text)
        return Evidence(self._words, self._catalog, self._cache, text, setting, self.ranking)

    def _set(self, searched: Searched) -> Setting:
        setting = self._setting
        if setting is None or setting.searched is not searched:
            setting = self._setting = Setting(self._catalog, searched, self.ranking)
        return setting
