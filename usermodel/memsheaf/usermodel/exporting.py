"""All that is kept of a user, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .codec import line_to_json
from .profile import Profile
from .profiles import Change
from .status import QueuedItem

__all__ = ["export_profile"]


def export_profile(
    profile: Profile, history: Iterable[Change], waiting: Iterable[QueuedItem]
) -> dict[str, Any]:
    """A profile with its lines, its history, and what waits."""
    return {
        "user_id": profile.user_id,
        "version": profile.version,
        "lines": [line_to_json(line) for line in profile.lines],
        "history": [
            {
                "version": change.version,
                "at": change.at.isoformat(),
                "by": change.by,
                "action": change.action,
                "line_id": change.line_id,
                "sources": list(change.sources),
            }
            for change in history
        ],
        "waiting": [
            {"item_id": item.item_id, "state": item.state, "since": item.since.isoformat()}
            for item in waiting
        ],
    }
