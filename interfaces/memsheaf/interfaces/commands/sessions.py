"""sessions: import, search and read past conversations; each command's module on first use."""

from __future__ import annotations

from importlib import import_module

import click

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


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        module = import_module(f"memsheaf.interfaces.commands.{_SUBCOMMANDS[cmd_name][0]}")
        command: click.Command = module.COMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _SUBCOMMANDS.items()])


@click.group(cls=_LazyGroup)
def sessions() -> None:
    """Past conversations: import the transcripts that you have, and find what was said.

    Begin with `memsheaf sessions discover`. Times are UTC.
    """


COMMANDS: dict[str, click.Command] = {"sessions": sessions}
