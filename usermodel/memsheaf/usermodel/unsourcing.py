"""Sources that are gone: a line stays only where another item says it, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from memsheaf.sessionsearch import Item

from .profile import Line, Profile

__all__ = ["is_gone_test", "without_sources"]

IsGone = Callable[[str], bool]


def is_gone_test(items: Iterable[Item | str], conversations: Iterable[str]) -> IsGone:
    """Whether an item is meant, by its id or its conversation.

    >>> is_gone = is_gone_test(["a:1"], ["b"])
    >>> [is_gone(item_id) for item_id in ("a:1", "a:11", "b:0", "bb:0")]
    [True, False, True, False]
    """
    ids = {item.id if isinstance(item, Item) else item for item in items}
    talks = set(conversations)
    return lambda item_id: item_id in ids or item_id.rpartition(":")[0] in talks


def without_sources(profile: Profile, is_gone: IsGone) -> Profile:
    """A profile without these sources: what nothing else says is deleted, the rest counts less.

    Lines that the user wrote have no sources, and stay.
    """
    kept: dict[str, Line] = {}
    for line in profile.lines:
        sources = tuple(source for source in line.sources if not is_gone(source))
        if line.sources and not sources:
            continue
        ended_by = tuple(source for source in line.ended_by if not is_gone(source))
        if len(sources) < len(line.sources) or ended_by != line.ended_by:
            times = max(1, line.times - len(line.sources) + len(sources))
            line = replace(line, sources=sources, times=times, ended_by=ended_by)
        kept[line.id] = line
    lines = tuple(
        replace(line, superseded_by=None)
        if line.superseded_by is not None and line.superseded_by not in kept
        else line
        for line in kept.values()
    )
    if lines == profile.lines:
        return profile
    return replace(profile, version=profile.version + 1, lines=lines)
