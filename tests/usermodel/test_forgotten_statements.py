"""What was forgotten is not derived from older items; what is said later is learned again."""

from __future__ import annotations

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import Add, LineKind
from memsheaf.usermodel.codec import QueuedRow, Tombstone
from memsheaf.usermodel.sifting import sift


def queued(seq: int, taken_at: float) -> QueuedRow:
    return QueuedRow(Item("c", seq, "message", "x", "user", ItemOrigin.USER), taken_at)


def add(text: str, *sources: str) -> Add:
    return Add(LineKind.FACT, text, 0.9, sources)


def test_only_what_was_forgotten_after_all_its_sources_is_left_out() -> None:
    old, new = add("Plays the cello", "c:0"), add("Plays the cello", "c:0", "c:1")
    other, unknown = add("Loves tea", "c:0"), add("Plays the cello", "gone:7")
    operations = [old, new, other, unknown]
    items = [queued(0, 10.0), queued(1, 30.0)]
    allowed, rejected = sift(operations, items, [Tombstone("PLAYS THE CELLO", 20.0)], str.upper)
    assert allowed == [new, other]
    assert [each.operation for each in rejected] == [old, unknown]
    assert {each.reason for each in rejected} == {"the user had it forgotten"}


def test_without_tombstones_everything_is_allowed() -> None:
    operations = [add("Plays the cello", "c:0")]
    assert sift(operations, [queued(0, 1.0)], [], str.upper) == (operations, [])
