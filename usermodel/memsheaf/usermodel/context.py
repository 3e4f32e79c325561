"""The lines of a profile that a prompt gets: the most useful first, each on a line of its own."""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property

from memsheaf.stack.relevance import inverse_frequency, query_terms, term_set

from .profile import Line, LineKind
from .said import count_tokens

__all__ = ["HEADING", "RankedCache", "RankedLines", "build_context", "rank_lines", "shown_line"]

HEADING = "## About the user"
_WHOLE = 1_000_000  # whole numbers add up to the same in any order
_PART = 1_000  # of these is what is shown: lines that look equally relevant are
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


class RankedLines:
    """Lines that are asked about again and again: what does not depend on the text is kept.

    Args:
        lines: The current lines.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = sorted(lines, key=lambda line: (*_usefulness(line), _number(line)))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The places of the lines that hold a term."""
        places: dict[str, list[int]] = {}
        for place, line in enumerate(self._lines):
            for term in term_set(line.text):
                places.setdefault(term, []).append(place)
        return places

    @cached_property
    def _shown(self) -> list[tuple[str, int]]:
        shown = [shown_line(line) for line in self._lines]
        return [(text, count_tokens(text + "\n")) for text in shown]

    @cached_property
    def _least(self) -> int:
        return min((cost for _, cost in self._shown), default=0)

    def rank(self, text: str) -> list[tuple[Line, float]]:
        """See `rank_lines`."""
        matched = self._match(text)
        return [
            (self._lines[place], matched.get(place, 0) * _PART / _WHOLE)
            for place in self._order(matched)
        ]

    def block(self, text: str, max_tokens: int) -> str | None:
        """See `build_context`."""
        kept = [HEADING, ""]
        room = max_tokens - count_tokens(HEADING + "\n\n")
        for place in self._order(self._match(text)):
            if room < self._least:
                break
            shown, cost = self._shown[place]
            if cost <= room:
                kept.append(shown)
                room -= cost
        return "\n".join(kept) if len(kept) > 2 else None

    def _match(self, text: str) -> dict[int, int]:
        """`lexical_relevance` of the lines that match, by place, in thousandths."""
        size = len(self._lines)
        found = [self._places.get(t, ()) for t in query_terms(text[-_QUERY:])]
        rarity = [inverse_frequency(size, len(places)) for places in found]
        total = math.fsum(rarity)
        matched: dict[int, int] = {}
        for places, each in zip(found, rarity, strict=True):
            share = round(_WHOLE * each / total)
            for place in places:
                matched[place] = matched.get(place, 0) + share
        rounded = ((place, (each + _PART // 2) // _PART) for place, each in matched.items())
        return {place: each for place, each in rounded if each}

    def _order(self, matched: dict[int, int]) -> Iterator[int]:
        """Places by falling relevance; equals keep their order."""
        yield from sorted(matched, key=lambda place: (-matched[place], place))
        yield from (place for place in range(len(self._lines)) if place not in matched)


class RankedCache:
    """The prepared lines of the users who were asked about last.

    Args:
        most: How many users at the most.
    """

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._held: dict[str, tuple[str, RankedLines]] = {}
        self._lock = threading.Lock()

    def get(self, user: str, revision: str | None) -> RankedLines | None:
        """The lines of a revision of a profile; None where they are not at hand."""
        with self._lock:
            known = self._held.pop(user, None)
            if known is None or known[0] != revision:
                return None
            self._held[user] = known  # the latest last
            return known[1]

    def keep(self, user: str, revision: str | None, lines: Sequence[Line]) -> RankedLines:
        """Prepare the lines of a revision; without one they are not kept."""
        made = RankedLines(lines)
        if revision is not None:
            with self._lock:
                self._held[user] = revision, made
                if len(self._held) > self._most:
                    del self._held[next(iter(self._held))]
        return made

    def drop(self, user: str) -> None:
        """Keep nothing of a user."""
        with self._lock:
            self._held.pop(user, None)


def build_context(lines: Sequence[Line], text: str, max_tokens: int) -> str | None:
    """A block about the user, or None where nothing is known or nothing fits.

    Args:
        lines: The current lines.
        text: What the turn is about; lines that match it come first.
        max_tokens: The most tokens of the block, its heading included.
    """
    return RankedLines(lines).block(text, max_tokens)


def rank_lines(lines: Sequence[Line], text: str) -> list[tuple[Line, float]]:
    """Lines with their relevance to a text in [0, 1], the most useful first.

    Relevance decides; among equals the kind, how sure the line is, how often and how lately it
    was said, and its id. The same lines and text give the same order.
    """
    return RankedLines(lines).rank(text)


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
