"""One huge JSON file, read in pieces: the elements of an array and the members of an object."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from .source import parse_json

__all__ = ["JsonPart", "json_parts"]

_CHUNK = 1 << 20
_HOPELESS = 100  # flaws in a row
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_SCALAR = re.compile(rb"[^,:\[\]{}\" \t\r\n]*+")
# All that does not open or close anything; possessive, so that no text makes it slow or deep.
# The empty alternative ends the repeat: up to Python 3.11.4 a try that fails loses the place.
_FLAT = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"|)*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonPart:
    """One piece of a JSON file.

    Attributes:
        value: What it holds; None where it has a flaw.
        key: The member of the outermost object that it is, or that holds it.
        index: Its place in the array, from 0; None for a member as a whole.
        line: The line, from 1, where it begins.
        offset: The byte where it begins.
        flaw: Why it could not be read, with its place; the parts after it are still read.
    """

    value: Any
    key: str | None
    index: int | None
    line: int
    offset: int
    flaw: str | None = None


def json_parts(
    stream: BinaryIO,
    into: Collection[str] = (),
    *,
    max_bytes: int = 64 << 20,
    max_depth: int = 200,
) -> Iterator[JsonPart]:
    r"""Cut a JSON file into parts while it is read; memory is bounded by the largest part.

    The elements of an array each become a part. Of an object each member does, and each element
    of those members that `into` names. Trouble is a part with a `flaw`, never an exception.

    Args:
        stream: UTF-8, with or without a byte order mark; bytes that are no text become U+FFFD.
        into: Members of the outermost object whose arrays are cut into elements.
        max_bytes: A part above this is passed over, and told.
        max_depth: A part nested deeper than this is passed over, and told.

    >>> from io import BytesIO
    >>> [part.value for part in json_parts(BytesIO(b'[{"a": 1},\n {"b": nil}, 3]'))]
    [{'a': 1}, None, 3]
    >>> [(p.key, p.index) for p in json_parts(BytesIO(b'{"id": "c", "of": [1, 2]}'), ["of"])]
    [('id', None), ('of', 0), ('of', 1)]
    """
    flaws = 0
    for part in _Reader(stream, into, max_bytes, max_depth).parts():
        flaws = flaws + 1 if part.flaw else 0
        yield part
        if flaws == _HOPELESS:
            why = f"nothing but flaws up to byte {part.offset}; the rest is not read"
            yield JsonPart(None, None, None, part.line, part.offset, why)
            return


class _Ended(Exception):
    """The file ends where more of it was due."""


class _Reader:
    def __init__(
        self, stream: BinaryIO, into: Collection[str], max_bytes: int, max_depth: int
    ) -> None:
        self._stream = stream
        self._into = into
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._buffer = b""
        self._at = 0  # in the buffer
        self._kept: list[bytes] | None = None  # the part that is being read, up to the buffer
        self._kept_bytes = 0
        self._cut = False  # the file ended within a part
        self._from = 0  # where that part begins, or goes on, in the buffer
        self._offset = 0  # of the buffer in the file
        self._line = 1
        self._counted = 0  # the lines before this place in the buffer are counted

    def parts(self) -> Iterator[JsonPart]:
        while len(self._buffer) < len(_BOM) and self._more():
            pass
        if self._buffer.startswith(_UTF16):
            yield self._flaw("the file is UTF-16; save it as UTF-8")
            return
        if self._buffer.startswith(_BOM):
            self._at = len(_BOM)
        try:
            first = self._next()
        except _Ended:
            yield self._flaw("the file is empty")
            return
        try:
            if first == b"[":
                self._at += 1
                yield from self._elements(None)
            elif first == b"{":
                self._at += 1
                yield from self._members()
            else:
                yield self._flaw("neither an array nor an object begins here")
                return
            yield from self._nothing_else()
        except _Ended:
            if not self._cut:  # else the part told it
                yield self._flaw("the file ends too early")

    def _elements(self, key: str | None) -> Iterator[JsonPart]:
        index = 0
        while self._next() != b"]":
            yield self._part(key, index)
            index += 1
            after = self._next()
            if after == b",":
                self._at += 1
            elif after != b"]":
                yield self._flaw("a comma is missing", key, index)
                if after in (b"}", b":"):
                    self._at += 1  # nothing begins with it: go on behind it
        self._at += 1

    def _members(self) -> Iterator[JsonPart]:
        while (byte := self._next()) != b"}":
            if byte == b",":
                self._at += 1
                continue
            name = self._part(None, None)
            if not isinstance(name.value, str) or self._next() != b":":
                yield self._flaw("a member's name and a colon are due")
                self._at += 1
                continue
            self._at += 1
            if self._next() == b"[" and name.value in self._into:
                self._at += 1
                yield from self._elements(name.value)
            else:
                yield self._part(name.value, None)
        self._at += 1

    def _nothing_else(self) -> Iterator[JsonPart]:
        try:
            self._next()
        except _Ended:
            return
        yield self._flaw("more follows after the end of the value")

    def _part(self, key: str | None, index: int | None) -> JsonPart:
        """Read one value whole."""
        line, offset = self._place()
        self._kept, self._kept_bytes, self._from = [], 0, self._at
        try:
            deep = self._pass_over()
        except _Ended:
            self._kept, self._cut = None, True
            return JsonPart(None, key, index, line, offset, f"cut off (from byte {offset})")
        raw = self._taken()
        flaw = None
        if raw is None:
            flaw = f"larger than {self._max_bytes} bytes"
        elif deep > self._max_depth:
            flaw = f"nested deeper than {self._max_depth} levels"
        else:
            try:
                value = parse_json(raw.decode("utf-8", "replace"))
                return JsonPart(value, key, index, line, offset)
            except ValueError as error:
                flaw = str(error)
        return JsonPart(None, key, index, line, offset, f"{flaw} (from byte {offset})")

    def _pass_over(self) -> int:
        """Move behind the value that begins here; how deep it is."""
        byte = self._peek()
        if byte == b'"':
            self._at += 1
            self._pass_string()
            return 0
        if byte not in (b"{", b"["):
            if byte in b"}]:,":
                self._at += 1  # it begins nothing: a flaw of one byte
                return 0
            while True:
                self._at = _end(_SCALAR, self._buffer, self._at)
                if self._at < len(self._buffer) or not self._more():
                    return 0
        return self._pass_nested()

    def _pass_nested(self) -> int:
        """Move behind the array or object that begins here; how deep it is."""
        depth = deepest = 0
        buffer, at = self._buffer, self._at
        while True:
            flat = _FLAT.match(buffer, at)
            at = flat.end() if flat else at
            if at == len(buffer):
                self._at = at
                if not self._more():
                    raise _Ended
                buffer, at = self._buffer, self._at
                continue
            byte = buffer[at]
            at += 1
            if byte in b"{[":
                depth += 1
                if depth > deepest:
                    deepest = depth
            elif byte in b"}]":
                depth -= 1
                if depth == 0:
                    self._at = at
                    return deepest
            else:  # a string whose end is not in the buffer
                self._at = at
                self._pass_string()
                buffer, at = self._buffer, self._at

    def _pass_string(self) -> None:
        """Move behind the end of the string whose inside begins here."""
        while True:
            self._at = _end(_STRING, self._buffer, self._at)
            byte = self._peek()
            if byte == b'"':
                self._at += 1
                return
            if self._at + 1 >= len(self._buffer) and not self._more():  # an escape was cut
                raise _Ended

    def _next(self) -> bytes:
        """The next byte that is no white space."""
        while True:
            self._at = _end(_SPACE, self._buffer, self._at)
            if self._at < len(self._buffer):
                return self._peek()
            if not self._more():
                raise _Ended

    def _peek(self) -> bytes:
        while self._at >= len(self._buffer):
            if not self._more():
                raise _Ended
        return self._buffer[self._at : self._at + 1]

    def _more(self) -> bool:
        """Read on; what lies before the place is dropped, or kept for the part."""
        chunk = self._stream.read(_CHUNK)
        if not chunk:
            return False
        self._place()
        if self._kept is not None:
            self._kept_bytes += self._at - self._from
            if self._kept_bytes <= self._max_bytes:
                self._kept.append(self._buffer[self._from : self._at])
            else:
                self._kept.clear()
        self._offset += self._at
        self._buffer = self._buffer[self._at :] + chunk
        self._at = self._from = self._counted = 0
        return True

    def _taken(self) -> bytes | None:
        """The bytes of the part, or None where it is too large."""
        kept, self._kept = self._kept or [], None
        if self._kept_bytes + self._at - self._from > self._max_bytes:
            return None
        return b"".join((*kept, self._buffer[self._from : self._at]))

    def _place(self) -> tuple[int, int]:
        self._line += self._buffer.count(b"\n", self._counted, self._at)
        self._counted = self._at
        return self._line, self._offset + self._at

    def _flaw(self, why: str, key: str | None = None, index: int | None = None) -> JsonPart:
        line, offset = self._place()
        return JsonPart(None, key, index, line, offset, f"{why} (at byte {offset})")


def _end(pattern: re.Pattern[bytes], buffer: bytes, start: int) -> int:
    found = pattern.match(buffer, start)
    return start if found is None else found.end()
