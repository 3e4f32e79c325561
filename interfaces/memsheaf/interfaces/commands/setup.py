"""init and trust."""

from __future__ import annotations

import os
from pathlib import Path

import click

from memsheaf.interfaces.common import NOTHING, OK, json_option
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.stack import ConfigError
from memsheaf.stack.config_providers import doubts
from memsheaf.stack.config_sources import (
    FILE_NAME,
    Document,
    find_workspace,
    user_config_folder,
)
from memsheaf.stack.registry import Registry
from memsheaf.stack.trust import TrustStore

__all__ = ["COMMANDS"]

TEMPLATE = """\
# Memsheaf: every line is optional; a line with # shows the default.
# An argument beats a variable MEMSHEAF_STACK_... or MEMSHEAF_SCOPE_..., which beats this file.

[scope]
# Whose memory a call without a scope means. The command line falls back to your login name.
# user_id = "mira"
# agent_id = ""

[stack]
# search_limit = 10        # hits of a search
# read_timeout = 2.0       # seconds for one provider
# write_timeout = 10.0
# rerank = "bm25"          # off by default

# One table per provider; the first that reads and writes is the authority for a record.
# Files are kept in .memsheaf/<name>/ beside this file.
[[providers]]
name = "local"
type = "local"
# enabled = true
# mode = "read-write"      # or read, write, context
# weight = 1.0
# timeout = 2.0

# A second store. ${NAME} reads the environment; a file that uses it, the network or a path
# outside of this folder counts only after `memsheaf trust`.
# [[providers]]
# name = "archive"
# type = "sqlite"
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@json_option
def init(folder: Path, force: bool, as_json: bool) -> int:
    """Write a commented memsheaf.toml into FOLDER, here by default."""
    path = folder / FILE_NAME
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o644), "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError as error:
        raise click.UsageError(f"{path} exists; --force overwrites it") from error
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from error
    if as_json:
        say_json({"file": str(path)})
    else:
        say(f"wrote {safe(str(path))}")
    return OK


@click.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--revoke", is_flag=True, help="Withdraw it.")
@json_option
def trust(path: Path | None, revoke: bool, as_json: bool) -> int:
    """Let a project's configuration count; it asks again when the file changes.

    PATH is the file or its folder; by default the one that stands above the working directory.
    """
    store = TrustStore(user_config_folder(os.environ))
    if revoke and path is not None and not path.is_dir():
        return _tell(path.resolve(), [], as_json, revoked=store.revoke(path.resolve()))
    start = Path.cwd() if path is None else path if path.is_dir() else path.parent
    workspace, document = _find(start)
    if path is not None and not path.is_dir() and document.path != path.resolve():
        raise ConfigError(f"{path} is not the file that counts there; {document.path} is")
    if revoke:
        return _tell(document.path, [], as_json, revoked=store.revoke(document.path))
    reasons = doubts(document, workspace, Registry("memsheaf.providers"))
    store.trust(document)
    return _tell(document.path, reasons, as_json)


def _find(start: Path) -> tuple[Path, Document]:
    found = find_workspace(start)
    if found is None or found[1] is None:
        raise ConfigError(f"no {FILE_NAME} stands in or above {start.resolve()}")
    return found[0], found[1]


def _tell(path: Path, reasons: list[str], as_json: bool, revoked: bool | None = None) -> int:
    if as_json:
        say_json({"file": str(path), "trusted": revoked is None, "reasons": reasons})
    elif revoked is None:
        say(f"trusted {safe(str(path))}")
        for reason in reasons or ["it needed no trust"]:
            say(f"  {safe(reason)}")
    else:
        say(f"{'revoked' if revoked else 'was not trusted'}: {safe(str(path))}")
    return NOTHING if revoked is False else OK


COMMANDS: dict[str, click.Command] = {"init": init, "trust": trust}
