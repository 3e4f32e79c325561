"""What the default index knows of items and conversations beside their words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from memsheaf.stack import Scope

from .columns import Columns, load_columns, save_columns
from .items import Conversation, Item

__all__ = ["Catalog", "Searched"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_ROWS = {
    "conversation": ("<i4", 0),
    "seq": ("<i4", 0),
    "created": ("<i8", 0),
    "same_text": ("<u8", 0),
    "words": ("<f4", 0),
    "kind": ("<i4", 0),
    "before": ("<i4", -1),
    "after": ("<i4", -1),
    "position": ("<i8", 0),
    "alive": ("|b1", 0),
}
_CONVERSATIONS = {
    "user": ("<i4", 0),
    "agent": ("<i4", 0),
    "session": ("<i4", 0),
    "namespace": ("<i4", 0),
    "project": ("<i4", 0),
    "hidden": ("|b1", 0),
    "items": ("<i4", 0),
    "words": ("<f8", 0),
    "last": ("<i4", -1),  # its latest row that lives
    "top": ("<i4", -1),  # its highest number that was ever seen
}
_SCOPE = ("user", "agent", "session", "namespace")
_KEPT = 16  # scopes whose conversations are remembered


class Searched(NamedTuple):
    """The conversations that a scope may see, and their statistics.

    Attributes:
        mask: Which conversations, by number.
        whole: Whether these are all that hold anything.
        conversations: How many.
        items: How many items they hold.
        words: How many words these have.
    """

    mask: Mask
    whole: bool
    conversations: int
    items: int
    words: float


class Catalog:
    """Rows in order of insertion, never moved; conversations by their number in the log.

    Attributes:
        rows: The columns of the items; `before` and `after` are the neighbours' rows, or -1.
        conversations: The columns of the conversations; unknown numbers have no items.
    """

    def __init__(self) -> None:
        self.rows = Columns(_ROWS)
        self.conversations = Columns(_CONVERSATIONS)
        self._names = [""]
        self._codes = {"": 0}
        self._kinds: dict[tuple[str, str], int] = {}
        self._scratch = np.zeros(0)
        self._seen: dict[object, Searched] = {}

    def describe(self, row: int, conversation: Conversation, hidden: bool) -> None:
        """Note whose a conversation is, and its project."""
        self._seen.clear()
        self.conversations.grow(row + 1)
        names = dict(zip(_SCOPE, conversation.scope.key(), strict=True))
        project = conversation.metadata.get("project")
        names["project"] = project if isinstance(project, str) else None
        codes = {name: self._code(value) for name, value in names.items()}
        self.conversations.set(row, codes | {"hidden": hidden})

    def missing(self, row: int, items: Iterable[Item]) -> list[Item]:
        """Those of the items of a conversation that have no living row."""
        items = list(items)
        if not items or items[0].seq > self.conversations["top"][row]:
            return items
        known = self.places(row)
        return [item for item in items if item.seq not in known]

    def add(self, row: int, item: Item, position: int, created: int, same_text: int) -> None:
        """Add a row for an item of a conversation; `measure` tells its words later."""
        self._seen.clear()
        place = self.rows.size
        self.rows.grow(place + 1)
        known, seq = self.conversations, self.rows["seq"]
        before, after = int(known["last"][row]), -1
        if before >= 0 and seq[before] > item.seq:  # it was restored
            others = np.array(list(self.places(row).values()))
            later = others[seq[others] > item.seq]
            after = int(later[seq[later].argmin()])
            before = int(self.rows["before"][after])
        values = {
            "conversation": row, "seq": item.seq, "created": created, "same_text": same_text,
            "kind": self._kind(item.type, item.role or ""),
            "before": before, "after": after, "position": position, "alive": True,
        }  # fmt: skip
        self.rows.set(place, values)
        self._link(row, before, place)
        self._link(row, place, after)
        known["items"][row] += 1
        known["top"][row] = max(int(known["top"][row]), item.seq)

    def measure(self, first: int, words: Floats) -> None:
        """Note how many words the rows from a number on have."""
        self.rows["words"][first:] = words
        np.add.at(self.conversations["words"], self.rows["conversation"][first:], words)

    def remove(self, place: int) -> None:
        """Forget a row; its neighbours become neighbours of each other."""
        self._seen.clear()
        row = int(self.rows["conversation"][place])
        self._link(row, int(self.rows["before"][place]), int(self.rows["after"][place]))
        self.conversations["items"][row] -= 1
        self.conversations["words"][row] -= self.rows["words"][place]
        gone = {"alive": False, "same_text": 0, "before": -1, "after": -1, "words": 0}
        self.rows.set(place, gone)

    def places(self, row: int) -> dict[int, int]:
        """The living rows of a conversation by the numbers of their items."""
        found = np.flatnonzero((self.rows["conversation"] == row) & self.rows["alive"])
        return dict(zip(self.rows["seq"][found].tolist(), found.tolist(), strict=True))

    def searched(self, scope: Scope) -> Searched:
        """The conversations that a scope may see."""
        key = (scope.is_everyone, scope.key())
        found = self._seen.get(key)
        if found is None:
            known = self.conversations
            held: Mask = ~known["hidden"] & (known["items"] > 0)
            mask = held.copy()
            if not scope.is_everyone:
                for name, value in zip(_SCOPE, scope.key(), strict=True):
                    if value is not None:
                        mask &= known[name] == self._codes.get(value, -1)
                if not scope.set_fields():
                    mask[:] = False
            found = Searched(
                mask,
                bool((mask == held).all()),
                int(np.count_nonzero(mask)),
                int(known["items"][mask].sum()),
                float(known["words"][mask].sum()),
            )
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            self._seen[key] = found
        return found

    def chosen(self, numbers: Iterable[int]) -> Mask:
        """Which conversations have one of the numbers."""
        mask = np.zeros(self.conversations.size, bool)
        mask[[number for number in numbers if number < len(mask)]] = True
        return mask

    def in_project(self, project: str) -> Mask:
        """Which conversations are of a project, or of a folder below it."""
        below = f"{project.rstrip('/')}/"
        column = self.conversations["project"]
        codes = [
            code
            for code in np.unique(column).tolist()
            if code and (self._names[code] == project or self._names[code].startswith(below))
        ]
        return np.isin(column, codes)

    def of_kind(self, rows: Ints, column: Literal["type", "role"], names: Collection[str]) -> Mask:
        """Which rows have one of the types or roles."""
        place = ("type", "role").index(column)
        wanted = np.array([kind[place] in names for kind in self._kinds], bool)
        mask: Mask = wanted.take(self.rows["kind"].take(rows))
        return mask

    def factors(self, roles: Mapping[str, float], types: Mapping[str, float]) -> Floats | None:
        """The factor of each kind by its role and type; None where all are 1."""
        table = [roles.get(role, 1.0) * types.get(kind, 1.0) for kind, role in self._kinds]
        return None if all(factor == 1.0 for factor in table) else np.array(table)

    def scratch(self) -> Floats:
        """Zeros, more than there are rows; leave them so."""
        if len(self._scratch) <= self.rows.size:
            self._scratch = np.zeros(self.rows.size + self.rows.size // 8 + 1024)
        return self._scratch

    def save(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write it into a file, with a JSON object of the caller's."""
        self._forget_unused()
        columns = {"rows": self.rows, "conversations": self.conversations}
        save_columns(path, columns, {**about, "names": self._names, "kinds": list(self._kinds)})

    @classmethod
    def load(cls, path: Path) -> tuple[Catalog, dict[str, Any]]:
        """Map what `save` wrote, and the caller's object.

        Raises:
            ValueError: It is not that.
            OSError: It cannot be read.
        """
        made = cls()
        about = load_columns(path, {"rows": made.rows, "conversations": made.conversations})
        made._names = about.pop("names")
        made._kinds = {(kind, role): n for n, (kind, role) in enumerate(about.pop("kinds"))}
        made._codes = {name: code for code, name in enumerate(made._names)}
        return made, about

    def _forget_unused(self) -> None:
        """Drop names that nothing has any more: nothing of what was erased may stay in a file."""
        columns = [self.conversations[name] for name in (*_SCOPE, "project")]
        codes = np.unique(np.concatenate([[0], *columns]))
        if len(codes) < len(self._names):
            for column in columns:
                column[:] = codes.searchsorted(column)
            self._names = [self._names[code] for code in codes.tolist()]
            self._codes = {name: code for code, name in enumerate(self._names)}
        alive, kind = self.rows["alive"], self.rows["kind"]
        kinds = np.unique(kind[alive])
        if len(kinds) < len(self._kinds):
            kind[:] = np.where(alive, kinds.searchsorted(kind), 0)
            names = list(self._kinds)
            self._kinds = {names[number]: n for n, number in enumerate(kinds.tolist())}
            self._seen.clear()  # factors follow the kinds

    def _link(self, row: int, before: int, after: int) -> None:
        if before >= 0:
            self.rows["after"][before] = after
        if after >= 0:
            self.rows["before"][after] = before
        else:
            self.conversations["last"][row] = before

    def _kind(self, kind: str, role: str) -> int:
        return self._kinds.setdefault((kind, role), len(self._kinds))

    def _code(self, name: str | None) -> int:
        code = self._codes.get(name or "")
        if code is None:
            code = self._codes[name or ""] = len(self._names)
            self._names.append(name or "")
        return code
