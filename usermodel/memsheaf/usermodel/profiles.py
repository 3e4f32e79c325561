"""Profiles in rows: the current state, the changes that led to it, and what was forgotten."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .ageing import AGED
from .codec import Tombstone, corrupt, decode_profile, encode_profile, to_json
from .profile import LineOrigin, Profile
from .rows import Reader, Writer

__all__ = [
    "Action",
    "Change",
    "delete_profile",
    "differences",
    "read_changes",
    "read_forget_mark",
    "read_profile",
    "read_revision",
    "read_users",
    "write_forget_mark",
    "write_profile",
]

_USERS = "user"
Action = Literal[
    "added",
    "confirmed",
    "weakened",
    "superseded",
    "retracted",
    "aged",
    "corrected",
    "forgotten",
]


@dataclass(frozen=True, slots=True)
class Change:
    """What one version did to one line.

    Attributes:
        version: The profile's version after it.
        at: When it was applied; aware UTC.
        by: The deriver's name, or `user`.
        action: What happened.
        line_id: The line.
        text: The line's text, or None where it was forgotten, or ended so long ago that it went.
        sources: Ids of the items that led to it.
    """

    version: int
    at: datetime
    by: str
    action: Action
    line_id: str
    text: str | None
    sources: tuple[str, ...]


def read_profile(rows: Reader, user: str, user_id: str) -> tuple[Profile, tuple[Tombstone, ...]]:
    """A user's profile and tombstones; an empty profile where nothing is known."""
    text = rows.get(_profile_key(user))
    return (Profile(user_id), ()) if text is None else decode_profile(text)


def read_revision(rows: Reader, user: str) -> str | None:
    """What each writing of a profile has for itself; None where nothing is known."""
    return rows.tag(_profile_key(user))


def write_profile(
    rows: Writer,
    user: str,
    before: Profile,
    after: Profile,
    tombstones: Sequence[Tombstone],
    at: datetime,
    by: str,
) -> None:
    """Replace a profile; a new version also gets a row of its changes, which holds no text."""
    rows.put(_profile_key(user), encode_profile(after, tombstones), tag=uuid.uuid4().hex)
    if before.version == 0:
        rows.put(f"user/{user}", after.user_id, _USERS)
    if after.version != before.version:
        steps = differences(before, after)
        rows.put(f"change/{user}/{after.version:012d}", to_json([at.isoformat(), by, steps]))


def read_forget_mark(rows: Reader, user: str) -> str:
    """What changes with each forget of a user."""
    return rows.get(f"forgotten/{user}") or "nothing"


def write_forget_mark(rows: Writer, user: str) -> None:
    """Note that something of a user is forgotten."""
    rows.put(f"forgotten/{user}", uuid.uuid4().hex)


def delete_profile(rows: Writer, user: str) -> None:
    """Delete a profile and its history."""
    rows.delete(_profile_key(user))
    rows.delete(f"user/{user}")
    for row in rows.under(f"change/{user}/"):
        rows.delete(row.key)


def read_users(rows: Reader) -> tuple[str, ...]:
    """Ids of all users who have a profile, in order."""
    return tuple(sorted(row.value for row in rows.tagged(_USERS)))


def read_changes(rows: Reader, user: str, profile: Profile) -> Iterator[Change]:
    """Every change of a user's profile, oldest first."""
    texts = {line.id: line.text for line in profile.lines}
    for row in rows.under(f"change/{user}/"):
        version = int(row.key.rpartition("/")[2])
        try:
            at, by, steps = json.loads(row.value)
            moment = datetime.fromisoformat(at)
            for action, line_id, sources in steps:
                text = texts.get(line_id)
                yield Change(version, moment, by, action, line_id, text, tuple(sources))
        except (ValueError, TypeError) as error:
            raise corrupt() from error


def differences(before: Profile, after: Profile) -> list[tuple[Action, str, tuple[str, ...]]]:
    """What changed, line by line: the action, the line's id and the items that led to it."""
    old = {line.id: line for line in before.lines}
    found: list[tuple[Action, str, tuple[str, ...]]] = []
    for line in after.lines:
        was = old.pop(line.id, None)
        if was is None:
            action: Action = "corrected" if line.origin is LineOrigin.USER else "added"
            found.append((action, line.id, line.sources))
        elif line.origin is not was.origin:
            found.append(("corrected", line.id, ()))
        elif line.times != was.times:
            fresh = tuple(source for source in line.sources if source not in was.sources)
            found.append(("confirmed" if line.times > was.times else "weakened", line.id, fresh))
        if not line.is_current and (was is None or was.is_current):
            ending: Action = "superseded" if line.superseded_by else "retracted"
            if line.reason == AGED:
                ending = "aged"
            found.append((ending, line.id, line.ended_by))
    return found + [("forgotten", line_id, ()) for line_id in old]


def _profile_key(user: str) -> str:
    return f"profile/{user}"
