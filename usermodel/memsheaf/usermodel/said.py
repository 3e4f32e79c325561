"""What of a conversation is the user's own: the only thing that is learned from."""

from __future__ import annotations

import re

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.stack.text import clean

__all__ = ["count_tokens", "said"]

_MOST = 16_000  # characters; what is longer was pasted
_OPENING = re.compile("<memory-context-([0-9a-f]{8,64})>")


def said(item: Item) -> str | None:
    """The user's own words in an item, or None where it holds none.

    Only messages in the user's role and of the user's origin count: no tool output, no answer of
    an agent, no automation, no import. Blocks of injected memories are cut out. Of a text that is
    longer than 16,000 characters the beginning and the end are kept.

    >>> said(Item("c", 0, "message", "I like tea", "user", ItemOrigin.USER))
    'I like tea'
    >>> said(Item("c", 1, "message", "I like tea", "user", ItemOrigin.AUTOMATION)) is None
    True
    """
    if (item.type, item.role, item.origin) != ("message", "user", ItemOrigin.USER):
        return None
    text = _without_blocks(clean(item.text)).strip()
    if len(text) > _MOST:
        text = f"{text[: _MOST // 2]}\n…\n{text[-_MOST // 2 :]}"
    return text or None


def count_tokens(text: str) -> int:
    """About how many tokens a text has: four ASCII characters are one, so is any other.

    >>> count_tokens("I like tea")
    3
    """
    ascii_only = len(text.encode("ascii", "ignore"))
    return -(-ascii_only // 4) + len(text) - ascii_only


def _without_blocks(text: str) -> str:
    """Cut every block out; one that is not closed reaches to the end."""
    kept = []
    while opening := _OPENING.search(text):
        kept.append(text[: opening.start()])
        text = text[opening.end() :].partition(f"</memory-context-{opening[1]}>")[2]
    return "".join([*kept, text])
