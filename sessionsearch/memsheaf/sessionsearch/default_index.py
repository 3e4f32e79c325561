"""The default index: BM25 of `memsheaf.index`, with three levels of evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index, Document, content_words
from memsheaf.index.postings import RunsCache, lengths_since

from .catalog import Catalog, Searched
from .changes import Changes
from .content import content_of, same_text
from .evidence import Evidence
from .indexes import Candidate, Counts, ItemQuery
from .log_rows import micros
from .ranking import SessionRanking, preset

__all__ = ["DefaultIndex"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DefaultIndex:
    """An index of sessions in memory.

    Args:
        ranking: A preset's name or settings of one's own.
    """

    name = "default"

    def __init__(self, ranking: str | SessionRanking | None = None) -> None:
        self.ranking = preset(ranking)
        self.sequence = 0
        self.rebuilt: str | None = None
        self._words = BM25Index(partition_fields=1)
        self._catalog = Catalog()
        self._cache = RunsCache()

    def apply(self, changes: Changes) -> int:
        """Take in a part of the log's feed; doing it twice changes nothing."""
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
                    self._catalog.add(change.row, item, created, same_text(item))
                    key = f"{change.row}:{item.seq}"
                    documents.append(Document(key, text, (str(change.row),)))
        self._words.add_many(documents)
        self._catalog.measure(first, lengths_since(self._words, first))
        if any(change.erased for change in changes.changes):
            self._words.compact()
        self.sequence = changes.sequence
        return len(documents)

    def search(self, query: ItemQuery, limit: int) -> list[Candidate]:
        """The best items, best first."""
        searched = self._catalog.searched(query.scope)
        among = searched.mask
        for _, mask in self._conversation_filters(query):
            among = among & mask
        evidence = self._evidence(query, searched)
        table = self._catalog.rows
        if query.sort == "relevance":
            found = evidence.best(limit, among, lambda rows: self._kept(query, rows))
        else:
            found = evidence.every(among)
        rows, score, relevance = found.rows, found.scores, found.relevance
        keep = self._kept(query, rows)
        if keep is not None:
            rows, score, relevance = rows[keep], score[keep], relevance[keep]
        if query.sort != "relevance" and len(rows):
            well = relevance * 2 >= relevance.max()
            rows, score, relevance = rows[well], score[well], relevance[well]
        created = table["created"][rows]
        if query.sort == "newest":
            order = np.lexsort((-rows, -created))
        elif query.sort == "oldest":
            order = np.lexsort((rows, created))
        else:
            order = np.lexsort((rows, -score))
        chosen = order[:limit]
        rows = rows[chosen]
        columns = (
            table["conversation"][rows],
            table["seq"][rows],
            score[chosen],
            relevance[chosen],
            table["same_text"][rows],
        )
        lists = (column.tolist() for column in columns)
        return [Candidate(*values) for values in zip(*lists, strict=True)]

    def counts(self, query: ItemQuery) -> Counts:
        """What the query looked at."""
        searched = self._catalog.searched(query.scope)
        rows = self._evidence(query, searched).every(searched.mask).rows
        owner = self._catalog.rows["conversation"][rows]
        of_conversations = [(name, mask[owner]) for name, mask in self._conversation_filters(query)]
        removed: dict[str, int] = {}
        left = np.ones(len(rows), bool)
        for name, mask in [*of_conversations, *self._item_filters(query, rows)]:
            removed[name] = int(np.count_nonzero(left & ~mask))
            left &= mask
        return Counts(searched.conversations, searched.items, len(rows), removed)

    def save(self) -> None:
        """Keep nothing: it lives in memory."""

    def close(self) -> None:
        """End it."""

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
        table = self._catalog.rows
        found: list[tuple[str, Mask]] = []
        for name, column, wanted in (
            ("roles", "role", query.roles),
            ("types", "type", query.types),
        ):
            if wanted is not None:
                codes = self._catalog.codes(wanted)
                found.append((name, np.isin(table[column][rows], codes)))
        if query.since is not None:
            found.append(("since", table["created"][rows] >= query.since))
        if query.until is not None:
            found.append(("until", table["created"][rows] <= query.until))
        return found

    def _kept(self, query: ItemQuery, rows: Ints) -> Mask | None:
        """Which of the rows pass all filters on items; None for all."""
        masks = [mask for _, mask in self._item_filters(query, rows)]
        return np.logical_and.reduce(masks) if masks else None

    def _evidence(self, query: ItemQuery, searched: Searched) -> Evidence:
        return Evidence(
            self._words,
            self._catalog,
            self._cache,
            content_words(query.text),
            searched,
            self.ranking,
        )
