"""sessions: import, search and read past conversations; each command's module on first use."""

from __future__ import annotations

import click

from memsheaf.interfaces.lazy import LazyGroup

__all__ = ["COMMANDS"]

# Command to its module and the line that `--help` shows, so that a search imports no importer.
_SUBCOMMANDS = {
    "import": ("sessions_import", "Import transcripts from files and folders."),
    "discover": ("sessions_import", "Find the transcripts that known programs left here."),
    "watch": ("sessions_import", "Import, and go on as transcripts grow."),
    "search": ("sessions_read", "Find what was said."),
    "show": ("sessions_read", "Show an item with what is around it, or a conversation."),
    "list": ("sessions_read", "List conversations, the newest first."),
    "forget": ("sessions_keep", "Erase a conversation or an item for good."),
    "export": ("sessions_keep", "Write conversations as JSON lines."),
    "stats": ("sessions_keep", "Tell how much is kept, of what, and where."),
}


@click.group(cls=LazyGroup, modules=_SUBCOMMANDS)
def sessions() -> None:
    """Past conversations: import the transcripts that you have, and find what was said.

    Begin with `memsheaf sessions discover`. Times are UTC.
    """


COMMANDS: dict[str, click.Command] = {"sessions": sessions}
