"""user: show, ask, history, learn, refresh, correct, forget, export and status."""

from __future__ import annotations

import click

from memsheaf.interfaces.lazy import LazyGroup

__all__ = ["COMMANDS"]

# Command to its module and the line that `--help` shows.
_SUBCOMMANDS = {
    "show": ("user_read", "Show what is known of a user, with the sources."),
    "ask": ("user_read", "Answer a question from the profile, with the lines that say so."),
    "history": ("user_read", "Show how the profile came to be."),
    "status": ("user_read", "Tell what waits to be learned, and what failed."),
    "export": ("user_read", "Write all that is kept of a user as JSON."),
    "learn": ("user_change", "Learn from a text, or from the kept conversations."),
    "refresh": ("user_change", "Derive what waits now."),
    "correct": ("user_change", "Write a line yourself; it outranks what is derived."),
    "forget": ("user_change", "Delete a line, or all, everywhere."),
}


@click.group(cls=LazyGroup, modules=_SUBCOMMANDS)
def user() -> None:
    """What is known of you: read it, correct it, forget it.

    Begin with `memsheaf user learn "I live in Lisbon."` Times are UTC.
    """


COMMANDS: dict[str, click.Command] = {"user": user}
