"""Whether a line says only what the cited words say: what a model invents has other words."""

from __future__ import annotations

import re
import unicodedata

from memsheaf.stack import same_content_key

from .similar import statement_key

__all__ = ["is_about", "is_quoted", "shares_words", "supports"]

MIN_QUOTE = 3
"""Characters of a quote; less is found anywhere."""

# Words of many lines; they support nothing.
_COMMON_WORDS = (
    "likes loves enjoys prefers hates dislikes wants plans uses has have had is was been does do "
    "did done no not longer never always usual usually often at in on of for with from as and or "
    "but by their his her its this that who which what more most very will would can cannot get "
    "gets go goes make makes about assistant called named"
)
_COMMON = frozenset(map(statement_key, _COMMON_WORDS.split()))
_NEGATIVE_LINE = re.compile(
    r"\b(?:not|never|no longer|cannot|hates|dislikes|avoids|stopped|quit)\b", re.IGNORECASE
)
_NEGATIVE_WORDS = re.compile(
    r"n['\u2019]t\b|\b(?:not|no|never|none|cannot|cant|dont|hate|hates|hated|dislike|despise|detest|"
    r"loathe|stop|stopped|quit|gave|given|used to|avoid|without|less|rather|neither|nor|intolerant|"
    r"allergic|left|lost|sold|ended|over|instead|switched|awful|terrible|worst)\b",
    re.IGNORECASE,
)
# What is said of these with other words replaces what was said before.
_TOPICS = [
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in (
        r"live[sd]?|living|mov(?:ed?|es|ing)|settled?|based|relocat\w+|resid\w+",
        r"work\w*|job|employ\w*|unemployed|career|hired|retired?|quit|joined|compan(?:y|ies)",
        r"calls?|called|names?|named|goes by|go by",
        r"married|single|divorced|engaged|widow\w*|wife|husband|partner|(?:girl|boy)friend",
        r"years? old|aged?|turned|birthday",
        r"vegan|vegetarian|meat|eats?|diet\w*",
        r"stud(?:y|ies|ying|ied|ent)|graduat\w+|degree|university",
    )
]
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?<![\w'])[^\W\d_][\w'-]*")
# Scripts that are written without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")


def is_quoted(quote: str, cited: str) -> bool:
    """Whether a quote stands in the cited words, letter case and white space aside."""
    wanted = same_content_key(quote).strip(" .,;:!?\"'")
    return len(wanted) >= MIN_QUOTE and wanted in same_content_key(cited)


def shares_words(text: str, cited: str) -> bool:
    """Whether a line and the cited words have a telling word in common.

    >>> shares_words("Has a car", "I sold my car"), shares_words("Has a car", "I love tea")
    (True, False)
    """
    return bool(_units(text) & _units(cited))


def is_about(text: str, cited: str) -> bool:
    """Whether words can bear on a line: they share a telling word, or one of a few topics.

    >>> is_about("Lives in Berlin", "I moved to Lisbon")
    True
    >>> is_about("Is allergic to nuts", "I moved to Lisbon")
    False
    """
    return shares_words(text, cited) or any(
        topic.search(text) and topic.search(cited) for topic in _TOPICS
    )


def supports(cited: str, text: str) -> bool:
    """Whether the cited words can have given a line.

    At least half of its telling words must be among theirs, and every name and number; what it
    denies, they must deny in some way.

    >>> supports("I moved to Lisbon in May", "Lives in Lisbon")
    True
    >>> supports("I moved to Lisbon in May", "Works at Initech")
    False
    >>> supports("I like tea", "Does not like tea")
    False
    """
    units, known = _units(text), _units(cited)
    if not units or 2 * len(units & known) < len(units):
        return False
    if _NEGATIVE_LINE.search(text) and not _NEGATIVE_WORDS.search(cited):
        return False
    folded = same_content_key(cited)
    return all(same_content_key(mark) in folded for mark in _marks(text))


def _marks(text: str) -> list[str]:
    """Numbers, and words with a capital letter after the first word."""
    names = [word[0] for word in _NAME.finditer(text) if word.start() and word[0][0].isupper()]
    return _NUMBER.findall(text) + [name.removesuffix("'s") for name in names]


def _units(text: str) -> set[str]:
    """Stems of the telling words; pairs of characters where words are not set apart."""
    text = unicodedata.normalize("NFKC", text)
    pairs = {
        run[at : at + 2] for run in _UNSPACED.findall(text) for at in range(max(1, len(run) - 1))
    }
    spaced = re.sub(r"[^\w'+#-]", " ", _UNSPACED.sub(" ", text))
    return pairs | (set(statement_key(spaced).split() if spaced.strip() else ()) - _COMMON)
