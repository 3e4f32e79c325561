"""Who may do what: a person's agent remembers, a sub-agent reads, a nightly job reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memsheaf.stack import UsageError

__all__ = ["Access", "Policy", "TurnOrigin"]


class Access(StrEnum):
    """What a run may do with memory."""

    FULL = "full"
    READ_ONLY = "read_only"
    OFF = "off"

    @property
    def reads(self) -> bool:
        """Whether memories may be recalled and injected."""
        return self is not Access.OFF

    @property
    def writes(self) -> bool:
        """Whether anything may be remembered, learned or forgotten."""
        return self is Access.FULL


class TurnOrigin(StrEnum):
    """Who started a run: a person, another agent, or a clock."""

    PRIMARY = "primary"
    SUB_AGENT = "sub_agent"
    AUTOMATION = "automation"


@dataclass(frozen=True, slots=True)
class Policy:
    """The access of each origin.

    Words of a sub-agent's task and of a scheduled job are nobody's own words; so by default they
    teach nothing about the user and store nothing in the user's name.

    >>> Policy().access("automation")
    <Access.READ_ONLY: 'read_only'>
    """

    primary: Access = Access.FULL
    sub_agent: Access = Access.READ_ONLY
    automation: Access = Access.READ_ONLY

    def access(self, origin: TurnOrigin | str) -> Access:
        """The access of an origin.

        Raises:
            UsageError: There is no such origin.
        """
        try:
            name = TurnOrigin(origin).value
        except ValueError:
            raise UsageError(f"origin must be one of {', '.join(TurnOrigin)}") from None
        return Access(getattr(self, name))
