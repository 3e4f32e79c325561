"""export and import."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from memsheaf.interfaces.common import (
    FAILED,
    NOTHING,
    OK,
    json_option,
    opened,
    scope_options,
)
from memsheaf.interfaces.terminal import safe, say, say_json

__all__ = ["COMMANDS"]

_SHOWN = 20


@click.command("export")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@scope_options(everyone=True)
@json_option
def export(output: Path | None, force: bool, as_json: bool, **owner: Any) -> int:
    """Write memories as JSON lines, to standard output or a file."""
    if as_json and output is None:
        raise click.UsageError("--json tells about a file; give --output")
    count = -1  # the first line is a header
    with opened(**owner) as memory:
        stream = sys.stdout.buffer if output is None else _create(output, force)
        try:
            with click.progressbar(
                memory.stack.export(memory.scope),
                label="exporting",
                **_progress(output is not None),
            ) as lines:
                for line in lines:
                    stream.write(line.rstrip("\n").encode("utf-8") + b"\n")
                    count += 1
            stream.flush()
        finally:
            if output is not None:
                stream.close()
        count = max(count, 0)
        if as_json:
            say_json({"exported": count, "file": str(output)})
        else:
            say(f"exported {count}  ({safe(str(memory.scope))})", error=output is None)
    return OK if count else NOTHING


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@scope_options(everyone=True)
@json_option
def import_(source: Path, as_json: bool, **owner: Any) -> int:
    """Read memories from SOURCE, a file of JSON lines; - is standard input."""
    try:
        stream = sys.stdin.buffer if str(source) == "-" else source.open("rb")
    except OSError as error:
        raise click.UsageError(f"{source}: {error.strerror}") from error
    with (
        stream,
        opened(**owner) as memory,
        click.progressbar(_lines(stream), label="importing", **_progress(True)) as lines,
    ):
        report = memory.stack.import_(lines, memory.scope)
    if as_json:
        say_json(
            {
                "imported": report.imported,
                "refused": [{"line": line, "reason": why} for line, why in report.refused],
                "partial": report.partial,
            }
        )
    else:
        say(f"imported {report.imported}, refused {len(report.refused)}")
        for line, reason in report.refused[:_SHOWN]:
            say(f"  line {line}: {safe(reason)}", error=True)
        if len(report.refused) > _SHOWN:
            say(f"  and {len(report.refused) - _SHOWN} more", error=True)
    return FAILED if report.refused else OK


def _create(path: Path, force: bool) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        return os.fdopen(os.open(path, flags, 0o600), "wb")
    except FileExistsError as error:
        raise click.UsageError(f"{path} exists; --force overwrites it") from error
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from error


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Lines as text; one that is not UTF-8 becomes one that no record is, so only it is refused."""
    for number, raw in enumerate(stream):
        if number == 0 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise click.UsageError("the file is UTF-16; save it as UTF-8")
        try:
            yield raw.decode("utf-8-sig" if number == 0 else "utf-8")
        except UnicodeDecodeError:
            yield "not UTF-8"


def _progress(wanted: bool) -> dict[str, Any]:
    return {"file": sys.stderr, "hidden": not (wanted and sys.stderr.isatty()), "show_pos": True}


COMMANDS: dict[str, click.Command] = {"export": export, "import": import_}
