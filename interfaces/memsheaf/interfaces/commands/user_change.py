"""user learn, refresh, correct and forget."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from memsheaf.interfaces.common import FAILED, NOTHING, OK, json_option
from memsheaf.interfaces.place import opened_sessions
from memsheaf.interfaces.session_text import counted
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.interfaces.user_place import Known, opened_user
from memsheaf.stack import NotFound

from .user_read import line_json, owner_options, show_line

if TYPE_CHECKING:
    from memsheaf.interfaces.place import Place
    from memsheaf.sessionsearch import Item
    from memsheaf.usermodel import Handover, UserModel

__all__ = ["COMMANDS"]

_PAGE = 500  # items that are handed over at once

deriver_option = click.option(
    "--deriver",
    default="rules",
    show_default=True,
    metavar="NAME",
    help="What derives: rules, llm, ...",
)

depth_option = click.option(
    "--depth",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="Passes; from the second on, a chat model questions what it proposed.",
)


@click.command()
@click.argument("text", required=False)
@click.option("--sessions", is_flag=True, help="From the kept conversations of this user.")
@click.option("--conversation", "chosen", multiple=True, metavar="ID", help="Only from this one.")
@deriver_option
@depth_option
@owner_options
@json_option
def learn(
    text: str | None,
    sessions: bool,
    chosen: tuple[str, ...],
    deriver: str,
    depth: int,
    as_json: bool,
    **owner: Any,
) -> int:
    """Learn from TEXT, in the user's own words, or from kept conversations.

    TEXT is kept as a conversation of its own, so that its lines can be traced; - reads it from
    standard input. Of conversations only what the user said counts.
    """
    from_sessions = sessions or bool(chosen)
    if (text is None) is not from_sessions:
        raise click.UsageError("give a TEXT, or --sessions, or --conversation")
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if text is not None and not text.strip():
        raise click.UsageError("the text is empty")
    with (
        opened_user(**owner, make=True, deriver=deriver, depth=depth) as known,
        _sessions_of(known, make=text is not None) as kept,
    ):
        model = known.model
        assert model is not None
        before = model.profile(known.owner)
        given = [0, 0, 0]
        pages = _pages(kept, chosen) if text is None else iter([_kept_text(kept, text)])
        for page in pages:
            made = _hand_over(model, known.owner, page)
            for place, count in enumerate((made.accepted, made.repeated, made.ignored)):
                given[place] += count
        after = model.profile(known.owner)
        old = {line.id for line in before.current}
        new = [line for line in after.current if line.id not in old]
        ended = len(old - {line.id for line in after.current})
        if as_json:
            accepted, repeated, ignored = given
            say_json(
                {
                    **known.named,
                    "accepted": accepted,
                    "repeated": repeated,
                    "ignored": ignored,
                    "version": after.version,
                    "ended": ended,
                    "lines": [line_json(line) for line in new],
                }
            )
        else:
            for line in new:
                show_line(line)
            read = counted(given[0], "item")
            said = f"{read} read, {given[1]} known before, {given[2]} not the user's"
            made_of = f"{counted(len(new), 'new line')}, {ended} ended"
            say(f"{said}: {made_of}  ({safe(str(known.scope))})")
    return OK if new or ended or after.version > before.version else NOTHING


@click.command()
@click.option("--retry", is_flag=True, help="Also what was set aside after too many attempts.")
@deriver_option
@depth_option
@owner_options
@json_option
def refresh(retry: bool, deriver: str, depth: int, as_json: bool, **owner: Any) -> int:
    """Derive now what waits of a user."""
    with opened_user(**owner, deriver=deriver, depth=depth) as known:
        version = lines = 0
        if known.model is not None:
            if retry:
                known.model.retry(known.owner)
            profile = known.model.refresh(known.owner)
            version, lines = profile.version, len(profile.current)
        if as_json:
            say_json({**known.named, "version": version, "lines": lines})
        else:
            say(f"version {version}, {counted(lines, 'line')}  ({safe(str(known.scope))})")
    return OK if lines else NOTHING


@click.command()
@click.argument("text")
@click.option("--line", "line_id", metavar="ID", help="The line that is wrong; without it, a new.")
@click.option("--kind", help="preference, goal, habit, fact or instruction.")
@owner_options
@json_option
def correct(text: str, line_id: str | None, kind: str | None, as_json: bool, **owner: Any) -> int:
    """Write TEXT as a line of your own; nothing that is derived changes it."""
    with opened_user(**owner, make=True) as known:
        assert known.model is not None
        line = known.model.correct(known.owner, line_id, text, kind)
        if as_json:
            say_json({**known.named, "replaced": line_id, "line": line_json(line)})
        else:
            show_line(line)
    return OK


@click.command()
@click.argument("line_id", metavar="[LINE]", required=False)
@click.option("--all", "everything", is_flag=True, help="All that is known of the user.")
@click.option("--conversation", "chosen", multiple=True, metavar="ID", help="All from this one.")
@click.option("--sources", is_flag=True, help="Also erase the items that it came from.")
@owner_options
@json_option
def forget(
    line_id: str | None,
    everything: bool,
    chosen: tuple[str, ...],
    sources: bool,
    as_json: bool,
    **owner: Any,
) -> int:
    """Delete LINE and its text everywhere, or with --all the whole profile and what waits.

    With --conversation, what rests on nothing but these conversations; they may be erased
    already. The conversations in which it was said stay, unless --sources is given.
    """
    if (line_id is not None) + everything + bool(chosen) != 1:
        raise click.UsageError("name a line, or give --all or --conversation")
    with opened_user(**owner) as known:
        if known.model is None:
            raise NotFound("nothing is known of this user")
        lines = known.model.profile(known.owner).lines
        said = {source: None for line in lines for source in line.sources}
        if chosen:
            gone = known.model.forget_sources(known.owner, conversations=chosen)
            said = {source: None for source in said if source.rpartition(":")[0] in chosen}
        else:
            gone = known.model.forget(known.owner, line_id)
            named = [line for line in lines if everything or line.id == line_id]
            said = {source: None for line in named for source in line.sources}
        items = said if sources else {}
        erased = _erase_items(known, items)
        if as_json:
            say_json(
                {
                    **known.named,
                    "lines": gone.lines,
                    "items": gone.items,
                    "sources": erased,
                    "erased": gone.erased,
                }
            )
        else:
            also = f", erased {counted(erased, 'item')} of conversations" if sources else ""
            waiting = counted(gone.items, "waiting item")
            say(f"forgot {counted(gone.lines, 'line')} and {waiting}{also}")
            if not gone.erased:
                say("another process reads the files; forget again to overwrite them", error=True)
    if not gone.erased:
        return FAILED
    return OK if gone.lines or gone.items else NOTHING


def _sessions_of(known: Known, *, make: bool = False) -> AbstractContextManager[Place]:
    """The kept conversations of a user, in their namespace."""
    user = known.scope
    return opened_sessions(make=make, user_id=user.user_id, namespace=user.namespace or "")


def _hand_over(model: UserModel, owner: str, items: list[Item]) -> Handover:
    """Hand items over and derive them, so that the queue never fills up."""
    made = model.observe(items, user_id=owner)
    model.refresh(owner)
    return made


def _erase_items(known: Known, item_ids: Iterable[str]) -> int:
    """Erase items from the log and its index; those that are not there are gone already."""
    count = 0
    with _sessions_of(known) as kept:
        if kept.search is None:
            return 0
        for item_id in item_ids:
            conversation, _, seq = item_id.rpartition(":")
            count += kept.search.log.erase(conversation, kept.scope, int(seq))
        kept.search.catch_up()
    return count


def _kept_text(kept: Place, text: str) -> list[Item]:
    """The text as an item of the log, from which its lines can be traced."""
    from memsheaf.sessionsearch import ItemOrigin, NewItem

    assert kept.search is not None
    said = NewItem("message", text, role="user", origin=ItemOrigin.USER)
    name = f"told-{uuid.uuid4().hex[:16]}"
    items = kept.search.log.append(name, said, kept.scope, title="Told to the user model")
    kept.search.catch_up()
    return list(items)


def _pages(kept: Place, chosen: tuple[str, ...]) -> Iterator[list[Item]]:
    """The items of conversations, oldest first, page by page."""
    if kept.search is None:
        return
    log = kept.search.log
    if chosen:
        found = [log.conversation(name, kept.scope) for name in chosen]
    else:
        found = log.conversations(kept.scope, limit=None, order="asc")
    for conversation in found:
        after: int | None = None
        while page := log.items(conversation.id, kept.scope, after=after, limit=_PAGE):
            yield page
            after = page[-1].seq


COMMANDS: dict[str, click.Command] = {
    "learn": learn,
    "refresh": refresh,
    "correct": correct,
    "forget": forget,
}
