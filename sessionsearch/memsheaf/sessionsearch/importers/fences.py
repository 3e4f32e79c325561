"""Which lines of a Markdown text stand inside a code fence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["fenced"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LONGEST = 2000  # lines; a fence that is not closed within them is none
_LARGEST = 4_000_000  # characters of these lines

Line = TypeVar("Line", str, str | None)


def fenced(lines: Iterable[Line]) -> Iterator[tuple[Line, bool]]:
    """Each line, and whether it belongs to a code fence, its marks included.

    A fence that nobody closes ends at its own line, so that it swallows no turns. None stands
    for a line of which nothing is known.

    >>> [inside for _, inside in fenced(["a", "```py", "## b", "```", "~~~", "c"])]
    [False, True, True, True, False, False]
    """
    source = enumerate(lines)
    ahead: deque[tuple[int, Line]] = deque()
    size = 0  # of the lines ahead
    closing: deque[tuple[int, str]] = deque()  # those of the lines ahead that may close a fence
    end = -1  # of the fence that is open
    while True:
        while not ahead or (len(ahead) <= _LONGEST and size <= _LARGEST):
            read = next(source, None)
            if read is None:
                break
            ahead.append(read)
            size += len(read[1] or "")
            found = _fence(read[1])
            if found and not found[2].strip():
                closing.append((read[0], found[1]))
        if not ahead:
            return
        number, line = ahead.popleft()
        size -= len(line or "")
        while closing and closing[0][0] <= number:
            closing.popleft()
        opened = _fence(line) if number > end else None
        if opened and not (opened[1][0] == "`" and "`" in opened[2]):
            end = next((at for at, mark in closing if mark.startswith(opened[1])), end)
        yield line, number <= end


def _fence(line: str | None) -> re.Match[str] | None:
    if line is None or line.lstrip(" ")[:3] not in ("```", "~~~"):
        return None
    return _FENCE.fullmatch(line.rstrip("\r\n"))
