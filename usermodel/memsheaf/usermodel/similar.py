"""When two lines say the same."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

import snowballstemmer

from memsheaf.stack import same_content_key

__all__ = ["statement_key"]

_STEMMER = snowballstemmer.stemmer("english")
_STEMMING = Lock()  # a stemmer keeps its word in itself
_EDGES = ".,;:!?\"'()[]{}\u201c\u201d\u2018\u2019\u2026"
_WORDS = (
    "a an the i i'm i've my me user user's users they they're their them is am are be do does "
    "to that really very quite just also currently now please"
)
_EMPTY = frozenset(_WORDS.split())


@lru_cache(maxsize=16_384)
def statement_key(text: str) -> str:
    """The key under which two lines are one: the stems of their content words, in order.

    Lines that differ in articles, in who speaks, in punctuation, case or inflection are one.
    Negation, numbers, tense, symbols and the order of words tell them apart.

    >>> statement_key("I prefer tea.") == statement_key("The user prefers tea")
    True
    >>> statement_key("likes tea") == statement_key("does not like tea")
    False
    """
    words: list[str] = []
    for raw in same_content_key(text).replace("\u2019", "'").split():
        word = raw.strip(_EDGES)
        if word == "can't":
            words += ["can", "not"]
        elif word.endswith("n't"):
            words += [word.removesuffix("n't"), "not"]
        else:
            words.append(word)
    content = [word for word in words if word and word not in _EMPTY]
    with _STEMMING:
        stems = _STEMMER.stemWords(content or words)
    return " ".join(stems).strip() or same_content_key(text)
