"""Conversations and their items as lines for a terminal and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from .terminal import safe

if TYPE_CHECKING:
    from memsheaf.sessionsearch import Conversation, Item, SessionHit

__all__ = [
    "about",
    "conversation_json",
    "counted",
    "hit_json",
    "item_json",
    "marked",
    "moment",
    "short",
    "shown_text",
]

_LONG = 1200  # characters of an item that are shown where many are


def about(conversation: Conversation) -> str:
    """A conversation on one line: title, when, how many items, where from."""
    facts = [short(conversation.title) or "no title", moment(conversation.updated_at)]
    facts.append(counted(conversation.item_count, "item"))
    for name in ("format", "project"):
        if isinstance(value := conversation.metadata.get(name), str):
            facts.append(short(value))
    return "  ".join(facts)


def counted(number: int, thing: str) -> str:
    """A number and what it counts.

    >>> counted(1, "item"), counted(2000, "item")
    ('1 item', '2,000 items')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def moment(time: datetime | None) -> str:
    """A time to the minute."""
    return "no time" if time is None else f"{time:%Y-%m-%d %H:%M}"


def short(text: str, size: int = 80) -> str:
    r"""A text on one line, safe and cut.

    >>> short("one\ntwo three", 8)
    'one two…'
    """
    line = " ".join(text[: size * 4].split())
    return safe(line if len(line) <= size else f"{line[: size - 1].rstrip()}…")


def marked(snippet: str, bright: bool) -> str:
    """A snippet; its marks « » become bold where the terminal shows it."""
    line = safe(snippet)
    if not bright:
        return line
    parts = [part.partition("»") for part in line.split("«")]
    return parts[0][0] + "".join(click.style(word, bold=True) + rest for word, _, rest in parts[1:])


def shown_text(item: Item, whole: bool) -> str:
    """The words of an item, line by line, cut where it is long and not wanted whole."""
    from memsheaf.sessionsearch.content import content_of

    text = (item.text or content_of(item)).replace("\r\n", "\n").expandtabs(4).rstrip()
    if not whole and len(text) > _LONG:
        text = f"{text[:_LONG].rstrip()}\n… {len(text) - _LONG} characters more; --full shows them"
    return safe(text, lines=True)


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    """A conversation as JSON."""
    return {
        "id": conversation.id,
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "items": conversation.item_count,
        "metadata": dict(conversation.metadata),
        "scope": conversation.scope.set_fields(),
    }


def item_json(item: Item) -> dict[str, Any]:
    """An item as JSON."""
    return {
        "id": item.id,
        "conversation": item.conversation,
        "seq": item.seq,
        "type": item.type,
        "role": item.role,
        "origin": str(item.origin),
        "text": item.text,
        "created_at": item.created_at.isoformat() if item.created_at else None,
        "status": item.status,
        "response_id": item.response_id,
        "data": dict(item.data),
        "metadata": dict(item.metadata),
    }


def hit_json(hit: SessionHit) -> dict[str, Any]:
    """A hit as JSON."""
    return {
        **item_json(hit.item),
        "title": hit.title,
        "score": hit.score,
        "relevance": hit.relevance,
        "snippet": hit.snippet,
        "copies": list(hit.copies),
    }
