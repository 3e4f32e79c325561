"""The deriver: reads what a user said, and says how the profile changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from memsheaf.sessionsearch import Item
from memsheaf.stack import RegistrationError, Registry

from .operations import Operation
from .profile import Profile

__all__ = ["Deriver", "QuestioningDeriver", "load_deriver"]


@runtime_checkable
class Deriver(Protocol):
    """Turns what a user said into operations on the user's profile.

    It is called from several threads at once, never for one user at the same time. It may raise:
    then nothing changes, and the items are tried again later.
    """

    @property
    def name(self) -> str:
        """What the history calls it."""
        ...

    def derive(self, profile: Profile, items: Sequence[Item]) -> Sequence[Operation]:
        """The changes that new items bring.

        Args:
            profile: The profile before them.
            items: What the user said, oldest first; only messages of the user.

        Returns:
            Operations, applied in order; empty where nothing changes. One that names no item
            of the batch as its source, or an unknown line, is rejected.
        """
        ...


@runtime_checkable
class QuestioningDeriver(Deriver, Protocol):
    """A deriver with a second pass, which questions what the pass before proposed."""

    def question(
        self, profile: Profile, operations: Sequence[Operation], items: Sequence[Item]
    ) -> Sequence[Operation]:
        """The operations that remain: is each one supported, and what contradicts it?"""
        ...


def load_deriver(name: str, **options: Any) -> Deriver:
    """Make the deriver that an entry point of `memsheaf.derivers` names.

    Args:
        name: Its name.
        options: Passed to the class or function behind the entry point.

    Raises:
        RegistrationError: The name is unknown, the plugin is broken or takes other options.
    """
    factory = Registry("memsheaf.derivers").load(name)
    if not callable(factory):
        raise RegistrationError(f"deriver {name}: the entry point must name a class or a function")
    try:
        made = factory(**options)
    except TypeError as error:
        raise RegistrationError(f"deriver {name} does not take these options: {error}") from error
    if not isinstance(made, Deriver):
        raise RegistrationError(f"deriver {name} has no name or no derive(profile, items)")
    return made
