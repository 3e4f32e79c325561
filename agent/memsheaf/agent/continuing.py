"""Where a list of messages goes on: which of its items a log does not have yet.

A framework hands over the conversation as it holds it: with its beginning cut off or summed up, old
tool results dropped, answers changed, the last question asked anew. What stays is what the user
said; so the turns are told by the user's messages, and nothing else is compared but within a turn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import count

from memsheaf.sessionsearch import Item, NewItem
from memsheaf.stack.text import clean

__all__ = ["enough", "is_clear", "keyed", "new_items"]

_FEW = 64
_LONG = 80  # characters of an answer that nobody gives twice


def enough(items: Sequence[NewItem]) -> tuple[int, int]:
    """How many of a log's last messages mostly tell where these go on, and how many always do."""
    most = 2 * len(items) + _FEW
    return min(_FEW, most), most


def is_clear(items: Sequence[NewItem], held: Sequence[Item]) -> bool:
    """Whether more of the log's messages could not change where these go on."""
    runs = _runs(_users(items), _users(held))
    longest = max(runs, default=0)
    return longest > 0 and runs.count(longest) == 1


def new_items(
    items: Sequence[NewItem], held: Sequence[Item], next_seq: int, *, complete: bool
) -> list[NewItem]:
    """Those of a conversation's items that a log does not have.

    Of two readings the one that loses nothing counts. Only a turn that says word for word what the
    last one said, and is answered the same, is taken for the last one where the list's beginning
    is cut off.

    Args:
        items: The items of a request and its answer, from `items_of`.
        held: The log's last messages, oldest first: `enough`, or all where there are fewer; and
            everything that it has after the last of the user's.
        next_seq: The number that the next item will get.
        complete: Whether the log has no earlier messages.

    Returns:
        The new ones, with keys by which two writers of the same turn keep it once, and by which
        what was erased from the log is known again.
    """
    said = [place for place, item in enumerate(items) if _is_users(item)]
    known = [place for place, item in enumerate(held) if _is_users(item)]
    told, old = _users(items), _users(held)
    last = _runs(told, old)
    if any(last):
        at = said[last.index(max(last))]
        return _go_on(items, at, held[known[-1]], held[known[-1] + 1 :], next_seq)
    if len(said) > 1 and known and _share(items[said[0] : said[1]], held[known[-1] :]):
        return keyed(items[said[1] :], next_seq)  # a summary before the rest of the last turn
    for number in range(len(known) - 1, 0, -1):
        run, asked = _runs(told, old[:number]), known[number - 1]
        if run[-1:] == [len(said)] and len(said) > 1:  # an old list, or another end of it
            other = _answers(items[said[-1] :]) - _answers(held[asked : known[number]])
            return keyed(items[said[-1] :], next_seq) if other else []
        place = _parted(run[:-1], number if complete else None)
        if place is not None:  # the question after it was asked anew
            return keyed(items[said[place + 1] :], next_seq)
    if complete and not known:  # whatever the log had is erased, or was no message of the user
        places = range(_led(items[: said[0] if said else None], held), len(items))
        return _numbered(items, places, 0, next_seq)
    first = _led(items[: said[0] if said else None], held[known[-1] + 1 if known else 0 :])
    return keyed(items[first:], next_seq)


def keyed(items: Iterable[NewItem], seq: int) -> list[NewItem]:
    """Items with the keys of these numbers."""
    return [_with_key(item, seq + n) for n, item in enumerate(items)]


def _go_on(
    items: Sequence[NewItem], at: int, asked: Item, answers: Sequence[Item], next_seq: int
) -> list[NewItem]:
    """What follows the user's last message that the log has, which stands at a place."""
    end = next((n for n in range(at + 1, len(items)) if _is_users(items[n])), len(items))
    left = Counter(map(_told, answers))
    fresh: list[int] = []
    for place in range(at + 1, end):
        told = _told(items[place])
        if left[told] > 0:
            left[told] -= 1
        else:
            fresh.append(place)
    answered = any(item.type == "message" for item in answers)
    begun = [_told(item) for item in items[at + 1 : end]][: len(answers)]
    if end < len(items):
        places = ([] if answered else fresh) + list(range(end, len(items)))
    elif begun == [_told(item) for item in answers]:
        places = list(range(at + 1 + len(answers), end))
        if answered and end == at + 1:
            return keyed(items[at:], next_seq)  # said again, and not answered yet
    elif not answered:
        places = fresh
    elif any(left[_told(item)] for item in answers if item.type == "message") or any(
        items[n].type != "tool_result" for n in fresh
    ):
        return keyed(items[at:], next_seq)  # the same words, answered in another way: said again
    else:
        places = []
    return _numbered(items, places, asked.seq - at, next_seq)


def _numbered(
    items: Sequence[NewItem], places: Iterable[int], first: int, next_seq: int
) -> list[NewItem]:
    """The items of some places, with the keys of the numbers that they had or get.

    An item that was erased from the log had the number that its place tells; its key is known.
    """
    following = count(next_seq)
    numbers = ((n, first + n) for n in places)
    return [_with_key(items[n], seq if seq < next_seq else next(following)) for n, seq in numbers]


def _parted(run: Sequence[int], number: int | None) -> int | None:
    """Where the last of the user's messages stands that both have, before they part.

    Two messages in a row tell, or all from the beginning of both, which `number` counts.
    """
    longest = max(run, default=0)
    if longest > 1:
        return run.index(longest)
    return 0 if longest == 1 == number and run[0] == 1 else None


def _share(items: Sequence[NewItem], answers: Sequence[Item]) -> bool:
    """Whether both hold what does not come twice by chance: a call's id, or a long answer."""
    own = [
        {_told(one) for one in some if one.data.get("id") or len(one.text) >= _LONG}
        for some in (items, answers)
    ]
    return bool(own[0] & own[1])


def _answers(items: Sequence[NewItem | Item]) -> set[str]:
    return {_told(item) for item in items if item.type == "message" and not _is_users(item)}


def _users(items: Sequence[NewItem | Item]) -> list[str]:
    return [_told(item) for item in items if _is_users(item)]


def _runs(said: Sequence[str], known: Sequence[str]) -> list[int]:
    """How many of the texts up to each place are the same as the last known ones, in a row."""
    runs: list[int] = []
    for place in range(len(said)):
        size = 0
        while size <= place and size < len(known) and said[place - size] == known[-1 - size]:
            size += 1
        runs.append(size)
    return runs


def _led(lead: Sequence[NewItem], answers: Sequence[Item]) -> int:
    """How many of the items before the user's first words the log ends with."""
    told, held = [_told(item) for item in lead], [_told(item) for item in answers]
    sizes = range(min(len(told), len(held)), 0, -1)
    return next((size for size in sizes if told[:size] == held[-size:]), 0)


def _is_users(item: NewItem | Item) -> bool:
    return item.type == "message" and item.role == "user"


def _told(item: NewItem | Item) -> str:
    """What two records of the same item have in common, whatever their white space."""
    held = json.dumps([item.type, item.role, dict(item.data)], ensure_ascii=False, sort_keys=True)
    return f"{clean(held)} {' '.join(item.text.split())}"


def _with_key(item: NewItem, seq: int) -> NewItem:
    told = _told(item).encode("utf-8")
    return replace(item, key=f"turn:{seq}:{blake2b(told, digest_size=12).hexdigest()}")
