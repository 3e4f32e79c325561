"""Scope: whose memory a record is, and whose memories a query may see."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, get_args

from .errors import ScopeError

__all__ = ["SCOPE_FIELDS", "Scope", "ScopeField", "ScopePreset"]

ScopeField = Literal["user_id", "agent_id", "session_id", "namespace"]
ScopePreset = Literal["agent", "user", "session", "global"]
SCOPE_FIELDS: tuple[ScopeField, ...] = get_args(ScopeField)
_MAX_LENGTH = 512
_UNUSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

_PRESETS: dict[str, tuple[ScopeField, ...]] = {
    "agent": ("agent_id", "user_id"),
    "user": ("user_id",),
    "session": ("session_id", "agent_id", "user_id"),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory. On a record it names the owner; in a query a set field must be equal.

    An empty string is an absent field. An unset field of a query matches anything, so a query
    by user finds what any agent stored for that user; a query by user and agent does not find
    a record that names only the user.

    Args:
        user_id: The person.
        agent_id: The agent.
        session_id: The conversation.
        namespace: A tenant, project or other partition.

    Raises:
        ScopeError: A field is not text, is only white space, holds control characters, or is
            longer than 512 characters.

    >>> Scope(user_id="mira").matches(Scope(user_id="mira", agent_id="cook"))
    True
    >>> Scope(user_id="mira", agent_id="cook").matches(Scope(user_id="mira"))
    False
    """

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    namespace: str | None = None

    EVERYONE: ClassVar[Scope]
    """Reads every record of every owner. Never a scope to write."""

    def __post_init__(self) -> None:
        for name in SCOPE_FIELDS:
            value: object = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise ScopeError(f"{name} must be text, not {type(value).__name__}")
            if value == "":
                object.__setattr__(self, name, None)
            elif value.isspace():
                raise ScopeError(f"{name} is only white space; give an id or leave it out")
            elif len(value) > _MAX_LENGTH:
                raise ScopeError(f"{name} is longer than {_MAX_LENGTH} characters")
            elif _UNUSABLE.search(value):
                raise ScopeError(f"{name} holds control characters or lone surrogates")

    @property
    def is_everyone(self) -> bool:
        """Whether this is `Scope.EVERYONE`."""
        return isinstance(self, _Everyone)

    def set_fields(self) -> dict[ScopeField, str]:
        """The fields that are set, in the fixed order user, agent, session, namespace."""
        pairs = zip(SCOPE_FIELDS, self.key(), strict=True)
        return {name: value for name, value in pairs if value is not None}

    def key(self) -> tuple[str | None, str | None, str | None, str | None]:
        """The four fields as a tuple: user, agent, session, namespace."""
        return (self.user_id, self.agent_id, self.session_id, self.namespace)

    def matches(self, owner: Scope) -> bool:
        """Whether a query with this scope may see a record that `owner` holds.

        A scope with no field set matches nothing: only `Scope.EVERYONE` matches everything.
        """
        user, agent, session, space = self.user_id, self.agent_id, self.session_id, self.namespace
        return (
            (user is None or user == owner.user_id)
            and (agent is None or agent == owner.agent_id)
            and (session is None or session == owner.session_id)
            and (space is None or space == owner.namespace)
            and not (user is None and agent is None and session is None and space is None)
        )

    def require_readable(self) -> Scope:
        """Return this scope, or raise where no field is set.

        Raises:
            ScopeError: No field is set and this is not `Scope.EVERYONE`.
        """
        if not self.is_everyone and self.key() == (None, None, None, None):
            raise ScopeError(
                "the scope has no field set; set user_id, agent_id, session_id or namespace, "
                "or use Scope.EVERYONE to read everything"
            )
        return self

    def require_writable(self) -> Scope:
        """Return this scope, or raise where a record cannot be stored under it.

        Raises:
            ScopeError: No field is set, or this is `Scope.EVERYONE`.
        """
        if self.is_everyone:
            raise ScopeError("Scope.EVERYONE cannot be written; name whose memory it is")
        return self.require_readable()

    def preset(self, name: ScopePreset) -> Scope:
        """Narrow or widen this identity to a named reach.

        ``agent`` keeps agent and user, ``user`` the user, ``session`` session, agent and user,
        ``global`` is `Scope.EVERYONE`. A namespace that is set is kept by all but ``global``.

        Raises:
            ScopeError: The preset is unknown, or the field that names it is unset.

        >>> Scope(user_id="mira", agent_id="cook").preset("user")
        Scope(user_id='mira', agent_id=None, session_id=None, namespace=None)
        """
        if name == "global":
            return Scope.EVERYONE
        kept = _PRESETS.get(name)
        if kept is None:
            raise ScopeError(f"unknown scope preset {name!r}; use agent, user, session or global")
        if getattr(self, kept[0]) is None:
            raise ScopeError(f"the preset {name!r} needs {kept[0]}, which is not set")
        dropped = [f.name for f in fields(self) if f.name not in kept and f.name != "namespace"]
        return replace(self, **dict.fromkeys(dropped))

    def __str__(self) -> str:
        """A short form for messages: ``user_id=mira agent_id=cook``."""
        return " ".join(f"{name}={value}" for name, value in self.set_fields().items()) or "(none)"


@dataclass(frozen=True, slots=True)
class _Everyone(Scope):
    def __post_init__(self) -> None:
        Scope.__post_init__(self)
        if self.key() != (None, None, None, None):  # it would still match every owner
            raise ScopeError("Scope.EVERYONE cannot be narrowed; make a Scope of its own")

    def matches(self, owner: Scope) -> bool:
        return True

    def __repr__(self) -> str:
        return "Scope.EVERYONE"

    def __str__(self) -> str:
        return "everyone"


Scope.EVERYONE = _Everyone()
