"""What goes into the queue and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

from memsheaf.sessionsearch import Item

from .operations import Rejection
from .profile import Profile

__all__ = ["Batch", "Handover", "Held", "Settled", "Unfinished"]


@dataclass(frozen=True, slots=True)
class Handover:
    """What became of items that were handed over.

    Attributes:
        accepted: Those that wait to be derived.
        repeated: Those that were handed over before.
        ignored: Those that hold nothing that the user said.
    """

    accepted: int = 0
    repeated: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Items of one user that somebody derives, and the profile before them."""

    user_id: str
    user: str
    lease: str
    last: int
    keys: tuple[str, ...]
    items: tuple[Item, ...]
    profile: Profile


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else derives a batch of the user, at least until this Unix time in seconds."""

    until: float


@dataclass(frozen=True, slots=True)
class Unfinished:
    """How many items wait, and how many users have a batch that is due or being derived."""

    waiting: int
    ready: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The profile after a batch, and the operations that were not applied."""

    profile: Profile
    rejections: tuple[Rejection, ...]
