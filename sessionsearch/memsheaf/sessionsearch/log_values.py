"""The arguments of a log's calls, checked, as its statements take them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from memsheaf.stack import InvalidQuery, parse_time

from .log_rows import micros

__all__ = ["END", "by_order", "number_of", "time_of", "types_of"]

END = 2**62
"""Above every number of an item."""


def time_of(what: str, value: datetime | str | float | None) -> int | None:
    """A time in microseconds since 1970."""
    if value is None:
        return None
    try:
        return micros(parse_time(value))
    except ValueError:  # it shows the value
        raise InvalidQuery(f"{what} is not a time; give one like 2026-02-03") from None


def number_of(what: str, value: object, default: int, *, lowest: int = 0) -> int:
    """A whole number, or the default where it is None."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidQuery(f"{what} must be a whole number, not {type(value).__name__}")
    if not lowest <= value <= END:
        raise InvalidQuery(f"{what} must lie between {lowest} and {END}")
    return value


def types_of(types: str | Iterable[str] | None) -> str | None:
    """Names of types as a JSON list."""
    if types is None:
        return None
    wanted = [types] if isinstance(types, str) else list(types)
    if not all(isinstance(name, str) for name in wanted):
        raise InvalidQuery("types must be names of types")
    return json.dumps(wanted)


def by_order(statements: Mapping[str, str], order: str) -> str:
    """The statement of an order."""
    if order not in statements:
        raise InvalidQuery("order must be asc or desc")
    return statements[order]
