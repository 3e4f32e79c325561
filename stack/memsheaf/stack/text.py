"""Text at the boundary: what is replaced on the way in, and when two texts are the same."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "last_words", "same_content_key"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    r"""Replace NUL and lone surrogates by U+FFFD; no backend can store them.

    >>> clean("a\x00b")
    'a\ufffdb'
    """
    if text.isascii() and "\0" not in text:  # nothing to replace, and the usual case
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def same_content_key(content: str) -> str:
    """The key under which two contents are one memory: NFKC, case folded, white space folded.

    >>> same_content_key("  The  deploy window ") == same_content_key("the deploy window")
    True
    """
    if content.isascii():  # nothing to normalise, and the usual case
        return " ".join(content.lower().split())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", content).casefold())
    return _SPACE.sub(" ", folded).strip()


def last_words(content: str) -> str:
    """The last two words of `same_content_key`, which is cheap: contents that differ here differ.

    >>> last_words(" The deploy  Window ")
    'deploy window'
    """
    text = content if content.isascii() else same_content_key(content)
    return " ".join(text.rsplit(None, 2)[-2:]).lower()
