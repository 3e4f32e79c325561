"""Search by text: which rows match, how well, in what order."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from memsheaf.stack import Filter, Hit, MemoryRecord, Scope, StoreCorrupt
from memsheaf.stack.filters import refusal

from .sqlite_query import owned_by, query_units
from .sqlite_rows import COLUMNS, FILTERED, filter_values, read_record

__all__ = ["TextSearch"]

_MARGIN = 50  # rows beyond the limit that are asked for at first, as some may be refused
_FEW = 1_000  # holders of a term whose rows are kept
_REMEMBERED = 10_000  # terms

_RANK = "bm25(words, 1.0, 1.0, 0.5, 0.0)"  # content, tags, terms; the scope only selects
_SEARCH = f"""
    SELECT rowid, {_RANK} AS worse FROM words WHERE words MATCH :match
    ORDER BY worse, rowid DESC LIMIT :asked
"""
_SEARCH_FILTERED = f"""
    SELECT words.rowid, {_RANK} AS worse FROM words JOIN records ON records.row = words.rowid
    WHERE words MATCH :match AND {FILTERED}
    ORDER BY worse, words.rowid DESC LIMIT :asked
"""
_HOLDERS = "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?"
_COUNT = "SELECT count(*) FROM words WHERE words MATCH ?"
_HOLDERS_AMONG = """
    SELECT rowid FROM words
    WHERE words MATCH ? AND rowid IN (SELECT value FROM json_each(?))
"""
_BY_ROW = f"SELECT {COLUMNS} FROM records WHERE row = ?"


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of the query in the scope that is searched."""

    unit: str
    match: str
    frequency: int
    holders: frozenset[int] | None  # None where there are many

    def idf(self, size: int) -> float:
        """ln(1 + (N - df + 1/2) / (df + 1/2)), as in BM25 (Robertson and Zaragoza 2009)."""
        return math.log(1 + (size - self.frequency + 0.5) / (self.frequency + 0.5))


@dataclass(frozen=True, slots=True)
class _Found:
    row: int
    score: float
    record: MemoryRecord


class TextSearch:
    """Search in one file; remembers which words more than half of its records hold."""

    def __init__(self) -> None:
        self._common: dict[str, tuple[int, bool]] = {}

    def best(
        self,
        connection: sqlite3.Connection,
        text: str,
        scope: Scope,
        limit: int,
        filters: Filter | None,
    ) -> list[Hit]:
        """Hits by BM25 and the share of the query's idf that each matches.

        bm25() counts the holders of every term in the whole file, which is what a search costs. So
        it is not asked for terms that cannot order the records: those that none or all of the
        scope hold, and those of more than half of the file, which it gives a weight of about 0.
        Records that hold nothing else follow the others.
        """
        terms = [_term(connection, unit, scope) for unit in query_units(text)]
        held = [term for term in terms if term.frequency]
        if not held:
            return []
        size = _size(connection, scope)
        telling = [
            term
            for term in held
            if term.frequency < size and not self._is_common(connection, term, size)
        ]
        found: list[_Found] = []
        for chosen in (telling, held) if len(telling) < len(held) else (held,):
            if chosen and len(found) < limit:
                match = owned_by(scope, " OR ".join(term.unit for term in chosen))
                found += _best(connection, match, scope, limit, filters, found)
        shares = _shares(connection, terms, size, [one.row for one in found])
        return [Hit(f.record, f.score, s) for f, s in zip(found, shares, strict=True)]

    def _is_common(self, connection: sqlite3.Connection, term: _Term, size: int) -> bool:
        """Whether more than half of the file holds a term; asked where the scope hints at it."""
        if 4 * term.frequency < size:
            return False
        total = connection.execute("SELECT max(row) FROM records").fetchone()[0]
        counted_at, common = self._common.get(term.unit, (0, False))
        if abs(total - counted_at) * 4 > total:  # the file has changed too much since
            common = 2 * connection.execute(_COUNT, (term.unit,)).fetchone()[0] > total
            if len(self._common) >= _REMEMBERED:
                self._common.clear()
            self._common[term.unit] = total, common
        return bool(common)


def _best(
    connection: sqlite3.Connection,
    match: str,
    scope: Scope,
    limit: int,
    filters: Filter | None,
    before: Sequence[_Found],
) -> list[_Found]:
    """The best that may be shown, to follow those before, up to the limit together."""
    statement = _SEARCH if filters is None else _SEARCH_FILTERED
    seen = {one.row for one in before}
    ceiling = math.nextafter(before[-1].score, -math.inf) if before else math.inf
    wanted = limit - len(before)
    asked = limit + _MARGIN
    while True:
        values = filter_values(filters) | {"match": match, "asked": asked}
        ranked = connection.execute(statement, values).fetchall()
        moment = datetime.now(UTC)
        read = (
            _Found(row, min(-worse, ceiling), _by_row(connection, row))
            for row, worse in ranked
            if row not in seen
        )
        shown = (one for one in read if refusal(one.record, scope, filters, moment) is None)
        found = list(islice(shown, wanted))
        if len(found) == wanted or len(ranked) < asked:
            return found
        asked *= 8


def _term(connection: sqlite3.Connection, unit: str, scope: Scope) -> _Term:
    match = owned_by(scope, unit)
    rows = [row for (row,) in connection.execute(_HOLDERS, (match, _FEW))]
    if len(rows) < _FEW:
        return _Term(unit, match, len(rows), frozenset(rows))
    return _Term(unit, match, connection.execute(_COUNT, (match,)).fetchone()[0], None)


def _shares(
    connection: sqlite3.Connection, terms: Sequence[_Term], size: int, rows: Sequence[int]
) -> list[float]:
    """For each row the share of the query's idf that it matches, by the scope's statistics."""
    wanted = json.dumps(rows)
    matched = dict.fromkeys(rows, 0.0)
    whole = 0.0
    for term in terms:
        idf = term.idf(size)
        whole += idf
        holders = term.holders
        if holders is None:
            among = connection.execute(_HOLDERS_AMONG, (term.match, wanted))
            holders = frozenset(row for (row,) in among)
        for row in holders & matched.keys():
            matched[row] += idf
    return [min(1.0, matched[row] / whole) for row in rows]


def _size(connection: sqlite3.Connection, scope: Scope) -> int:
    """How many records the scope holds."""
    if scope.is_everyone:
        found = connection.execute("SELECT count(*) FROM words_docsize").fetchone()
    else:
        found = connection.execute(_COUNT, (owned_by(scope, ""),)).fetchone()
    return int(found[0])


def _by_row(connection: sqlite3.Connection, row: int) -> MemoryRecord:
    found = connection.execute(_BY_ROW, (row,)).fetchone()
    if found is None:
        raise StoreCorrupt("the text index does not fit the records; restore a backup")
    return read_record(found)
