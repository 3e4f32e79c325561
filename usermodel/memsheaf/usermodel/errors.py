"""What the user model raises beside the stack's errors.

ProviderError
├── QueueFull        the queue holds all that it may; nothing was taken
└── DeriverFailed    a deriver raised; nothing changed, and its items wait
"""

from __future__ import annotations

from memsheaf.stack import ProviderError

__all__ = ["DeriverFailed", "QueueFull"]


class QueueFull(ProviderError):
    """The queue holds as many items as it may; nothing of the call was taken."""


class DeriverFailed(ProviderError):
    """A deriver raised; the profile is as it was, and the items are tried again."""
