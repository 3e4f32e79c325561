"""sessions search, show and list."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from memsheaf.interfaces.common import NOTHING, OK, json_option, scope_options
from memsheaf.interfaces.place import Place, opened_sessions
from memsheaf.interfaces.session_text import (
    about,
    conversation_json,
    hit_json,
    item_json,
    marked,
    moment,
    short,
    shown_text,
)
from memsheaf.interfaces.terminal import safe, say, say_json

if TYPE_CHECKING:
    from memsheaf.sessionsearch import ConversationHit, Item, SessionHit, SessionResult

__all__ = ["COMMANDS"]

Hit = TypeVar("Hit")
_NONE_YET = "nothing is kept here yet; `memsheaf sessions discover` finds transcripts"


def _folder(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A project is a folder as a program wrote it; `.` and `~` are those of here."""
    if value is not None and value.startswith((".", "~")):
        return os.path.realpath(os.path.expanduser(value))
    return value


_project = click.option(
    "--project",
    metavar="FOLDER",
    callback=_folder,
    help="Only of this project, or of folders in it; . is here.",
)


@click.command()
@click.argument("text")
@click.option("--limit", type=int, default=10, show_default=True, help="At most so many.")
@click.option("--by-conversation", is_flag=True, help="One row for each conversation.")
@click.option("--conversation", "conversations", multiple=True, metavar="ID", help="Only in this.")
@click.option("--role", "roles", multiple=True, help="user, assistant, tool; may be repeated.")
@click.option("--type", "types", multiple=True, help="message, tool_call, …; may be repeated.")
@_project
@click.option("--since", metavar="TIME", help="Not older than this.")
@click.option("--until", metavar="TIME", help="Not younger than this.")
@click.option(
    "--sort",
    type=click.Choice(["relevance", "newest", "oldest"]),
    default="relevance",
    show_default=True,
    help="The order.",
)
@click.option("--explain", is_flag=True, help="Tell what was searched.")
@scope_options(everyone=True)
@json_option
def search(
    text: str,
    limit: int,
    by_conversation: bool,
    conversations: tuple[str, ...],
    roles: tuple[str, ...],
    types: tuple[str, ...],
    project: str | None,
    since: str | None,
    until: str | None,
    sort: Literal["relevance", "newest", "oldest"],
    explain: bool,
    as_json: bool,
    **owner: Any,
) -> int:
    """Find what was said: TEXT is any words, the best match comes first."""
    filters: dict[str, Any] = {
        "conversation": conversations or None,
        "roles": roles or None,
        "types": types or None,
        "project": project,
        "since": since,
        "until": until,
    }
    if by_conversation and sort != "relevance":
        raise click.UsageError("--by-conversation has one order; leave out --sort")
    with opened_sessions(**owner) as kept:
        if kept.search is None:
            return _none_yet(kept, as_json, {"results": []})
        if by_conversation:
            rows = kept.search.discover(text, limit, scope=kept.scope, **filters)
            _tell(rows, kept, as_json, explain, _row_json, _show_row)
            return OK if rows else NOTHING
        hits = kept.search.search(text, limit, scope=kept.scope, sort=sort, **filters)
        _tell(hits, kept, as_json, explain, hit_json, _show_hit)
    return OK if hits else NOTHING


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--around", type=int, metavar="N", help="Show N items before and after the item.")
@click.option("--after", type=int, metavar="SEQ", help="Only items behind this number.")
@click.option("--limit", type=int, help="At most so many items of a conversation.")
@click.option("--type", "types", multiple=True, help="Only these types; may be repeated.")
@click.option("--full", is_flag=True, help="Do not shorten long items.")
@scope_options(everyone=True)
@json_option
def show(
    id_: str,
    around: int | None,
    after: int | None,
    limit: int | None,
    types: tuple[str, ...],
    full: bool,
    as_json: bool,
    **owner: Any,
) -> int:
    """Show an item whole, with --around what is about it, or a conversation; ID is of either."""
    from memsheaf.stack import NotFound

    with opened_sessions(**owner) as kept:
        if kept.search is None:
            return _none_yet(kept, as_json, {"conversation": None, "items": []})
        log = kept.search.log
        wanted: Item | None = None
        try:
            wanted = log.item(id_, kept.scope)
        except NotFound:
            if around is not None:
                raise
        items: Sequence[Item]
        if wanted is None:
            conversation = log.conversation(id_, kept.scope)
            items = kept.search.read(
                id_, scope=kept.scope, after=after, limit=limit, types=types or None
            )
        else:
            conversation = log.conversation(wanted.conversation, kept.scope)
            size = around or 0
            items = kept.search.scroll(id_, scope=kept.scope, before=size, after=size)
        if as_json:
            shown = [item_json(item) for item in items]
            say_json({"conversation": conversation_json(conversation), "items": shown})
            return OK
        say(about(conversation), bold=True)
        whole = full or (wanted is not None and not around)
        for item in items:
            here = ">" if around and wanted is not None and item.seq == wanted.seq else " "
            kind = item.type if item.role is None else f"{item.role}  {item.type}"
            say(f"{here}:{item.seq}  {moment(item.created_at)}  {safe(kind)}", dim=True)
            for line in shown_text(item, whole).split("\n"):
                say(f"    {line}" if line else "")
    return OK


@click.command("list")
@click.option("--limit", type=int, default=20, show_default=True, help="At most so many.")
@_project
@click.option("--since", metavar="TIME", help="Not older than this.")
@click.option("--until", metavar="TIME", help="Not younger than this.")
@scope_options(everyone=True)
@json_option
def list_(
    limit: int,
    project: str | None,
    since: str | None,
    until: str | None,
    as_json: bool,
    **owner: Any,
) -> int:
    """List conversations by the time of their latest item."""
    with opened_sessions(**owner) as kept:
        if kept.search is None:
            return _none_yet(kept, as_json, {"conversations": []})
        found = kept.search.browse(
            limit, scope=kept.scope, since=since, until=until, project=project
        )
        if as_json:
            say_json({"conversations": [conversation_json(each) for each in found]})
        else:
            for each in found:
                say(about(each))
                say(f"   {safe(each.id)}", dim=True)
            if not found:
                say(f"nothing found  ({safe(str(kept.scope))})")
    return OK if found else NOTHING


def _tell(
    result: SessionResult[Hit],
    kept: Place,
    as_json: bool,
    explain: bool,
    to_json: Callable[[Hit], dict[str, Any]],
    show: Callable[[int, Hit], None],
) -> None:
    """Print hits, or what was searched where there are none, in the words that were typed."""
    told = result.explain if explain or not result else None
    if as_json:
        answer: dict[str, Any] = {"results": [to_json(hit) for hit in result]}
        if told is not None:
            answer["searched"] = {
                "index": told.index,
                "words": list(told.words),
                "conversations": told.conversations,
                "items": told.items,
                "matched": told.matched,
                "removed": dict(told.removed),
            }
        say_json(answer)
        return
    for place, hit in enumerate(result, 1):
        show(place, hit)
    if not result:
        say(f"nothing found  ({safe(str(kept.scope))})")
    if told is not None:
        say(safe(str(told)), dim=True)


def _show_hit(place: int, hit: SessionHit) -> None:
    item = hit.item
    kind = item.role or item.type
    if item.role and item.type != "message":
        kind = f"{item.role} {item.type}"
    title = short(hit.title) or "no title"
    say(f"{place}. {title}  {moment(item.created_at)}  {safe(kind)}", bold=True)
    say(f"   {marked(hit.snippet, sys.stdout.isatty())}")
    also = f"  also in {len(hit.copies)} more" if hit.copies else ""
    say(f"   {safe(hit.id)}{also}", dim=True)


def _show_row(place: int, row: ConversationHit) -> None:
    say(f"{place}. {about(row.conversation)}", bold=True)
    for item in row.first:
        say(f"   {safe(item.role or item.type)}: {short(item.text, 100)}", dim=True)
    for hit in row.hits:
        say(f"   :{hit.position}  {marked(hit.snippet, sys.stdout.isatty())}")
    say(f"   {safe(row.conversation.id)}", dim=True)


def _row_json(row: ConversationHit) -> dict[str, Any]:
    return {
        "conversation": conversation_json(row.conversation),
        "score": row.score,
        "hits": [hit_json(hit) for hit in row.hits],
        "first": [item_json(item) for item in row.first],
        "last": [item_json(item) for item in row.last],
    }


def _none_yet(kept: Place, as_json: bool, empty: dict[str, Any]) -> int:
    if as_json:
        say_json(empty)
    else:
        say(f"{_NONE_YET}  ({safe(str(kept.folder))})", error=True)
    return NOTHING


COMMANDS: dict[str, click.Command] = {"search": search, "show": show, "list": list_}
