"""The arguments of a session search, checked, as an index takes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from memsheaf.index import content_words, get_analyzer, terms
from memsheaf.stack import InvalidQuery, Scope

from .indexes import ItemQuery, Sort
from .log import ConversationLog
from .log_values import time_of
from .snippets import EDGES

__all__ = ["Moment", "Names", "asked_words", "limit_of", "query_of"]

Moment = datetime | str | float
Names = str | Iterable[str]

_MOST = 1000
_SORTS = ("relevance", "newest", "oldest")
_ANALYZER = get_analyzer("english")


def query_of(
    log: ConversationLog,
    text: str,
    scope: Scope,
    conversation: Names | None,
    roles: Names | None,
    types: Names | None,
    since: Moment | None,
    until: Moment | None,
    project: str | None,
    sort: Sort,
) -> ItemQuery:
    """What is looked for, and where.

    Raises:
        InvalidQuery: Something is not what it should be.
        ScopeError: The scope has no field set.
    """
    scope.require_readable()
    if not isinstance(text, str):
        raise InvalidQuery(f"a query must be text, not {type(text).__name__}")
    if sort not in _SORTS:
        raise InvalidQuery(f"sort must be one of {', '.join(_SORTS)}")
    if project is not None and not isinstance(project, str):
        raise InvalidQuery("project must be text")
    wanted = names_of("conversation", conversation)
    return ItemQuery(
        text=text,
        scope=scope,
        conversations=None if wanted is None else log.numbers(wanted, scope),
        project=project,
        roles=names_of("roles", roles),
        types=names_of("types", types),
        since=time_of("since", since),
        until=time_of("until", until),
        sort=sort,
    )


def limit_of(value: object) -> int:
    """A limit, from 0 to 1,000."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidQuery(f"a limit must be a whole number, not {type(value).__name__}")
    if not 0 <= value <= _MOST:
        raise InvalidQuery(f"a limit must lie between 0 and {_MOST}")
    return value


def names_of(what: str, value: Names | None) -> frozenset[str] | None:
    """One name or several."""
    if value is None:
        return None
    names = frozenset([value] if isinstance(value, str) else value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidQuery(f"{what} must be text, or several")
    return names


def asked_words(text: str) -> tuple[str, ...]:
    """The words of a query that are looked for, each once, as they were typed.

    >>> asked_words("Where did we discuss the retries, and the retries?")
    ('discuss', 'retries')
    """
    words = (word.strip(EDGES) or word for word in content_words(text).split())
    return tuple(dict.fromkeys(word for word in words if terms(_ANALYZER, word)))
