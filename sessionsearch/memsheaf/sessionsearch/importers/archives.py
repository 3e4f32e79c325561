"""Zip archives of exports: their members as sources, read in place, nothing is unpacked."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import BinaryIO

from .source import Problem, Source

__all__ = ["flaws", "is_archive", "members"]

_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_SMALL = 64 << 20  # bytes; below this nothing can be a bomb
_MEMBERS = 500  # each is opened on its own, through the list of all
_RATIO = 200  # text of chats shrinks to a fifth or a twentieth
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)


def is_archive(source: Source) -> bool:
    """Whether the content is a zip archive."""
    return source.member is None and source.head.startswith(_SIGNATURES)


def members(source: Source, ending: str = ".json") -> Iterator[Source | Problem]:
    """The members of a zip archive as sources, in the order of their names.

    A member that says that it is much larger than its packed bytes is a problem, and is not
    read. Names only name: no path is made from them.

    All members together may not be much larger than the archive either.

    Args:
        source: The archive.
        ending: Only members whose name ends so, in capitals or not.
    """
    try:
        with closing(source.open()) as file, zipfile.ZipFile(file) as archive:
            listed = archive.infolist()
            found = [info for info in listed if info.filename.lower().endswith(ending)]
    except (*_DAMAGE, OSError) as error:
        yield Problem(None, f"the archive cannot be read: {type(error).__name__}")
        return
    if len(found) > _MEMBERS:
        yield Problem(None, f"the archive has more than {_MEMBERS} documents; unpack it")
        return
    unpacked, most = 0, max(_SMALL, _RATIO * source.size)
    for info in sorted(found, key=lambda info: info.filename):
        alone = max(_SMALL, _RATIO * info.compress_size)
        if info.file_size > min(alone, most - unpacked):
            yield Problem(None, "a member of the archive would grow beyond all measure")
        elif info.flag_bits & 1:
            yield Problem(None, "a member of the archive is encrypted")
        else:
            unpacked += info.file_size
            yield Source(
                source.path,
                member=info.filename,
                opener=partial(_open, source, info.filename),
                size=info.file_size,
            )


def flaws(source: Source) -> tuple[str, ...]:
    """Why members of an archive are not read, each reason once; none for other files."""
    found = members(source) if is_archive(source) else ()
    return tuple(dict.fromkeys(each.reason for each in found if isinstance(each, Problem)))


def _open(source: Source, name: str) -> BinaryIO:
    file = source.open()
    try:
        archive = zipfile.ZipFile(file)
        return io.BufferedReader(_Member(file, archive, archive.open(name)), 1 << 16)
    except _DAMAGE as error:
        file.close()
        raise OSError("the archive is damaged") from error
    except BaseException:
        file.close()
        raise


class _Member(io.RawIOBase):
    """A member that is being read; what is wrong with it is an `OSError`."""

    def __init__(self, file: BinaryIO, archive: zipfile.ZipFile, member: object) -> None:
        super().__init__()
        self._file, self._archive = file, archive
        self._member: zipfile.ZipExtFile = member  # type: ignore[assignment]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._member.seek(offset, whence)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            chunk = self._member.read(len(buffer))
        except _DAMAGE as error:
            raise OSError("the archive is damaged") from error
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        if not self.closed:
            self._member.close()
            self._archive.close()
            self._file.close()
        super().close()
