"""The `memsheaf` command: names its commands without importing them."""

from __future__ import annotations

import gc
import logging
import os
import sys

import click

from .lazy import LazyGroup
from .terminal import complain

__all__ = ["main"]

NOTHING, FAILED = 1, 2  # not imported from .common, which imports pydantic

# Command to its module and the line that `--help` shows, so that help imports none of them.
COMMANDS = {
    "remember": ("memories", "Store a memory."),
    "recall": ("memories", "Find memories by text."),
    "get": ("memories", "Show one memory."),
    "list": ("memories", "List memories, newest first."),
    "update": ("memories", "Change a memory."),
    "forget": ("memories", "Delete a memory everywhere, and look again."),
    "export": ("transfer", "Write memories as JSON lines."),
    "import": ("transfer", "Read memories from JSON lines."),
    "sessions": ("sessions", "Import, search and read past conversations."),
    "user": ("user", "Read, correct and forget what is known of you."),
    "providers": ("inspect", "List providers and plugins with their health."),
    "doctor": ("inspect", "Try every provider, and say what to do."),
    "config": ("inspect", "Show the effective configuration with origins."),
    "init": ("setup", "Write a commented memsheaf.toml."),
    "trust": ("setup", "Let a project's configuration count."),
    "demo": ("demo", "See it work, in a temporary folder."),
}


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version  # slower than a search

        try:
            click.echo(f"memsheaf {version('memsheaf')}")
        except PackageNotFoundError:
            click.echo("memsheaf, not installed")
        ctx.exit()


@click.group(
    cls=LazyGroup, modules=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Many memories, one answer.

    Exit codes: 0 found or done, 1 nothing found or not yours, 2 error; also 2 where nothing was
    found while a provider failed.
    """


class _Told(logging.Handler):
    """Tells warnings as the command tells everything: escaped, on one line."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code.

    Args:
        arguments: Those after the command's name; the process's by default.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    logging.getLogger("memsheaf").addHandler(_Told())
    code = _code(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        gc.freeze()  # the process ends: looking for garbage in all it holds would take longer
    sys.exit(code)


def _code(words: list[str]) -> int | str | None:
    """Run the command; return the code to exit with."""
    stdout = sys.stdout
    try:
        code = cli.main(args=words, prog_name="memsheaf", standalone_mode=False)
    except click.ClickException as error:
        _refuse(error)
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        complain("stopped")
        return 130
    except SystemExit as end:
        # Where the reader of a pipe has gone click replaces stdout and says 1, "nothing found".
        return end.code if sys.stdout is stdout else 0
    except Exception as error:
        return _failed(error)
    return code if isinstance(code, int) else 0


def _refuse(error: click.ClickException) -> None:
    """Tell what was wrong with the words of the command, and where to look."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    message = error.format_message().rstrip(".")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message += f" (see {error.ctx.command_path} --help)"
    complain(message)


def _failed(error: Exception) -> int:
    from memsheaf.stack import MemsheafError, NotFound

    if os.environ.get("MEMSHEAF_DEBUG"):
        raise error
    if isinstance(error, MemsheafError):
        complain(str(error))
        return NOTHING if isinstance(error, NotFound) else FAILED
    if isinstance(error, OSError) and error.filename and error.strerror:
        complain(f"{os.fsdecode(error.filename)}: {error.strerror}; check the path")
        return FAILED
    complain(f"{type(error).__name__}: {error} (set MEMSHEAF_DEBUG=1 to see where)")
    return FAILED
