"""The default index: BM25 of `memsheaf.index`, with three levels of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memsheaf.index import BM25Index, Document, content_words
from memsheaf.index.postings import Postings, postings

from .catalog import Catalog
from .changes import Changes
from .content import content_of, same_text
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

    def apply(self, changes: Changes) -> int:
        """Take in a part of the log's feed; doing it twice changes nothing."""
        added = 0
        documents: list[Document] = []
        for change in changes.changes:
            self._catalog.describe(change.row, change.conversation, change.hidden)
            if change.removed:
                places = self._catalog.places(change.row)
                for seq in change.removed:
                    if seq in places:
                        self._words.remove(f"{change.row}:{seq}")
                        self._catalog.remove(places[seq])
            for item in self._catalog.missing(change.row, change.items):
                text = content_of(item)
                if text.strip():
                    created = micros(item.created_at or _EPOCH)
                    self._catalog.add(change.row, item, _words(text), created, same_text(item))
                    key = f"{change.row}:{item.seq}"
                    documents.append(Document(key, text, (str(change.row),)))
                    added += 1
        self._words.add_many(documents)
        if any(change.erased for change in changes.changes):
            self._words.compact()
        self.sequence = changes.sequence
        return added

    def search(self, query: ItemQuery, limit: int) -> list[Candidate]:
        """The best items, best first."""
        found = self._found(query)
        if found is None:
            return []
        rows, score, relevance = found
        keep = np.ones(len(rows), bool)
        for _, mask in self._filters(query, rows):
            keep &= mask
        rows, score, relevance = rows[keep], score[keep], relevance[keep]
        if query.sort != "relevance" and len(rows):
            well = relevance * 2 >= relevance.max()
            rows, score, relevance = rows[well], score[well], relevance[well]
        table = self._catalog.rows
        created = table["created"][rows]
        if query.sort == "newest":
            order = np.lexsort((-rows, -created))
        elif query.sort == "oldest":
            order = np.lexsort((rows, created))
        else:
            order = np.lexsort((rows, -score))
        chosen = order[:limit]
        picked = table[rows[chosen]]
        return [
            Candidate(*values)
            for values in zip(
                picked["conversation"].tolist(),
                picked["seq"].tolist(),
                score[chosen].tolist(),
                relevance[chosen].tolist(),
                picked["same_text"].tolist(),
                strict=True,
            )
        ]

    def counts(self, query: ItemQuery) -> Counts:
        """What the query looked at."""
        scope = self._catalog.searched(query.scope)
        held = self._catalog.conversations["items"][scope]
        lists = [p.rows for p in postings(self._words, content_words(query.text))]
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *lists]))
        rows = rows[scope[self._catalog.rows["conversation"][rows]]]
        removed: dict[str, int] = {}
        left = np.ones(len(rows), bool)
        for name, mask in self._filters(query, rows):
            removed[name] = int(np.count_nonzero(left & ~mask))
            left &= mask
        return Counts(int(scope.sum()), int(held.sum()), len(rows), removed)

    def save(self) -> None:
        """Keep nothing: it lives in memory."""

    def close(self) -> None:
        """End it."""

    def _filters(self, query: ItemQuery, rows: Ints) -> list[tuple[str, Mask]]:
        """Which of the rows pass each filter that is set."""
        table = self._catalog.rows
        owner = table["conversation"][rows]
        found: list[tuple[str, Mask]] = []
        if query.conversations is not None:
            mask = self._catalog.searched(query.scope, query.conversations)
            found.append(("conversation", mask[owner]))
        if query.project is not None:
            mask = self._catalog.searched(query.scope, None, query.project)
            found.append(("project", mask[owner]))
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

    def _found(self, query: ItemQuery) -> tuple[Ints, Floats, Floats] | None:
        """The rows of the scope that hold a word of the query, their scores and relevance."""
        searched = self._catalog.searched(query.scope)
        if not searched.any():
            return None
        lists = postings(self._words, content_words(query.text))
        if not lists:
            return None
        return three_levels(self._catalog, searched, lists, self.ranking)


def three_levels(
    catalog: Catalog, searched: Mask, lists: Sequence[Postings], ranking: SessionRanking
) -> tuple[Ints, Floats, Floats] | None:
    """Rank all items of the searched conversations that hold a word, see `SessionRanking`."""
    table, known = catalog.rows, catalog.conversations
    owners = table["conversation"]
    sessions = int(searched.sum())
    size, total = int(known["items"][searched].sum()), float(known["words"][searched].sum())
    mean = total / size if size else 1.0
    k1, b = ranking.saturation(mean)
    own, share = np.zeros(catalog.count + 1), np.zeros(catalog.count + 1)
    session = np.zeros(len(searched))
    whole = 0.0
    for each in lists:
        rows, tf = each.rows, each.frequencies
        inside = searched[owners[rows]]
        rows, tf = rows[inside], tf[inside]
        idf = np.log(1 + (size - len(rows) + 0.5) / (len(rows) + 0.5))
        whole += idf
        norm = k1 * (1 - b + b * table["words"][rows] / mean)
        own[rows] += each.times * idf * tf * (k1 + 1) / (tf + norm)
        share[rows] += idf
        held = np.bincount(owners[rows], tf, len(searched))
        many = np.count_nonzero(held)
        idf = np.log(1 + (sessions - many + 0.5) / (many + 0.5))
        norm = k1 * (1 - b + b * known["words"] * sessions / total)
        session += each.times * idf * held * (k1 + 1) / (held + norm)
    rows = np.flatnonzero(own)
    if not len(rows):
        return None
    score = own[rows].copy()
    owner = owners[rows]
    if ranking.neighbours:
        means = known["words"] / np.maximum(known["items"], 1)
        f = (ranking.neighbours * ranking.reach / (ranking.reach + means))[owner]
        before, after = table["before"], table["after"]
        one, two = before[rows], after[rows]
        score += f * own[one] + 0.8 * f * own[two]
        far = np.where(one < 0, -1, before[one]), np.where(two < 0, -1, after[two])
        score += f**2 * own[far[0]] + (0.8 * f) ** 2 * own[far[1]]
    if ranking.prior:
        values = session[searched]
        low, high = float(values.min()), float(values.max())
        scaled = (session - low) / (high - low) if high > low else np.zeros(len(session))
        fade = ranking.tau / (ranking.tau + table["words"][rows])
        score += ranking.prior * own.max() * scaled[owner] * fade
    score *= catalog.factors("role", ranking.roles, rows)
    score *= catalog.factors("type", ranking.types, rows)
    return rows, score, np.minimum(1.0, share[rows] / whole)


def _words(text: str) -> float:
    """About how many words: scripts without spaces have one in every six characters, or more."""
    return float(max(len(text.split()), len(text) // 6, 1))
