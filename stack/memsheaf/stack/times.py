"""Times at the boundary: everything becomes an aware UTC datetime, or is refused."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

__all__ = ["now", "parse_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_MAX_SECONDS = 253_402_300_799  # 9999-12-31T23:59:59Z
_MAX_NANOSECONDS = (_MAX_SECONDS + 1) * 1_000_000_000


def now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def parse_time(value: object) -> datetime:
    """Read a time in any of the shapes that agents and exports write.

    Args:
        value: A datetime, an ISO 8601 string, or a Unix time as number or text in seconds,
            milliseconds, microseconds or nanoseconds, told apart by magnitude.
            A time without a zone is UTC, whatever the host's zone.

    Returns:
        An aware datetime in UTC.

    Raises:
        ValueError: The value is not a time, or outside the years 1 to 9999.

    >>> parse_time(1767583930285).isoformat()
    '2026-01-05T03:32:10.285000+00:00'
    >>> parse_time("2026-03-01T09:00:00").isoformat()
    '2026-03-01T09:00:00+00:00'
    """
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            try:
                return _utc(datetime.fromisoformat(text))
            except (ValueError, OverflowError) as error:
                raise ValueError("not an ISO 8601 time or a Unix time") from error
        value = float(text) if re.search(r"[.eE]", text) else int(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a time cannot be read from {type(value).__name__}")
    return _from_unix(value)


def _utc(moment: datetime) -> datetime:
    try:
        naive = moment.utcoffset() is None
        return moment.replace(tzinfo=UTC) if naive else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a time must lie in the years 1 to 9999") from error


def _from_unix(number: int | float) -> datetime:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("a Unix time must be finite")
    if abs(number) >= _MAX_NANOSECONDS:  # also what a float cannot hold
        raise ValueError("a time must lie in the years 1 to 9999")
    divisor = 1
    while abs(number) / divisor > 100_000_000_000 and divisor < 1_000_000_000:
        divisor *= 1_000
    if abs(number) / divisor > _MAX_SECONDS:
        raise ValueError("a time must lie in the years 1 to 9999")
    micros = (
        number * 1_000_000 // divisor if isinstance(number, int) else round(number * 1e6 / divisor)
    )
    try:
        return _EPOCH + timedelta(microseconds=int(micros))
    except OverflowError as error:
        raise ValueError("a time must lie in the years 1 to 9999") from error
