"""Every error that Memsheaf raises.

MemsheafError
├── UsageError (ValueError)      the call was wrong; nothing was written
│   ├── InvalidRecord            a record's field is outside its rules
│   ├── InvalidQuery             a limit, order, cursor, filter or text is wrong
│   ├── ScopeError               no scope, an unusable one, or one that may not be written
│   └── IdUnavailable            the id cannot be used in this scope
├── ConfigError                  a setting is wrong; names file, key and fix
├── RegistrationError            an object cannot be mounted as a provider
├── NotFound (LookupError)       no such record in this scope
├── Refused                      a guard hook vetoed the operation
├── ClosedError                  the stack or provider is closed
└── ProviderError                a provider failed; `.provider` names it
    ├── ProviderUnavailable      it cannot be reached or opened
    ├── ProviderTimeout          it did not answer in time
    ├── StoreCorrupt             its files are damaged or foreign
    ├── StorageFull              its disk is full or read-only
    ├── MissingExtra             a package is missing; names the extra to install
    ├── StoreFailed              no provider took a write; `.outcomes` tells each one's reason
    └── Incomplete               no provider found it and some could not answer; `.outcomes`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Outcome

__all__ = [
    "ClosedError",
    "ConfigError",
    "IdUnavailable",
    "Incomplete",
    "InvalidQuery",
    "InvalidRecord",
    "MemsheafError",
    "MissingExtra",
    "NotFound",
    "ProviderError",
    "ProviderTimeout",
    "ProviderUnavailable",
    "Refused",
    "RegistrationError",
    "ScopeError",
    "StorageFull",
    "StoreCorrupt",
    "StoreFailed",
    "UsageError",
]


class MemsheafError(Exception):
    """Base of every error of ours. Messages never hold memory text or secrets."""


class UsageError(MemsheafError, ValueError):
    """The call was wrong; nothing was written."""


class InvalidRecord(UsageError):
    """A record's field is outside its rules."""


class InvalidQuery(UsageError):
    """A limit, order, cursor, filter or query text is wrong."""


class ScopeError(UsageError):
    """No scope was given, it is unusable, or it may not be written."""


class IdUnavailable(UsageError):
    """The id cannot be used in this scope; whether anyone holds it is not said."""


class ConfigError(MemsheafError):
    """A setting is wrong. The message names file, key and fix."""


class RegistrationError(MemsheafError):
    """An object cannot be mounted as a provider."""


class NotFound(MemsheafError, LookupError):
    """No such record in this scope."""


class Refused(MemsheafError):
    """A guard hook vetoed the operation; the guard's own error is chained."""


class ClosedError(MemsheafError):
    """The stack or provider is closed; open a new one."""


class ProviderError(MemsheafError):
    """A provider failed.

    Args:
        message: What happened and the next step, without memory text.
        provider: The provider's configured name.
    """

    def __init__(self, message: str, *, provider: str | None = None) -> None:
        super().__init__(f"{provider}: {message}" if provider else message)
        self.provider = provider


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached or opened."""


class ProviderTimeout(ProviderError):
    """The provider did not answer in time."""


class StoreCorrupt(ProviderError):
    """The provider's files are damaged or belong to something else; nothing was deleted."""


class StorageFull(ProviderError):
    """The provider's disk is full or read-only."""


class MissingExtra(ProviderError):
    """An optional package is missing; the message names the extra to install."""


class _WithOutcomes(ProviderError):
    """A provider error that carries what each provider did."""

    def __init__(self, message: str, *, outcomes: Sequence[Outcome]) -> None:
        told = "; ".join(str(o) for o in outcomes if o.status != "ok")
        super().__init__(f"{message}: {told}" if told else message)
        self.outcomes = tuple(outcomes)


class StoreFailed(_WithOutcomes):
    """No provider took a write; `.outcomes` tells each one's reason."""


class Incomplete(_WithOutcomes):
    """Nothing was found, and some providers could not answer; `.outcomes` tells which."""
