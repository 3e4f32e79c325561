"""Text for a terminal: what is stored is hostile, and the locale may know only ASCII."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TextIO

import click

__all__ = ["complain", "safe", "say", "say_json", "table"]

_JOINERS = "\u200c\u200d"  # emoji and several scripts need them, and they hide nothing
_ESCAPED = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def safe(text: str, *, lines: bool = False) -> str:
    r"""A text in which control characters, escape sequences and bidi marks are spelled out.

    Args:
        text: Anything.
        lines: Keep line breaks.

    >>> safe("red \x1b[31m and \u202e back")
    'red \\x1b[31m and \\u202e back'
    """
    return "".join(
        c
        if (c.isascii() and c.isprintable())
        or c in _JOINERS
        or (lines and c == "\n")
        or unicodedata.category(c) not in _ESCAPED
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def say(text: str = "", *, bold: bool = False, dim: bool = False, error: bool = False) -> None:
    """Print a line of ours; stored text in it must have gone through `safe`."""
    stream = sys.stderr if error else sys.stdout
    line = _fitting(text, stream)
    click.echo(click.style(line, bold=bold or None, dim=dim or None), err=error)


def say_json(value: object) -> None:
    """Print one JSON value; ASCII only, which every locale and pipe can carry."""
    click.echo(json.dumps(value, ensure_ascii=True, default=str))


def complain(message: str) -> None:
    """One line on stderr."""
    say(f"memsheaf: {safe(' '.join(message.split()))}", error=True)


def table(rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows under their keys, columns as wide as they need."""
    if not rows:
        return
    names = list(rows[0])
    cells = [
        [safe(str(row[name] if row[name] is not None else "")) for name in names] for row in rows
    ]
    widths = [max(len(name), *(len(line[at]) for line in cells)) for at, name in enumerate(names)]
    say("  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)), bold=True)
    for line in cells:
        say("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())


def _fitting(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
