"""Which lines of a Markdown text stand inside a code fence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

__all__ = ["fenced"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LONGEST = 2000  # lines; a fence that is not closed within them is none


def fenced(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a code fence, its marks included.

    A fence that nobody closes ends at its own line, so that it swallows no turns.

    >>> [inside for _, inside in fenced(["a", "```py", "## b", "```", "~~~", "c"])]
    [False, True, True, True, False, False]
    """
    source = enumerate(lines)
    ahead: deque[tuple[int, str]] = deque()
    closing: deque[tuple[int, str]] = deque()  # those of the lines ahead that may close a fence
    end = -1  # of the fence that is open
    while True:
        while len(ahead) <= _LONGEST and (read := next(source, None)) is not None:
            ahead.append(read)
            found = _fence(read[1])
            if found and not found[2].strip():
                closing.append((read[0], found[1]))
        if not ahead:
            return
        number, line = ahead.popleft()
        while closing and closing[0][0] <= number:
            closing.popleft()
        opened = _fence(line) if number > end else None
        if opened and not (opened[1][0] == "`" and "`" in opened[2]):
            end = next((at for at, mark in closing if mark.startswith(opened[1])), end)
        yield line, number <= end


def _fence(line: str) -> re.Match[str] | None:
    start = line.lstrip(" ")[:3]
    return _FENCE.fullmatch(line.rstrip("\r\n")) if start in ("```", "~~~") else None
