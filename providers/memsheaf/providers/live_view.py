"""The view of a local store, which follows its log and is saved when the store is closed."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from memsheaf.stack import ClosedError

from .local_view import TextSettings, View, drop_snapshot
from .memory_log import MemoryLog
from .oplog import DiskLog, Log

__all__ = ["LiveView"]

_BEHIND = 256  # writes that wait for the index at the most
_WORTH_SAVING = 2_000


class LiveView:
    """A store's log, and what is derived from it, brought up to date when it is asked for.

    Attributes:
        log: The log.
        lock: Held by whoever needs the view to stay as it is.

    Args:
        folder: The store's folder; None is in memory only.
        text: How text is indexed.
        timeout: Seconds to wait for another process that writes.
    """

    def __init__(self, folder: Path | None, text: TextSettings, timeout: float) -> None:
        self._folder, self._text = folder, text
        self.log: Log = MemoryLog() if folder is None else DiskLog(folder, timeout)
        self.lock = threading.RLock()
        self._view: View | None = None
        self._behind = 0
        self._unerased = False

    def current(self) -> View:
        """The view, moved on to the log's newest row."""
        last = self.log.last()
        view = self._view
        if view is not None and view.sequence >= last:
            return view
        with self.lock:
            if self._view is None:
                self._view = self._restored(last)
            view = self._view
            try:
                view.apply(self.log.tail(view.sequence))
            except BaseException:
                self._view = None  # it may hold half of the rows
                raise
            self._behind = 0
            return view

    def wrote(self, count: int, *, erased: bool) -> None:
        """After a commit: overwrite deleted text, and let the index not fall far behind."""
        self._unerased = (erased or self._unerased) and not self.log.erase()
        self._behind += count
        if self._behind >= _BEHIND:
            with suppress(ClosedError):  # what was written is in the log
                self.current()

    def drop_snapshot(self) -> None:
        """Delete what was saved, before a text that is in it goes."""
        if self._folder is not None:
            drop_snapshot(self._folder)

    def close(self) -> None:
        """Overwrite what was deleted, save the view, let go of the files."""
        with self.lock:
            try:
                if self._folder is not None:
                    self._save(self._folder)
            finally:
                self.log.close()

    def quiesce(self) -> None:
        """Before a fork: take the locks and let go of the files."""
        self.lock.acquire()
        self.log.quiesce()

    def resume(self, *, child: bool) -> None:
        """After a fork; a child derives its view anew."""
        self.log.resume()
        if child:
            self._view = None  # another thread may have been inside the index
        self.lock.release()

    def _restored(self, last: int) -> View:
        kept = None
        if self._folder is not None:
            kept = View.restore(self._folder, self.log, last, self._text)
        return kept or View(self.log, self._text)

    def _save(self, folder: Path) -> None:
        if self._view is None or not os.access(folder, os.W_OK):
            return
        view = self.current()
        if len(view.index) < _WORTH_SAVING or view.saved == view.sequence:
            return
        with self.log.writing():  # nobody forgets while the snapshot is written
            view.apply(self.log.tail(view.sequence))
            view.save(folder, self.log.identity)
