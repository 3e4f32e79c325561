"""What was forgotten does not come back with items that were handed over before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .applying import one_line
from .codec import QueuedRow, Tombstone
from .operations import Add, Operation, Rejection, Supersede

__all__ = ["sift"]


def sift(
    operations: Sequence[Operation],
    queued: Sequence[QueuedRow],
    tombstones: Sequence[Tombstone],
    statement: Callable[[str], str],
) -> tuple[list[Operation], list[Rejection]]:
    """Leave out statements that were forgotten after their sources were handed over.

    Args:
        operations: What a batch brought.
        queued: The items of the batch that still wait.
        tombstones: What was forgotten, and when.
        statement: The keyed hash of what a line says, as tombstones hold it.

    Returns:
        The operations that are allowed, and the rejections of the others.
    """
    until = {each.statement: each.until for each in tombstones}
    taken = {each.item.id: each.taken_at for each in queued}
    allowed: list[Operation] = []
    rejected: list[Rejection] = []
    for operation in operations:
        forgotten = None
        if until and isinstance(operation, Add | Supersede) and isinstance(operation.text, str):
            forgotten = until.get(statement(one_line(operation.text)))
        moments = [] if forgotten is None else [taken.get(s, 0.0) for s in operation.sources]
        if forgotten is not None and max(moments, default=0.0) <= forgotten:
            rejected.append(Rejection(operation, "the user had it forgotten"))
        else:
            allowed.append(operation)
    return allowed, rejected
