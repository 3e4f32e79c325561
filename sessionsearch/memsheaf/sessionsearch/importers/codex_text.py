"""Whose words a text in a user's message of Codex is: the program writes there too."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["Echoes", "is_image", "split_own"]

_INJECTED = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<app-context>",
    "<apps_instructions>",
    "<codex_internal_context",
    "<collaboration_mode>",
    "<context_window",
    "<current_time_reminder>",
    "<environment_context>",
    "<environments_context>",
    "<external_",
    "<goal_context>",
    "<hook_prompt ",
    "<model_switch>",
    "<multi_agent_mode>",
    "<permissions instructions>",
    "<personality_spec>",
    "<plugins_instructions>",
    "<realtime_conversation>",
    "<recommended_plugins>",
    "<skill>",
    "<skills_instructions>",
    "<subagent_notification>",
    "<system-reminder>",
    "<turn_aborted>",
    "<user_action>",
    "<user_instructions>",
    "<user_shell_command>",
    "The following is the Codex agent history",
    "Warning: The maximum number of unified exec processes you can keep open",
    "Warning: apply_patch was requested via exec_command.",
)
_EDITOR = "# Context from my IDE setup:"
_REQUEST = "## My request for Codex:"
_IMAGE = re.compile(r"</?image\b[^>]{0,300}>")
_KEPT = 32  # texts; an echo follows within a few lines


def split_own(text: str) -> tuple[str, str]:
    """The user's own words in a text, and what the program put in.

    >>> split_own("<environment_context>...</environment_context>")[0]
    ''
    """
    start = text.lstrip()
    if start.startswith(_INJECTED):
        return "", text
    if start.startswith(_EDITOR) and _REQUEST in start:
        before, _, own = start.partition(_REQUEST)
        return own.strip(), before.strip()
    return text, ""


def is_image(text: str) -> bool:
    """Whether a text only marks the place of an image; the echo of a message has no such marks."""
    return text == "[image]" or _IMAGE.fullmatch(text.strip()) is not None


class Echoes:
    """Tells a text from its echo: Codex writes most texts into two or three kinds of lines.

    The n-th time of a text in one kind of line is the n-th time in each other kind.

    Args:
        kept: What `dump` gave at the end of the last import of the file.
    """

    def __init__(self, kept: Mapping[str, str]) -> None:
        self._counts = {mark: _read(text) for mark, text in kept.items()}

    def is_one(self, mark: str, kind: str) -> bool:
        """Whether a text was told by another kind of line as often as by this one now."""
        counts = self._counts.pop(mark, {})
        most = max(counts.values(), default=0)
        counts[kind] = counts.get(kind, 0) + 1
        self._counts[mark] = counts
        if len(self._counts) > _KEPT:
            del self._counts[next(iter(self._counts))]
        return counts[kind] <= most

    def dump(self) -> dict[str, str]:
        """What the next import of the file needs."""
        return {
            mark: " ".join(f"{kind}={number}" for kind, number in counts.items())
            for mark, counts in self._counts.items()
        }


def _read(text: str) -> dict[str, int]:
    pairs = (part.partition("=") for part in text.split())
    return {kind: int(number) for kind, _, number in pairs}
