"""One line of Claude Code, and the items that are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .base import Entry
from .claude_text import Piece
from .render import as_text, chain, entry, label, moment, place, some
from .source import Problem

__all__ = ["Line"]


@dataclass(slots=True)
class Line:
    """What the items of one line have in common.

    Args:
        number: Its number in the file.
        conversation: The conversation that it belongs to.
        side: Whether a sub-agent wrote it.
        value: The line.
        message: Its message, or an empty object.
        state: Of the source; holds the last key of a line without an id.
        count: How many items were made of it.
    """

    number: int
    conversation: str
    side: bool
    value: Mapping[str, Any]
    message: Mapping[str, Any]
    state: dict[str, Any]
    count: int = 0

    def item(
        self, *, response: bool = False, key: str | None = None, **fields: Any
    ) -> Entry | Problem:
        """An item.

        Args:
            response: Whether it is a part of an answer of the model, which may go over lines.
            key: What makes it one, where the line has no id.
            fields: Those of `NewItem` that a line does not tell.
        """
        value, message = self.value, self.message
        uuid = value.get("uuid")
        if isinstance(uuid, str) and uuid:
            key = f"{uuid}:{self.count}"
        elif key is None:
            stamp, before = as_text(value.get("timestamp")), self.state.get("chain", "")
            key = chain(before, self.conversation, stamp, fields["text"])
            self.state["chain"] = key
        self.count += 1
        return entry(
            self.conversation,
            self.number,
            key=key,
            created_at=moment(value.get("timestamp")),
            response_id=label(message.get("id")) if response else None,
            metadata=some(
                id=label(uuid),
                parent=label(value.get("parentUuid")),
                model=label(message.get("model")),
                project=place(value.get("cwd")),
                branch=label(value.get("gitBranch")),
                sidechain=self.side or None,
                agent=label(value.get("agentId")),
            ),
            **fields,
        )

    def piece(self, piece: Piece, **fields: Any) -> Entry | Problem:
        """An item for a part of a text."""
        return self.item(
            type=piece.type, role=piece.role, origin=piece.origin, text=piece.text, **fields
        )
