"""user show, ask, history, status and export."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memsheaf.interfaces.common import NOTHING, OK, json_option, scope_options
from memsheaf.interfaces.model_place import opened_models
from memsheaf.interfaces.session_text import counted, moment
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.interfaces.user_place import SLOT, Known, opened_user
from memsheaf.stack.config import load_config

if TYPE_CHECKING:
    from memsheaf.usermodel import Change, Line, QueuedItem

__all__ = ["COMMANDS", "line_json", "owner_options", "show_line"]

owner_options = scope_options(everyone=False, fields=("user_id", "namespace"))


@click.command()
@click.option("--all", "ended", is_flag=True, help="Also lines that ended.")
@click.option("--kind", "kinds", multiple=True, help="Only this kind; may be repeated.")
@owner_options
@json_option
def show(ended: bool, kinds: tuple[str, ...], as_json: bool, **owner: Any) -> int:
    """Show the lines of a profile, each with the items that it came from."""
    with opened_user(**owner) as known:
        version, lines = 0, []
        if known.model is not None:
            profile = known.model.profile(known.owner)
            version = profile.version
            wanted = profile.lines if ended else profile.current
            lines = [line for line in wanted if not kinds or line.kind in kinds]
        if as_json:
            shown = [line_json(line) for line in lines]
            say_json({**known.named, "version": version, "lines": shown})
        elif not lines:
            _say_nothing(known)
        else:
            for line in lines:
                show_line(line)
    return OK if lines else NOTHING


@click.command()
@click.argument("question")
@click.option("--model", "worded", is_flag=True, help="Have the configured chat model word it.")
@owner_options
@json_option
def ask(question: str, worded: bool, as_json: bool, **owner: Any) -> int:
    """Answer QUESTION from the profile, with its lines and their sources, or abstain."""
    text, lines = "", []
    with opened_user(**owner) as known, ExitStack() as needed:
        if known.model is not None:
            chat = needed.enter_context(opened_models(load_config(), SLOT)) if worded else None
            found = known.model.ask(known.owner, question, chat)
            text, lines = found.text, list(found.lines)
        if as_json:
            say_json(
                {
                    **known.named,
                    "answer": text or None,
                    "lines": [line_json(line) for line in lines],
                }
            )
        elif not lines:
            say(f"the profile does not say  ({safe(str(known.scope))})")
        else:
            if worded:
                say(safe(text), bold=True)
            for line in lines:
                show_line(line)
    return OK if lines else NOTHING


@click.command()
@click.option("--limit", type=click.IntRange(min=1), help="Only the newest.")
@owner_options
@json_option
def history(limit: int | None, as_json: bool, **owner: Any) -> int:
    """Show every change of a profile, oldest first."""
    with opened_user(**owner) as known:
        changes: tuple[Change, ...] = ()
        if known.model is not None:
            changes = known.model.history(known.owner)[-(limit or 0) :]
        if as_json:
            shown = [_change_json(change) for change in changes]
            say_json({**known.named, "changes": shown})
        elif not changes:
            _say_nothing(known)
        else:
            for change in changes:
                text = "(forgotten)" if change.text is None else safe(change.text)
                head = f"{change.version:4}  {moment(change.at)}  {change.action:10}"
                say(f"{head}  {safe(change.line_id):5}  {text}")
                came = ", ".join(change.sources)
                say(
                    f"      by {safe(change.by)}" + (f" from {safe(came)}" if came else ""),
                    dim=True,
                )
    return OK if changes else NOTHING


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
@owner_options
@json_option
def status(limit: int, as_json: bool, **owner: Any) -> int:
    """Tell what waits to be learned or was set aside, and the last error."""
    with opened_user(**owner) as known:
        waiting = aside = 0
        items: tuple[QueuedItem, ...] = ()
        error = None
        if known.model is not None:
            state = known.model.status(known.owner, limit=limit)
            waiting, aside, items, error = (
                state.waiting,
                state.set_aside,
                state.items,
                state.last_error,
            )
        if as_json:
            say_json(
                {
                    **known.named,
                    "waiting": waiting,
                    "set_aside": aside,
                    "last_error": error,
                    "items": [_queued_json(item) for item in items],
                    "folder": str(known.folder),
                }
            )
            return OK
        say(f"{waiting} waiting, {aside} set aside  ({safe(str(known.scope))})", bold=True)
        for item in items:
            why = f"  {safe(item.error)}" if item.error else ""
            say(f"  {item.state:10}  {moment(item.since)}  {safe(item.item_id)}{why}")
        if error:
            say(f"last error: {safe(error)}", error=True)
        say(safe(str(known.folder)), dim=True)
    return OK


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@owner_options
@json_option
def export(output: Path | None, force: bool, as_json: bool, **owner: Any) -> int:
    """Write lines, history and what waits as one JSON object, to standard output or a file."""
    with opened_user(**owner) as known:
        found = None if known.model is None else known.model.export(known.owner)
    if found is None or not (found["lines"] or found["history"] or found["waiting"]):
        say(f"nothing is known  ({safe(str(known.scope))})", error=True)
        return NOTHING
    found |= known.named
    if output is None:
        say_json(found)
        return OK
    _write(output, json.dumps(found, ensure_ascii=True, indent=1) + "\n", force)
    if as_json:
        say_json({"lines": len(found["lines"]), "file": str(output)})
    else:
        say(f"exported {counted(len(found['lines']), 'line')}")
    return OK


def line_json(line: Line) -> dict[str, Any]:
    """A line as JSON."""
    return {
        "id": line.id,
        "kind": str(line.kind),
        "text": line.text,
        "confidence": round(line.confidence, 4),
        "times": line.times,
        "first_seen": line.first_seen.isoformat(),
        "last_seen": line.last_seen.isoformat(),
        "sources": list(line.sources),
        "origin": str(line.origin),
        "subject": line.subject,
        "current": line.is_current,
        "superseded_by": line.superseded_by,
        "ended_at": line.ended_at.isoformat() if line.ended_at else None,
        "reason": line.reason,
    }


def show_line(line: Line) -> None:
    """A line for a terminal, with what it rests on."""
    say(f"{safe(line.id):5}  {safe(line.text)}")
    facts = [str(line.kind)]
    if line.origin == "user":
        facts.append("written by the user")
    else:
        facts.append(f"confidence {line.confidence:.2f}")
        facts.append("said once" if line.times == 1 else f"said {line.times} times")
    facts.append(moment(line.last_seen))
    if line.sources:
        more = len(line.sources) - 3
        facts.append("from " + ", ".join(line.sources[:3]) + (f" and {more} more" * (more > 0)))
    if not line.is_current:
        facts.append(f"replaced by {line.superseded_by}" if line.superseded_by else "ended")
    say(f"       {safe('; '.join(facts))}", dim=True)


def _say_nothing(known: Known) -> None:
    say(f"nothing is known  ({safe(str(known.scope))}); `memsheaf user learn` changes that")


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "version": change.version,
        "at": change.at.isoformat(),
        "by": change.by,
        "action": change.action,
        "line_id": change.line_id,
        "text": change.text,
        "sources": list(change.sources),
    }


def _queued_json(item: QueuedItem) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "state": item.state,
        "since": item.since.isoformat(),
        "due": item.due.isoformat() if item.due else None,
        "attempts": item.attempts,
        "error": item.error,
    }


def _write(path: Path, text: str, force: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise click.UsageError(f"{path} exists; --force overwrites it") from error
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from error


COMMANDS: dict[str, click.Command] = {
    "show": show,
    "ask": ask,
    "history": history,
    "status": status,
    "export": export,
}
