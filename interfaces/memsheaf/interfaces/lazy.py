"""A group of commands that imports each command's module on first use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyGroup"]


class _Text(click.types.StringParamType):
    """Words are UTF-8 whatever the locale says; Python decoded them by the locale, as paths are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The words, what is no UTF-8 in them replaced."""
        return os.fsencode(value).decode("utf-8", "replace") if isinstance(value, str) else value


_TEXT = _Text()


class LazyGroup(click.Group):
    """Commands by name, so that help and a quick command import nothing of the others.

    Args:
        modules: Command to its module in `commands`, and the line that `--help` shows.
    """

    def __init__(self, *args: Any, modules: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order in which they are told."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        if cmd_name not in self._modules:
            return None
        module = import_module(f"memsheaf.interfaces.commands.{self._modules[cmd_name][0]}")
        command: click.Command = module.COMMANDS[cmd_name]
        for each in command.params:
            if each.type is click.STRING:
                each.type = _TEXT
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Names and lines, without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._modules.items()])
