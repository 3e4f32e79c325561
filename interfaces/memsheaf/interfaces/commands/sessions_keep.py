"""sessions forget, export and stats."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from memsheaf.interfaces.common import FAILED, NOTHING, OK, json_option, scope_options
from memsheaf.interfaces.place import Place, opened_sessions
from memsheaf.interfaces.session_text import conversation_json, counted, item_json, moment
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.sessionsearch import Conversation, ConversationLog, SessionSearch
from memsheaf.stack import MemsheafError, NotFound, Scope

__all__ = ["COMMANDS"]

_PAGE = 1000  # items
_BEING_READ = "another process reads its files; `memsheaf user forget` overwrites them"


class _Meant(NamedTuple):
    """What is to be forgotten: a conversation, or an item of it where there is a number."""

    conversation: str
    seq: int | None
    owner: Scope


@click.command()
@click.argument("id_", metavar="ID")
@scope_options(everyone=False)
@json_option
def forget(id_: str, as_json: bool, **owner: Any) -> int:
    """Erase a conversation, or one item, for good; no later import brings it back.

    What was learned of its user from nothing else goes with it. Conversations of its sub-agents
    and forks are told; forget them by their own ids.
    """
    with opened_sessions(**owner) as kept:
        meant = None if kept.search is None else _meant(kept.search.log, id_, kept.scope)
        gone, lines, failed = False, 0, None
        if kept.search is not None and meant is not None:
            lines, failed = _unlearn(meant)  # first: what ends in between is found again
            gone = _erase(kept.search, meant, kept.scope)
        children = _children(id_, kept) if gone else []
        if as_json:
            told: dict[str, Any] = {"id": id_, "forgotten": gone, "profile_lines": lines}
            told |= {"children": children} if children else {}
            say_json(told | {"profile_error": failed} if failed else told)
        elif gone:
            also = f", and {counted(lines, 'line')} of the profile" if lines else ""
            say(f"forgotten {safe(id_)}{also}")
            for child in children:
                say(f"  {safe(child)} came out of it, and stays", dim=True)
        else:
            say(f"no such conversation or item  ({safe(str(kept.scope))})")
        if failed and not as_json:
            why = f"what was learned from it may still be in the profile: {safe(failed)}"
            say(f"  ! {why}", error=True)
    if failed:  # whoever relies on 0 wants it gone everywhere
        return FAILED
    return OK if gone else NOTHING


@click.command()
@click.argument("ids", nargs=-1, metavar="[CONVERSATION]…")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@scope_options(everyone=True)
@json_option
def export(
    ids: tuple[str, ...], output: Path | None, force: bool, as_json: bool, **owner: Any
) -> int:
    """Write conversations as JSON lines, all or those named, to standard output or a file.

    A line with `conversation` stands before the lines with its `item`s.
    """
    if as_json and output is None:
        raise click.UsageError("--json tells about a file; give --output")
    with opened_sessions(**owner) as kept:
        found = _chosen(kept, ids)
        if not found:
            if as_json:
                say_json({"conversations": 0, "items": 0, "file": None})
            else:
                say(f"nothing found  ({safe(str(kept.scope))})", error=True)
            return NOTHING
        to = nullcontext(sys.stdout.buffer) if output is None else _written(output, force)
        items = 0
        with to as stream:
            for line in _lines(kept, found):
                stream.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
                items += "item" in line
            stream.flush()
    if as_json:
        say_json({"conversations": len(found), "items": items, "file": str(output)})
    else:
        told = f"{counted(len(found), 'conversation')}, {counted(items, 'item')}"
        say(f"exported {told}", error=output is None)
    return OK


@click.command()
@scope_options(everyone=True)
@json_option
def stats(as_json: bool, **owner: Any) -> int:
    """Tell how much is kept, of which formats and projects, since when, and where."""
    with opened_sessions(**owner) as kept:
        found = _chosen(kept, ())
        told = _stats(kept, found)
    if as_json:
        say_json(told)
    else:
        line = f"{counted(told['conversations'], 'conversation')}, {counted(told['items'], 'item')}"
        say(line, bold=True)
        if found:
            first, last = min(c.created_at for c in found), max(c.updated_at for c in found)
            say(f"from {moment(first)} to {moment(last)}")
        for name in ("formats", "projects"):
            for value, count in told[name].items():
                say(f"  {count:6,}  {safe(value)}")
        say(f"{told['bytes'] / 1e6:,.1f} MB in {safe(told['folder'])}", dim=True)
    return OK if found else NOTHING


def _meant(log: ConversationLog, id_: str, scope: Scope) -> _Meant | None:
    """What an id names, an item before a conversation, and whose it is."""
    conversation, seq = id_, None
    with suppress(NotFound):
        item = log.item(id_, scope)
        conversation, seq = item.conversation, item.seq
    try:
        return _Meant(conversation, seq, log.owner(conversation, scope))
    except NotFound:
        return None


def _erase(search: SessionSearch, meant: _Meant, scope: Scope) -> bool:
    """Erase it from the log, and from the index, whose files hold its words too."""
    gone = search.log.erase(meant.conversation, scope, meant.seq)
    search.catch_up()
    return gone


def _unlearn(meant: _Meant) -> tuple[int, str | None]:
    """Forget the lines of its user's profile that rest on nothing else.

    Returns:
        How many, and why there may be more.
    """
    if meant.owner.user_id is None:
        return 0, None
    from memsheaf.interfaces.user_place import opened_user  # a profile is often not there

    items = [] if meant.seq is None else [f"{meant.conversation}:{meant.seq}"]
    conversations = [meant.conversation] if meant.seq is None else []
    try:
        with opened_user(meant.owner.user_id, namespace=meant.owner.namespace or "") as known:
            if known.model is None:
                return 0, None
            gone = known.model.forget_sources(known.owner, items, conversations=conversations)
    except MemsheafError as error:
        return 0, str(error)
    return gone.lines, None if gone.erased else _BEING_READ


def _children(id_: str, kept: Place) -> list[str]:
    """The conversations that came out of a conversation: of sub-agents, forks."""
    return [each.id for each in _chosen(kept, ()) if each.metadata.get("parent") == id_]


def _chosen(kept: Place, ids: tuple[str, ...]) -> list[Conversation]:
    if kept.search is None:
        return []
    if ids:
        return [kept.search.log.conversation(name, kept.scope) for name in ids]
    return kept.search.log.conversations(kept.scope, limit=None, order="asc")


def _lines(kept: Place, found: list[Conversation]) -> Iterator[dict[str, Any]]:
    assert kept.search is not None  # something was found in it
    for conversation in found:
        yield {"conversation": conversation_json(conversation)}
        after = -1
        while page := kept.search.read(conversation.id, scope=kept.scope, after=after, limit=_PAGE):
            within = {"after": after, "before": page[-1].seq + 1}
            keys = kept.search.log.keys(conversation.id, kept.scope, **within)
            for item in page:
                known = {"key": keys[item.seq]} if item.seq in keys else {}
                yield {"item": item_json(item) | known}
            after = page[-1].seq


def _stats(kept: Place, found: list[Conversation]) -> dict[str, Any]:
    def counted(name: str, most: int | None = None) -> dict[str, int]:
        values = (str(each.metadata.get(name) or "") for each in found)
        return dict(Counter(filter(None, values)).most_common(most))

    return {
        "conversations": len(found),
        "items": sum(each.item_count for each in found),
        "formats": counted("format"),
        "projects": counted("project", 10),
        "folder": str(kept.folder),
        "bytes": sum(_sizes(kept.folder)),
        "scope": kept.scope.set_fields(),
    }


def _sizes(folder: Path) -> Iterator[int]:
    """The bytes of each file below a folder; others may be replacing them."""
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue


@contextmanager
def _written(path: Path, force: bool) -> Iterator[BinaryIO]:
    """A file that only its owner reads: there as a whole in the end, else as it was before."""
    told = os.path.realpath(path)
    try:
        if os.path.lexists(told) and not os.path.isfile(told):  # a device, a pipe
            with open(told, "wb") as stream:
                yield stream
            return
        if not force:
            os.close(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        handle, beside = tempfile.mkstemp(dir=os.path.dirname(told), prefix=".memsheaf-")
        done = False
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            os.replace(beside, told)
            done = True
        finally:
            if not done:
                os.unlink(beside)
                if not force:
                    os.unlink(told)
    except FileExistsError as error:
        raise click.UsageError(f"{path} exists; --force overwrites it") from error
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from error


COMMANDS: dict[str, click.Command] = {"forget": forget, "export": export, "stats": stats}
