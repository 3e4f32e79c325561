"""user: show, ask, history, learn, refresh, correct, forget, export and status."""

from __future__ import annotations

from importlib import import_module

import click

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
def user() -> None:
    """What is known of you: read it, correct it, forget it.

    Begin with `memsheaf user learn "I live in Lisbon."` Times are UTC.
    """


COMMANDS: dict[str, click.Command] = {"user": user}
