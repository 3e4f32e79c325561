"""The file of a diskcache store: put in place whole and private, and opened for reading."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import uuid
from pathlib import Path
from urllib.parse import quote

from .disk import DBNAME, SETTINGS, SharedCache
from .folders import private_folder

__all__ = ["make_cache", "open_reader"]


def make_cache(folder: Path, timeout: float, **settings: int | str) -> None:
    """Make a folder with an empty cache in it, for their owner only; one that is there stays.

    The modes do not depend on the umask. A complete database is put in place at once, by one
    process: nobody ever meets half of one.

    Args:
        folder: The folder.
        timeout: Seconds to wait for a lock.
        settings: What the database says of itself, beside `SETTINGS`.
    """
    if _is_there(folder):
        return
    private_folder(folder)
    directory = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        if not _is_there(folder):
            _build(folder, timeout, settings)
    finally:
        os.close(directory)


def open_reader(folder: Path, timeout: float, options: str = "mode=ro") -> sqlite3.Connection:
    """A connection that reads a cache's database, and is proven to; any thread may use it.

    Args:
        folder: The cache's folder.
        timeout: Seconds to wait for another process's lock.
        options: Of SQLite's address.
    """
    address = f"file:{quote(str((folder / DBNAME).absolute()))}?{options}"
    connection = sqlite3.connect(
        address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _is_there(folder: Path) -> bool:
    path: Path = folder / DBNAME
    return path.exists() and path.stat().st_size > 0


def _build(folder: Path, timeout: float, settings: dict[str, int | str]) -> None:
    draft = folder / f".{uuid.uuid4().hex}"
    draft.mkdir(mode=0o700)
    handle = os.open(draft / DBNAME, os.O_CREAT | os.O_RDWR, 0o600)
    os.fchmod(handle, stat.S_IRUSR | stat.S_IWUSR)
    os.close(handle)
    cache = SharedCache(str(draft), timeout, **SETTINGS, **settings)
    cache.truncate()
    cache.close()
    os.rename(draft / DBNAME, folder / DBNAME)
    shutil.rmtree(draft, ignore_errors=True)
