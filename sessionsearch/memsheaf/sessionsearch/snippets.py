"""Snippets: the part of a text around the words that a query asks for, marked, safe to print."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from memsheaf.index import content_words, get_analyzer, terms

__all__ = ["EDGES", "MARKS", "snippet"]

MARKS = ("«", "»")
"""Around each matched word; look-alikes of them in the text are replaced."""

EDGES = "\"'()[]{}<>,;:.!?*`|"
"""What stands around a word and is none of it."""

_STEMMED = get_analyzer("english")
_WORD = re.compile(r"\S+")
_PART = re.compile(r"[^\s!-/:-@\[-`{-~]+")  # between the ASCII signs
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL)
_LOOKALIKES = str.maketrans({"«": "<", "»": ">"})
_LONGEST = 100_000  # characters that are looked at


def snippet(text: str, query: str, width: int = 240) -> str:
    r"""The best window of a text on one line, its matched words in « ».

    The line holds no control characters, no terminal sequences and none of the characters that
    turn the direction of writing.

    Args:
        text: Anything.
        query: Anything; its function words are not marked.
        width: About how many characters.

    >>> snippet("We hid the cello\nin the hall.", "cello halls")
    'We hid the «cello» in the «hall».'
    """
    wanted = frozenset(terms(_STEMMED, content_words(query)))
    words = _WORD.findall(_printable(text[:_LONGEST]))
    found = [frozenset(terms(_STEMMED, word)) & wanted for word in words]
    first, last = _window([len(word) + 1 for word in words], found, width)
    shown = [
        _marked(word, matched, width) if matched else word[:width]
        for word, matched in zip(words[first:last], found[first:last], strict=True)
    ]
    line = " ".join(shown)
    return f"{'… ' if first else ''}{line}{' …' if last < len(words) else ''}"


def _printable(text: str) -> str:
    plain = _ESCAPE.sub(" ", text).translate(_LOOKALIKES)
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(
        character if unicodedata.category(character)[0] != "C" or character == "\u200d" else " "
        for character in plain
    )


def _window(sizes: list[int], found: list[frozenset[str]], width: int) -> tuple[int, int]:
    """The stretch of words with the most distinct matches, the first of equals, with a lead."""
    best, best_at = (-1, 0), 0
    last, size = 0, 0
    held: dict[str, int] = {}
    for first in range(len(sizes)):
        while last < len(sizes) and (last == first or size + sizes[last] <= width):
            size += sizes[last]
            for term in found[last]:
                held[term] = held.get(term, 0) + 1
            last += 1
        count = (sum(1 for n in held.values() if n), sum(held.values()))
        if found[first] and count > best:
            best, best_at = count, first
        size -= sizes[first]
        for term in found[first]:
            held[term] -= 1
    first, room = best_at, width // 4
    while first > 0 and sizes[first - 1] <= room:
        first -= 1
        room -= sizes[first]
    last, size = first, 0
    while last < len(sizes) and (last == first or size + sizes[last] <= width):
        size += sizes[last]
        last += 1
    while first > 0 and size + sizes[first - 1] <= width:  # near the end there is room in front
        first -= 1
        size += sizes[first]
    return first, last


def _marked(word: str, matched: frozenset[str], width: int) -> str:
    """A word with what matched of it marked: all of it, or some of its parts."""
    core = word.strip(EDGES) or word
    if len(core) > width:
        word = core = core[:width]
    begin = word.index(core)
    spans = [(begin, begin + len(core))]
    if not matched >= frozenset(terms(_STEMMED, core)):
        parts = (_spans(part[0], begin + part.start(), matched) for part in _PART.finditer(core))
        spans = [span for part in parts for span in part] or spans
    for first, last in reversed(spans):
        word = f"{word[:first]}{MARKS[0]}{word[first:last]}{MARKS[1]}{word[last:]}"
    return word


def _spans(part: str, at: int, matched: frozenset[str]) -> list[tuple[int, int]]:
    """Where a part of a word, that begins at a place, matched: whole, or some of its pairs."""
    held = terms(_STEMMED, part)
    found = matched.intersection(held)
    if not found:
        return []
    folded = part.casefold()
    if len(found) == len(set(held)) or len(folded) != len(part):
        return [(at, at + len(part))]
    spans: list[tuple[int, int]] = []
    for first, last in sorted((m.start(), m.end()) for t in found for m in _all(t, folded)):
        if spans and at + first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(at + last, spans[-1][1]))
        else:
            spans.append((at + first, at + last))
    return spans or [(at, at + len(part))]


def _all(term: str, text: str) -> Iterator[re.Match[str]]:
    return re.finditer(re.escape(term), text)
