"""Where two requests part: a provider's prompt cache serves what is the same before that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from memsheaf.stack import UsageError

__all__ = ["CacheReport", "cache_report"]

_SECTIONS = ("tools", "system", "messages")  # the order in which providers cache them


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What two requests have in common.

    Each request is read as lines of JSON in UTF-8, one a message, behind those of the tools and
    of the ``system`` value where there are any.

    Attributes:
        byte: The first byte that differs, from 0; the length of the shorter one where it begins
            the longer one.
        before_bytes: The size of the earlier request.
        after_bytes: The size of the later request.
        message: The index of the first message that differs, or that only one request has; None
            where it is not a message that differs.
        path: The place, such as ``messages[3].content`` or ``system``; None where they are equal.
        extended: Whether the later request is the earlier one with nothing but more behind it.
    """

    byte: int
    before_bytes: int
    after_bytes: int
    message: int | None = None
    path: str | None = None
    extended: bool = False

    @property
    def share(self) -> float:
        """The part of the earlier request that the cache still serves, from 0 to 1."""
        return self.byte / self.before_bytes if self.before_bytes else 1.0

    def __str__(self) -> str:
        if self.path is None:
            return f"equal: {self.byte:,} bytes"
        kept = f"{self.byte:,} of {self.before_bytes:,} bytes ({self.share:.0%}) stay cached"
        return f"{kept}; they part at {self.path}"


def cache_report(
    before: Sequence[Any] | Mapping[str, Any], after: Sequence[Any] | Mapping[str, Any]
) -> CacheReport:
    """Say where two requests part.

    Args:
        before: The messages of the earlier request, or its whole body (``tools``, ``system`` and
            ``messages`` are compared).
        after: Those of the later request.

    Raises:
        UsageError: A request is neither, or holds what JSON cannot.

    >>> before = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> report = cache_report(before, [*before, {"role": "assistant", "content": "Hello."}])
    >>> report.extended, report.message, report.share
    (True, 2, 1.0)
    >>> print(cache_report(before, [{"role": "system", "content": "It is 9:41."}, before[1]]))
    28 of 71 bytes (39%) stay cached; they part at messages[0].content
    """
    old, new = _lines(before), _lines(after)
    first, second = (b"".join(line for _, _, line in lines) for lines in (old, new))
    byte = _common(first, second)
    sizes = byte, len(first), len(second)
    for one, other in zip_longest(old, new):
        if one is None or other is None:
            path = (one or other)[0]
            return CacheReport(*sizes, _index(path), path, extended=one is None)
        if one[2] != other[2]:
            path = one[0] if one[0] != other[0] else one[0] + _inner(one[1], other[1])
            return CacheReport(*sizes, _index(one[0]), path)
    return CacheReport(*sizes, extended=True)


def _lines(request: object) -> list[tuple[str, Any, bytes]]:
    """A request as (path, value, bytes), in the order of the cache."""
    if isinstance(request, Mapping):
        sections: dict[str, Any] = {name: request.get(name) for name in _SECTIONS}
    elif isinstance(request, Sequence) and not isinstance(request, str | bytes):
        sections = {"messages": request}
    else:
        raise UsageError("a request is a list of messages, or a mapping that holds them")
    rows: list[tuple[str, Any, bytes]] = []
    for name, value in sections.items():
        if isinstance(value, list | tuple):
            rows += [(f"{name}[{n}]", item, _line(item)) for n, item in enumerate(value)]
        elif value is not None:
            rows.append((name, value, _line(value)))
    return rows


def _line(value: object) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError) as error:
        raise UsageError("a request holds what JSON cannot; pass what is sent") from error
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _plain(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _common(one: bytes, other: bytes) -> int:
    """The length of the common beginning, by halving: comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _inner(one: Any, other: Any) -> str:
    """The path from a value to the first place inside it that differs."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and list(one) == list(other):
        for key in one:
            if one[key] != other[key]:
                return f".{key}{_inner(one[key], other[key])}"
    both = isinstance(one, list | tuple) and isinstance(other, list | tuple)
    if both and len(one) and len(other):
        for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            if mine != theirs:
                return f"[{place}]{_inner(mine, theirs)}"
        return f"[{min(len(one), len(other))}]"
    return ""


def _index(path: str) -> int | None:
    name, _, place = path.partition("[")
    return int(place.rstrip("]")) if name == "messages" and place else None
