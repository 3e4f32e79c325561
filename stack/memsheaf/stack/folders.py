"""Folders of stores: for their owner only."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import ProviderUnavailable

__all__ = ["private_folder"]


def private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter, and its parents; close one that is open.

    Args:
        folder: The folder; its mode does not depend on the umask.

    Raises:
        ProviderUnavailable: It is a file, or a place that all users share, as /tmp is.
        OSError: It cannot be made.
    """
    made = not folder.exists()
    if not made and not folder.is_dir():
        raise ProviderUnavailable(
            f"a file stands where the folder {folder} should be; name another"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & stat.S_ISVTX:
        raise ProviderUnavailable(f"{folder} is shared by all users; name a folder of its own")
    if made or (mode & 0o077 and os.access(folder, os.W_OK)):
        folder.chmod(stat.S_IRWXU)
