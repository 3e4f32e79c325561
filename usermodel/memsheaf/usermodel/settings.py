"""How refreshes are batched, how long they are tried, and what the queue holds."""

from __future__ import annotations

from dataclasses import dataclass, fields

from memsheaf.stack import ConfigError

__all__ = ["RefreshSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """The settings of the background refresh.

    Args:
        batch_items: The most items of a batch.
        batch_tokens: Waiting items that are together this long are derived at once, and a batch
            is no longer, unless its first item is.
        max_age: Seconds after which waiting items are derived, however few.
        capacity: The most items that the queue holds, those set aside included.
        workers: How many users are derived at once by this process.
        lease: Seconds for which a process holds a user's batch without a sign of life.
        derive_seconds: Seconds after which a derivation counts as hung.
        attempts: How often a batch is tried before it is set aside; each try takes fewer items.
        backoff: Seconds before the second try; they double with each try.
        max_backoff: The longest wait between tries in seconds.
        poll: Seconds between looks for what other processes handed over.
        close_seconds: The longest that closing waits for what is due.
    """

    batch_items: int = 50
    batch_tokens: int = 2_000
    max_age: float = 30.0
    capacity: int = 100_000
    workers: int = 4
    lease: float = 30.0
    derive_seconds: float = 300.0
    attempts: int = 6
    backoff: float = 1.0
    max_backoff: float = 300.0
    poll: float = 1.0
    close_seconds: float = 10.0

    @property
    def horizon(self) -> float:
        """Seconds; a time that lies further ahead comes from a clock that was wrong."""
        return 2 * max(self.max_age, self.max_backoff, self.lease) + 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 1 if isinstance(field.default, int) else 0
            if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
                raise ConfigError(f"{field.name} must be a number of at least {least}")
