"""What the default index knows of items and conversations beside their words: arrays by number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memsheaf.stack import Scope

from .items import Conversation, Item

__all__ = ["Catalog"]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_ROW = np.dtype(
    [
        ("conversation", "<i4"),
        ("seq", "<i4"),
        ("created", "<i8"),
        ("same_text", "<u8"),
        ("words", "<f4"),
        ("type", "<i4"),
        ("role", "<i4"),
        ("before", "<i4"),
        ("after", "<i4"),
        ("alive", "?"),
    ]
)
_CONVERSATION = np.dtype(
    [
        ("user", "<i4"),
        ("agent", "<i4"),
        ("session", "<i4"),
        ("namespace", "<i4"),
        ("project", "<i4"),
        ("hidden", "?"),
        ("items", "<i4"),
        ("words", "<f8"),
        ("last", "<i4"),  # its latest row that lives
        ("top", "<i4"),  # its highest number that was ever seen
    ]
)
_NONE = -1


class Catalog:
    """Rows in order of insertion, never moved, and conversations by their number in the log.

    Attributes:
        count: How many rows there are, those that were removed included.
    """

    def __init__(self) -> None:
        self.count = 0
        self._rows: Array = np.zeros(256, _ROW)
        self._conversations: Array = np.zeros(64, _CONVERSATION)
        self._conversations["last"] = self._conversations["top"] = _NONE
        self._names = [""]
        self._codes = {"": 0}

    @property
    def rows(self) -> Array:
        """The rows; `before` and `after` are the neighbours' rows, -1 where there is none."""
        return self._rows[: self.count]

    @property
    def conversations(self) -> Array:
        """The conversations by number; unknown numbers have no items."""
        return self._conversations

    def describe(self, row: int, conversation: Conversation, hidden: bool) -> None:
        """Note whose a conversation is, and its project."""
        if row >= len(self._conversations):
            more = np.zeros(max(row + 1, 2 * len(self._conversations)), _CONVERSATION)
            more["last"] = more["top"] = _NONE
            more[: len(self._conversations)] = self._conversations
            self._conversations = more
        entry = self._conversations[row]
        for name, value in zip(
            ("user", "agent", "session", "namespace"), conversation.scope.key(), strict=True
        ):
            entry[name] = self._code(value)
        project = conversation.metadata.get("project")
        entry["project"] = self._code(project if isinstance(project, str) else None)
        entry["hidden"] = hidden

    def missing(self, row: int, items: Iterable[Item]) -> list[Item]:
        """Those of the items of a conversation that have no living row."""
        items = list(items)
        top = int(self._conversations[row]["top"])
        if not items or items[0].seq > top:
            return items
        known = self.places(row)
        return [item for item in items if item.seq not in known]

    def add(self, row: int, item: Item, words: float, created: int, same_text: int) -> int:
        """Add a row for an item and return its number."""
        if self.count == len(self._rows):
            more = np.zeros(2 * len(self._rows), _ROW)
            more[: self.count] = self._rows
            self._rows = more
        place = self.count
        entry = self._conversations[row]
        last = int(entry["last"])
        before, after = last, _NONE
        if last != _NONE and self._rows["seq"][last] > item.seq:  # it was restored
            rows = np.array(list(self.places(row).values()))
            later = self._rows["seq"][rows] > item.seq
            after = int(rows[later][self._rows["seq"][rows[later]].argmin()])
            before = int(self._rows["before"][after])
        self._rows[place] = (
            row, item.seq, created, same_text, words,
            self._code(item.type), self._code(item.role), before, after, True,
        )  # fmt: skip
        if before != _NONE:
            self._rows["after"][before] = place
        if after != _NONE:
            self._rows["before"][after] = place
        else:
            entry["last"] = place
        entry["items"] += 1
        entry["words"] += words
        entry["top"] = max(int(entry["top"]), item.seq)
        self.count += 1
        return place

    def remove(self, place: int) -> None:
        """Forget a row; its neighbours become neighbours of each other."""
        gone = self._rows[place]
        before, after = int(gone["before"]), int(gone["after"])
        entry = self._conversations[int(gone["conversation"])]
        if before != _NONE:
            self._rows["after"][before] = after
        if after != _NONE:
            self._rows["before"][after] = before
        else:
            entry["last"] = before
        entry["items"] -= 1
        entry["words"] -= gone["words"]
        gone["alive"], gone["same_text"] = False, 0
        gone["before"] = gone["after"] = _NONE

    def places(self, row: int) -> dict[int, int]:
        """The living rows of a conversation by the numbers of their items."""
        rows = self.rows
        found = np.flatnonzero((rows["conversation"] == row) & rows["alive"])
        return dict(zip(rows["seq"][found].tolist(), found.tolist(), strict=True))

    def searched(
        self, scope: Scope, chosen: frozenset[int] | None = None, project: str | None = None
    ) -> Mask:
        """Which conversations a query may see, by number."""
        known = self._conversations
        mask: Mask = ~known["hidden"] & (known["items"] > 0)
        if not scope.is_everyone:
            for name, value in zip(
                ("user", "agent", "session", "namespace"), scope.key(), strict=True
            ):
                if value is not None:
                    mask &= known[name] == self._codes.get(value, _NONE)
            if not scope.set_fields():
                mask[:] = False
        if chosen is not None:
            among = np.zeros(len(mask), bool)
            among[[row for row in chosen if row < len(mask)]] = True
            mask &= among
        if project is not None:
            below = f"{project.rstrip('/')}/"
            codes = [
                code
                for code in np.unique(known["project"]).tolist()
                if code and (self._names[code] == project or self._names[code].startswith(below))
            ]
            mask &= np.isin(known["project"], codes)
        return mask

    def codes(self, names: Iterable[str]) -> list[int]:
        """The codes of roles or types; none for names that no item has."""
        return [self._codes[name] for name in names if name in self._codes]

    def factors(self, column: str, factors: Mapping[str, float], rows: Ints) -> Array | float:
        """The factor of each row by its role or type."""
        if not any(name in self._codes for name in factors):
            return 1.0
        table = np.ones(len(self._names))
        for name, factor in factors.items():
            if name in self._codes:
                table[self._codes[name]] = factor
        result: Array = table[self.rows[column][rows]]
        return result

    def _code(self, name: str | None) -> int:
        code = self._codes.get(name or "")
        if code is None:
            code = self._codes[name or ""] = len(self._names)
            self._names.append(name or "")
        return code

    def save(self, path: Path) -> None:
        """Write it into a folder that exists."""
        np.save(path / "rows.npy", self.rows)
        np.save(path / "conversations.npy", self._conversations)
        (path / "names.json").write_text(json.dumps(self._names), "utf-8")

    @classmethod
    def load(cls, path: Path) -> Catalog:
        """Map what `save` wrote.

        Raises:
            ValueError: It is not that.
        """
        made = cls()
        rows = np.load(path / "rows.npy", mmap_mode="c")
        conversations = np.load(path / "conversations.npy", mmap_mode="c")
        names = json.loads((path / "names.json").read_text("utf-8"))
        if rows.dtype != _ROW or conversations.dtype != _CONVERSATION or names[:1] != [""]:
            raise ValueError("not a catalog of this format")
        made._rows, made._conversations = rows.view(np.ndarray), conversations.view(np.ndarray)
        made.count = len(rows)
        made._names = names
        made._codes = {name: code for code, name in enumerate(names)}
        return made
