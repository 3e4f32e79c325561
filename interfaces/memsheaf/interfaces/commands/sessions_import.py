"""sessions import, discover and watch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from memsheaf.interfaces.common import (
    FAILED,
    NOTHING,
    OK,
    code_of,
    json_option,
    scope_options,
)
from memsheaf.interfaces.place import Place, opened_sessions
from memsheaf.interfaces.session_text import counted
from memsheaf.interfaces.terminal import safe, say, say_json, table
from memsheaf.sessionsearch import SessionSearch
from memsheaf.sessionsearch.importers import (
    FileReport,
    Found,
    ImportOptions,
    ImportSummary,
    Progress,
    discover,
    follow,
    import_paths,
)
from memsheaf.sessionsearch.importers.base import OTHER_BRANCH

__all__ = ["COMMANDS", "progress_bar"]

_SHOWN = 20  # problems
Command = Callable[..., Any]


def _reading_options(function: Command) -> Command:
    options = (
        click.option("--format", "format_", metavar="NAME", help="The format; told by content."),
        click.option("--all-branches", is_flag=True, help="Also edited prompts, other answers."),
        click.option("--no-thinking", is_flag=True, help="Leave a model's reasoning out."),
        click.option("--found", is_flag=True, help="What `discover` finds."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH…")
@_reading_options
@scope_options(everyone=False)
@json_option
def import_(
    paths: tuple[Path, ...],
    found: bool,
    format_: str | None,
    all_branches: bool,
    no_thinking: bool,
    as_json: bool,
    **owner: Any,
) -> int:
    """Import transcripts from files and folders; their content tells the format.

    Doing it again adds only what is new. What was forgotten stays forgotten.
    """
    wanted = _wanted(paths, found)
    with opened_sessions(make=True, **owner) as kept:
        search = _search(kept)
        with progress_bar(as_json) as progress:
            summary = import_paths(
                wanted,
                search.log,
                kept.scope,
                options=_options(all_branches, no_thinking),
                format=format_,
                progress=progress,
            )
        if summary.added and sys.stderr.isatty() and not as_json:
            say("making them findable …", dim=True, error=True)
        search.catch_up()
        if as_json:
            say_json({**summary.to_dict(), "folder": str(kept.folder)})
        else:
            _tell(summary, kept)
    if summary.warnings:
        return FAILED
    return OK if summary.count("imported") or summary.count("unchanged") else NOTHING


@click.command()
@json_option
def discover_(as_json: bool) -> int:
    """Find the folders where known programs keep transcripts on this machine.

    What is there and cannot be read is told.
    """
    places = discover()
    files = sum(place.files for place in places)
    closed = [each for place in places for each in place.unreadable]
    if as_json:
        say_json({"found": [_place_json(place) for place in places]})
    elif places:
        table(
            [
                {"format": p.format, "files": p.files, "size": _size(p.bytes), "path": p.path}
                for p in places
            ]
        )
        for each in closed[:_SHOWN]:
            say(f"  ! {safe(str(each.path))}: {safe(each.reason)}", error=True)
        if len(closed) > _SHOWN:
            say(f"  ! and {len(closed) - _SHOWN:,} more; --json tells them", error=True)
        if files:
            say("import them with: memsheaf sessions import --found", dim=True)
    else:
        say("nothing found; `memsheaf sessions import PATH` takes files from anywhere")
    return code_of(files, bool(closed))


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH…")
@_reading_options
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@scope_options(everyone=False)
@json_option
def watch(
    paths: tuple[Path, ...],
    found: bool,
    format_: str | None,
    all_branches: bool,
    no_thinking: bool,
    interval: float,
    as_json: bool,
    **owner: Any,
) -> int:
    """Import, and go on as files grow and appear, until it is interrupted."""
    wanted = _wanted(paths, found)
    with opened_sessions(make=True, **owner) as kept:
        search = _search(kept)
        looks = follow(
            wanted,
            search.log,
            kept.scope,
            options=_options(all_branches, no_thinking),
            format=format_,
            interval=interval,
        )
        try:
            for summary in looks:
                search.catch_up()
                if as_json:
                    say_json(summary.to_dict())
                else:
                    _tell(summary, kept)
                sys.stdout.flush()
        except KeyboardInterrupt:
            looks.close()  # type: ignore[attr-defined]
    return OK


def _place_json(place: Found) -> dict[str, Any]:
    closed = [{"path": str(each.path), "reason": each.reason} for each in place.unreadable]
    return {
        "format": place.format,
        "path": str(place.path),
        "files": place.files,
        "bytes": place.bytes,
        "unreadable": closed,
    }


def _wanted(paths: tuple[Path, ...], found: bool) -> list[Path]:
    if found == bool(paths):
        raise click.UsageError("give paths, or --found for what `sessions discover` finds")
    if not found:
        return list(paths)
    places = [place.path for place in discover()]
    if not places:
        raise click.UsageError("no known program left transcripts here; give paths")
    return places


def _options(all_branches: bool, no_thinking: bool) -> ImportOptions:
    branches = ImportOptions(branches="all") if all_branches else ImportOptions()
    return ImportOptions(branches.branches, include_thinking=not no_thinking)


def _search(kept: Place) -> SessionSearch:
    assert kept.search is not None  # it was made
    return kept.search


@contextmanager
def progress_bar(as_json: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A bar of bytes on a terminal's standard error."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(
        length=1, label="importing", file=sys.stderr, item_show_func=_file_name
    ) as bar:

        def progress(now: Progress) -> None:
            bar.length = max(now.total_bytes, 1)
            bar.update(now.bytes - bar.pos, now.path)

        yield progress


def _file_name(path: object) -> str | None:
    return None if path is None else safe(Path(str(path)).name[:40])


def _tell(summary: ImportSummary, kept: Place) -> None:
    read = [file for file in summary.files if file.status == "imported"]
    say(
        f"added {counted(summary.added, 'item')} from {counted(len(read), 'file')} of "
        f"{_size(summary.bytes)} in {summary.seconds:.1f} s  ({safe(str(kept.scope))})"
    )
    branches = sum(file.skipped.get(OTHER_BRANCH, 0) for file in summary.files)
    facts = [f"{name} {count}" for name, count in sorted(summary.formats().items())]
    for count, thing, text in (
        (summary.known, "item", "known already"),
        (summary.count("unchanged"), "file", "unchanged"),
        (summary.count("unknown"), "file", "of no known format"),
        (summary.refused, "item", "left out: forgotten, or another owner's"),
        (branches, "message", "of other branches left out; --all-branches takes them"),
    ):
        if count:
            facts.append(f"{counted(count, thing)} {text}")
    if facts:
        say(f"  {safe(', '.join(facts))}", dim=True)
    say(f"  kept in {safe(str(kept.folder))}", dim=True)
    for broken in summary.broken:
        say(f"  ! {safe(broken)}", error=True)
    _tell_problems(summary.files)


def _tell_problems(files: tuple[FileReport, ...]) -> None:
    told = 0
    for file in files:
        for problem in file.problems:
            if told == _SHOWN:
                break
            told += 1
            place = file.path if problem.line is None else f"{file.path}:{problem.line}"
            say(f"  ! {safe(place)}: {safe(problem.reason)}", error=True)
    total = sum(file.problem_count for file in files)
    if total > told:
        say(f"  ! and {total - told:,} more; --json tells them", error=True)


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


COMMANDS: dict[str, click.Command] = {
    "import": import_,
    "discover": discover_,
    "watch": watch,
}
