"""The lines of a profile that a prompt gets: the most useful first, each on a line of its own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from memsheaf.stack import MemoryRecord, Scope, lexical_relevance

from .profile import Line, LineKind
from .said import count_tokens

__all__ = ["HEADING", "build_context", "rank_lines", "shown_line"]

HEADING = "## About the user"
_QUERY = 4_000  # characters; hosts paste whole files into a message, and end with the question
_FIRST = (
    LineKind.INSTRUCTION,
    LineKind.PREFERENCE,
    LineKind.FACT,
    LineKind.GOAL,
    LineKind.HABIT,
)
_BRACKETS = "<>\u2039\u203a\u276e\u276f\u27e8\u27e9\u2329\u232a\u3008\u3009\ufe64\ufe65\uff1c\uff1e"
_MAYBE_UNSAFE = re.compile(rf"[&{_BRACKETS}]|[^\x20-\x7e]")
_JOINERS = "\u200c\u200d\ufe0f"  # scripts and emoji need them
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def build_context(lines: Sequence[Line], text: str, max_tokens: int) -> str | None:
    """A block about the user, or None where nothing is known or nothing fits.

    Args:
        lines: The current lines.
        text: What the turn is about; lines that match it come first.
        max_tokens: The most tokens of the block, its heading included.
    """
    kept = [HEADING, ""]
    room = max_tokens - count_tokens(HEADING + "\n\n")
    for line, _ in rank_lines(lines, text):
        shown = shown_line(line)
        cost = count_tokens(shown + "\n")
        if cost <= room:
            kept.append(shown)
            room -= cost
    return "\n".join(kept) if len(kept) > 2 else None


def rank_lines(lines: Sequence[Line], text: str) -> list[tuple[Line, float]]:
    """Lines with their relevance to a text in [0, 1], the most useful first.

    Relevance decides; among equals the kind, how sure the line is, how often and how lately it
    was said, and its id. The same lines and text give the same order.
    """
    owner = Scope(user_id="user")
    records = [MemoryRecord(content=line.text, scope=owner) for line in lines]
    relevance = [round(r, 3) for r in lexical_relevance(text[-_QUERY:], records)]
    pairs = sorted(zip(lines, relevance, strict=True), key=lambda pair: _number(pair[0]))
    return sorted(pairs, key=lambda pair: (-pair[1], *_usefulness(pair[0])))


def shown_line(line: Line) -> str:
    """A line for a prompt: a bullet with its id and date; no text can end it or pose as a tag."""
    text = _MAYBE_UNSAFE.sub(_escape, line.text)
    return f"- {text} [{line.id}, {line.kind}, {line.last_seen.date().isoformat()}]"


def _usefulness(line: Line) -> tuple[int, float, int, float]:
    kind = _FIRST.index(line.kind)
    return kind, -line.confidence, -line.times, -line.last_seen.timestamp()


def _number(line: Line) -> int:
    return int(line.id[1:])


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character > "\x7f":
        hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
        if not hidden and character not in _BRACKETS:
            return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
