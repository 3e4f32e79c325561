"""sessions: import, search and read past conversations; each command's module on first use."""

from __future__ import annotations

from typing import Any

import click

from memsheaf.interfaces.lazy import LazyGroup
from memsheaf.interfaces.terminal import say_json

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


_JSON = f"{__name__}.json"


class _Sessions(LazyGroup):
    """Who asks for JSON gets JSON, also of a failure, before the command ends as it always does."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        options = args[: args.index("--")] if "--" in args else args
        ctx.meta[_JSON] = "--json" in options
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # nobody reads
        except Exception as error:
            if ctx.meta.get(_JSON):
                told = error.format_message() if isinstance(error, click.ClickException) else error
                say_json({"error": str(told) or type(error).__name__})
            raise


@click.group(cls=_Sessions, modules=_SUBCOMMANDS)
def sessions() -> None:
    """Past conversations: import the transcripts that you have, and find what was said.

    Begin with `memsheaf sessions discover`. Times are UTC.
    """


COMMANDS: dict[str, click.Command] = {"sessions": sessions}
