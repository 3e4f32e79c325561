"""The folder of a saved index, beside its log: one saves at a time, and an erasure removes it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsheaf.stack import ProviderUnavailable

__all__ = ["IndexFiles"]


class IndexFiles:
    """Where the index of a log is saved.

    Args:
        log: The file of the log.
    """

    def __init__(self, log: Path) -> None:
        self.folder = log.with_name(f"{log.name}.index")
        self._lock = log.with_name(f"{log.name}.index.lock")

    @contextmanager
    def locked(self, *, writing: bool) -> Iterator[None]:
        """Hold the folder: many may read, or one may write."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
            yield
        finally:
            os.close(handle)

    def drop(self) -> None:
        """Remove what is saved; those who have it mapped go on with it.

        Raises:
            ProviderUnavailable: It cannot be removed.
        """
        if not os.path.lexists(self.folder):
            return
        import shutil  # with all its archives; a search removes nothing

        try:
            with self.locked(writing=True):
                if self.folder.is_dir():
                    shutil.rmtree(self.folder)
                else:
                    self.folder.unlink(missing_ok=True)
        except OSError as error:
            raise ProviderUnavailable(
                f"{self.folder} may hold erased text and cannot be removed; delete it"
            ) from error
