"""Text analysis: from any string to index terms, the same for texts and for queries.

`tokenize` cuts a text into raw tokens, mostly at white space, and is cheap. `expand` turns one raw
token into its terms; it is pure, so that an index can remember its results per raw token.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from threading import Lock
from typing import Protocol, runtime_checkable

import snowballstemmer

from .scripts import fold, is_unspaced, marks, normalize, split_unspaced

MAX_TERM = 128
"""Longest term in characters; longer words are cut, in texts and in queries alike."""


@runtime_checkable
class Analyzer(Protocol):
    """What an index needs to know about text."""

    @property
    def name(self) -> str:
        """Name and version of the rules, kept with each index: `english/1`."""

    def tokenize(self, text: str) -> list[str]:
        """Return the raw tokens of `text` in order."""

    def expand(self, token: str) -> tuple[str, ...]:
        """Return the terms of one raw token; the same token always gives the same terms."""


def terms(analyzer: Analyzer, text: str) -> list[str]:
    """Return all terms of `text` in order.

    >>> terms(get_analyzer("english"), "Running pre-commit, as KRT-512 says")
    ['run', 'pre-commit', 'pre', 'commit', 'as', 'krt-512', 'krt', '512', 'say']
    """
    return [term for token in analyzer.tokenize(text) for term in analyzer.expand(token)]


_TRIMMED = ",;:!?\"'()[]{}<>*`"
_SYMBOLS = "\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"  # emoji and their kin
_SYMBOL = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|(?![\U0001f3fb-\U0001f3ff])[{_SYMBOLS}]"  # flags; no bare tones
)
_STRONG = re.compile(r"[/\\:?&=@]+|->|(?<=\d)T(?=\d\d:)")
_CONTRACTED = re.compile(r"(?:'(?:s|re|ve|ll|d|m)|n't)$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def _patterns(ascii_only: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of an identifier and the pattern of the parts between its strong joints.

    An identifier is words with joints: `.NET`, `C++`, `user@example.org`, `std::map`, `a/b.c`.
    """
    word = r"\w+" if ascii_only else rf"\w[\w{marks()}]*"
    suffixed = rf"{word}(?:\+\+|\#(?!\w))?"
    joint = r"(?:[-.'+#~%]|[/\\:?&=@]{1,3}[.~]?|->|(?<=\+\+))"
    identifier = rf"(?:(?<![\w.])\.)?{suffixed}(?:{joint}{suffixed}){{0,31}}"
    symbols = "" if ascii_only else f"|[{_SYMBOLS}]+"
    flags = re.ASCII if ascii_only else re.UNICODE
    return re.compile(identifier + symbols, flags), re.compile(rf"(?:^\.)?{suffixed}", flags)


class TextAnalyzer:
    """The built-in rules around a stemmer.

    Words are folded (case, and accents of Latin and Greek) and stemmed. Identifiers are kept whole
    and also give their parts. Scripts without spaces give overlapping pairs of characters.

    Args:
        name: name and version of the rules; change it when the stemmer's answers change.
        stem: maps a folded word of letters to its stem; None keeps words as they are.
    """

    def __init__(self, name: str, stem: Callable[[str], str] | None = None) -> None:
        self.name = name
        lock = Lock()  # Snowball's stemmers keep the word that they work on in themselves

        @lru_cache(maxsize=1 << 16)
        def stemmed(word: str) -> str:
            if stem is None or not word.isalpha():
                return word
            with lock:
                return stem(word)

        self._stem = stemmed

    def __repr__(self) -> str:
        return f"TextAnalyzer({self.name!r})"

    def tokenize(self, text: str) -> list[str]:
        """Return the raw tokens of `text` in order."""
        return text.split() if text.isascii() else split_unspaced(normalize(text))

    def expand(self, token: str) -> tuple[str, ...]:
        """Return the terms of one raw token: identifiers whole, then their parts."""
        core = token if token.isalpha() else token.strip(_TRIMMED)
        ascii_only = core.isascii()
        if ascii_only and core.isalpha() and (core[1:].islower() or len(core) == 1):
            return (self._stem(core.lower()[:MAX_TERM]),)
        if not ascii_only and is_unspaced(core):
            return (core[:MAX_TERM],)
        identifier, part = _patterns(ascii_only)
        found: list[str] = []
        for match in identifier.finditer(core):
            whole = match[0]
            if _SYMBOL.match(whole):
                symbols = _SYMBOL.findall(whole)
                found.extend(symbols if symbols == [whole] else [whole[:MAX_TERM], *symbols])
            else:
                found.extend(self._identifier(whole, part))
        return tuple(term for term in found if term)

    def _identifier(self, whole: str, part: re.Pattern[str]) -> Iterator[str]:
        segments = [segment for segment in _STRONG.split(whole) if segment]
        if segments != [whole]:
            yield fold(whole)[:MAX_TERM]
        for segment in segments:
            yield from self._segment(segment, part)

    def _segment(self, segment: str, part: re.Pattern[str]) -> Iterator[str]:
        contraction = _CONTRACTED.search(segment)
        if contraction and contraction.start():
            if contraction[0].lower() != "'s":  # a possessive says no more than its noun
                yield fold(segment)[:MAX_TERM]
            segment = segment[: contraction.start()]
        pieces = part.findall(segment)
        if pieces != [segment]:
            yield fold(segment)[:MAX_TERM]
        for piece in pieces:
            bare = piece.strip(".+#")
            if bare != piece:  # .net, c++, c#
                yield fold(piece)[:MAX_TERM]
            words = [word for word in bare.split("_") if word]
            if words != [bare]:
                yield fold(bare)[:MAX_TERM]
            for word in words:
                yield from self._word(word)

    def _word(self, word: str) -> Iterator[str]:
        yield self._stem(fold(word)[:MAX_TERM])
        humps = _CAMEL.split(word[:MAX_TERM])
        if len(humps) > 1:
            for hump in humps:
                yield self._stem(fold(hump))


_analyzers: dict[str, Analyzer] = {}


def register_analyzer(analyzer: Analyzer) -> None:
    """Make `analyzer` available to indexes under its name, with and without the version.

    Raises:
        ValueError: another analyzer has this name.
    """
    for key in dict.fromkeys((analyzer.name, analyzer.name.partition("/")[0])):
        if _analyzers.setdefault(key, analyzer) is not analyzer:
            raise ValueError(
                f"an analyzer named {key!r} is registered already: choose another name"
            )


def get_analyzer(name: str) -> Analyzer:
    """Return the analyzer called `name`: `english`, `plain`, or a registered one.

    Raises:
        ValueError: there is none of that name.
    """
    try:
        return _analyzers[name]
    except KeyError:
        known = ", ".join(sorted(_analyzers))
        raise ValueError(
            f"no analyzer is called {name!r}: known are {known}; add yours with register_analyzer()"
        ) from None


def _english() -> Callable[[str], str]:
    stemmer = snowballstemmer.stemmer("english")
    if hasattr(stemmer, "maxCacheSize"):
        stemmer.maxCacheSize = 0  # PyStemmer's own cache costs four times what it saves
    stem: Callable[[str], str] = stemmer.stemWord
    return stem


register_analyzer(TextAnalyzer("english/1", _english()))
register_analyzer(TextAnalyzer("plain/1"))
