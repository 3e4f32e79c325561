"""A source of an import: a file, or a member of an archive, read in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["HEAD", "Position", "Problem", "Record", "Source", "parse_json"]

HEAD = 64 * 1024
_PADDING = "\x00\ufeff"  # what a crash, or joined files, leave before a line
_CHUNK = 1024 * 1024
_LINES = 20  # of the head
_FENCES = ("```", "~~~")  # around samples in a page of Markdown
_FIRST = 32 * 1024 * 1024  # bytes of a line that is read to tell the format


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read; it is skipped, and the rest is read.

    Args:
        line: Its line, from 1; None where the source has no lines.
        reason: Why, without any of its text.
    """

    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """A line that holds a JSON object."""

    line: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two lines, and what the importer knows there.

    Args:
        offset: Bytes before it.
        line: Lines before it.
        state: What the importer keeps from line to line; a flat JSON object.
    """

    offset: int = 0
    line: int = 0
    state: dict[str, Any] = field(default_factory=dict)


class Source:
    """One file, or one member of an archive.

    Args:
        path: The file.
        member: The name inside the archive `path`.
        opener: Opens the bytes from their start; by default the file itself.
        size: Bytes, where `path` does not tell.
        start: Where reading begins; only for incremental importers.

    Attributes:
        state: What the importer keeps from line to line, scalars only; it comes back with
            `start` when a grown file is read on.
        done: The place up to which lines were handled completely.
    """

    def __init__(
        self,
        path: Path,
        *,
        member: str | None = None,
        opener: Callable[[], BinaryIO] | None = None,
        size: int | None = None,
        start: Position | None = None,
    ) -> None:
        self.path = path
        self.member = member
        self._opener = opener or (lambda: path.open("rb"))
        self.size = path.stat().st_size if size is None else size
        self.done = start or Position()
        self.state: dict[str, Any] = dict(self.done.state)

    @property
    def name(self) -> str:
        """The path, and the member behind `!`."""
        return f"{self.path}!{self.member}" if self.member else str(self.path)

    def open(self) -> BinaryIO:
        """The bytes, from their start; the caller closes."""
        return self._opener()

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB."""
        with closing(self.open()) as file:
            return file.read(HEAD)

    @cached_property
    def head_text(self) -> str:
        """The head as text, without a byte order mark; its last character may be cut."""
        return self.head.decode("utf-8", "replace").removeprefix("\ufeff")

    @cached_property
    def first_records(self) -> list[dict[str, Any]]:
        """The JSON objects on the first lines: some of the head, and at least one line."""
        if b"\n" in self.head or not self.head_text.lstrip().startswith("{"):
            texts = [text for text in self.head_text.split("\n", _LINES)[:_LINES] if text.strip()]
            if not _has_lines(texts):
                return []
            return [value for text in texts if (value := _object(text)) is not None]
        found = []
        with closing(self.again().records(_FIRST)) as records:
            for record, _ in zip(records, range(3), strict=False):
                if isinstance(record, Record):
                    found.append(record.value)
        return found

    def again(self) -> Source:
        """The same source, to be read once more from its start."""
        return Source(self.path, member=self.member, opener=self._opener, size=self.size)

    def lines(self, limit: int) -> Iterator[tuple[int, str] | Problem]:
        """Line number (from 1) and text of each complete line behind `done`.

        A last line without an end waits for the rest, unless it is a whole JSON value. A line
        above `limit` bytes is a problem. Bytes that are no text become U+FFFD.
        """
        offset, number = self.done.offset, self.done.line
        for raw, ended in _split(self, offset, limit):
            number += 1
            if raw is None:
                yield Problem(number, f"longer than {limit} bytes")
            else:
                text = raw.decode("utf-8", "replace")
                if text[:1] in _PADDING:
                    text = text.lstrip(_PADDING) or text
                if ended is None:
                    try:
                        parse_json(text)
                    except ValueError:
                        return
                if text and not text.isspace():
                    yield number, text
            if ended is None:  # its end, which may come later, still belongs to this line
                offset, number = offset + len(raw or b""), number - 1
            else:
                offset = ended
            self.done = Position(offset, number, dict(self.state))

    def records(self, limit: int) -> Generator[Record | Problem, None, None]:
        """Each line as a JSON object; a line that is none is a problem."""
        for line in self.lines(limit):
            if isinstance(line, Problem):
                yield line
                continue
            number, text = line
            try:
                value = parse_json(text)
            except ValueError as error:
                yield Problem(number, str(error))
                continue
            if isinstance(value, dict):
                yield Record(number, value)
            else:
                yield Problem(number, "not a JSON object")


def _has_lines(texts: list[str]) -> bool:
    """Whether lines are those of a file of JSON, of which some may be bad; not of a page."""
    if not texts or any(text.lstrip().startswith(_FENCES) for text in texts):
        return False
    opened = sum(text.lstrip(_PADDING).startswith("{") for text in texts)
    return texts[0].lstrip(_PADDING).startswith("{") or 2 * opened > len(texts)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parse_json(text.lstrip(_PADDING))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse_json(text: str) -> Any:
    """A JSON value; NaN and infinities are None, control characters in strings are kept.

    Raises:
        ValueError: It is none; the message holds none of its text.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    except ValueError:
        raise ValueError("not JSON") from None


def _constant(_: str) -> None:
    return None


_DECODER = json.JSONDecoder(parse_constant=_constant, strict=False)


def _split(source: Source, offset: int, limit: int) -> Iterator[tuple[bytes | None, int | None]]:
    """Lines and their ends; no bytes for one above the limit, no end for the open last one."""
    held, over = b"", False
    with closing(source.open()) as file:
        file.seek(offset)
        while chunk := file.read(_CHUNK):
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                offset += len(line) + 1
                yield (None if over or len(line) > limit else line), offset
                over = False
            if len(held) > limit:  # only its length is kept
                offset += len(held)
                held, over = b"", True
    if held and not over:
        yield held, None
