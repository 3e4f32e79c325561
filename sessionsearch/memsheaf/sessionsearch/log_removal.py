"""What leaves a conversation log: hidden until it is restored, or overwritten for good."""

from __future__ import annotations

import sqlite3

from .log_file import LogFile
from .log_rows import Held
from .log_schema import ADD_CHANGE, ERASE_ITEMS, ERASE_NOTE, REFRESH, drop_words

__all__ = ["finish_erasures", "hide", "overwrite"]


def hide(connection: sqlite3.Connection, held: Held, *, seq: int | None, hidden: bool) -> bool:
    """Hide a conversation or one item of it, or show it again; False where it is so already."""
    if seq is None:
        connection.execute("UPDATE conversations SET deleted = ? WHERE row = ?", (hidden, held.row))
        changed = held.deleted != hidden
    else:
        found = connection.execute(
            "UPDATE items SET deleted = ? WHERE conversation = ? AND seq = ? "
            "AND NOT erased AND deleted <> ?",
            (hidden, held.row, seq, hidden),
        )
        changed = found.rowcount > 0
        connection.execute(REFRESH, {"row": held.row})
    if changed:
        _tell(connection, held, seq)
    return changed


def overwrite(connection: sqlite3.Connection, held: Held, *, seq: int | None) -> bool:
    """Overwrite the text of a conversation or of one item; False where there is no such item."""
    changed = connection.execute(ERASE_ITEMS, {"row": held.row, "seq": seq}).rowcount
    if seq is None:
        connection.execute(ERASE_NOTE, {"note": held.note})
        connection.execute(
            "UPDATE conversations SET deleted = 1, erased = 1 WHERE row = ?", (held.row,)
        )
    elif not changed:
        return False
    connection.execute(REFRESH, {"row": held.row})
    _tell(connection, held, seq, erased=True)
    drop_words(connection)
    connection.execute("INSERT INTO erasures DEFAULT VALUES")
    return True


def finish_erasures(file: LogFile, seconds: float) -> bool:
    """Empty the write-ahead log after erasures; False where a reader holds it so long."""
    with file.reading() as connection:
        done = connection.execute("SELECT max(number) FROM erasures").fetchone()[0]
    if done is None:
        return True
    if not file.empty_log(seconds):
        return False
    with file.writing() as connection:
        connection.execute("DELETE FROM erasures WHERE number <= ?", (done,))
    return True


def _tell(
    connection: sqlite3.Connection, held: Held, seq: int | None, *, erased: bool = False
) -> None:
    """Tell the indexes that items changed."""
    last = held.conversation.last_seq
    span = (0, -1 if last is None else last) if seq is None else (seq, seq)
    connection.execute(ADD_CHANGE, (held.row, *span, erased))
