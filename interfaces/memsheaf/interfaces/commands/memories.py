"""remember, recall, get, list, update, forget."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import click

from memsheaf.interfaces.common import (
    FAILED,
    NOTHING,
    OK,
    code_of,
    filters_of,
    json_option,
    opened,
    outcome_json,
    record_json,
    scope_options,
    show_outcomes,
)
from memsheaf.interfaces.place import place
from memsheaf.interfaces.sent_blocks import SentBlocks
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.stack import Hit, MemoryRecord

__all__ = ["COMMANDS"]

kind_option = click.option("--kind", "kinds", multiple=True, help="Only this kind or class.")
tag_option = click.option("--tag", "tags", multiple=True, help="Only with this tag.")


@click.command()
@click.argument("content")
@click.option("--kind", default="note", show_default=True, help="What it is.")
@click.option("--importance", type=float, default=0.5, show_default=True, help="From 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be repeated.")
@click.option("--evergreen", is_flag=True, help="Never fades.")
@click.option("--expires", metavar="TIME", help="From then on it is never returned (ISO 8601).")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Metadata; may be repeated.")
@click.option("--id", "record_id", metavar="ID", help="Its id; the same id replaces.")
@scope_options(everyone=False)
@json_option
def remember(
    content: str,
    kind: str,
    importance: float,
    tags: tuple[str, ...],
    evergreen: bool,
    expires: str | None,
    meta: tuple[str, ...],
    record_id: str | None,
    as_json: bool,
    **owner: Any,
) -> int:
    """Store CONTENT as a memory; - reads it from standard input."""
    if content == "-":
        content = sys.stdin.buffer.read().decode("utf-8", "replace")
    with opened(**owner) as memory:
        receipt = memory.stack.store(
            content,
            scope=memory.scope,
            kind=kind,
            importance=importance,
            tags=tags,
            evergreen=evergreen,
            metadata=_metadata(meta),
            expires_at=expires,
            id=record_id,
        )
        if as_json:
            say_json(_written(receipt))
        else:
            say(f"remembered {safe(receipt.id)}  ({safe(str(memory.scope))})")
            show_outcomes(receipt.outcomes)
    return OK


@click.command()
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 1000), default=5, show_default=True)
@click.option("--min-relevance", type=click.FloatRange(0, 1), default=0.0, show_default=True)
@kind_option
@tag_option
@click.option("--since", metavar="TIME", help="Created at or after.")
@click.option("--until", metavar="TIME", help="Created at or before.")
@click.option("--explain", is_flag=True, help="Show each score's arithmetic.")
@scope_options(everyone=True)
@json_option
def recall(
    text: str,
    limit: int,
    min_relevance: float,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    since: str | None,
    until: str | None,
    explain: bool,
    as_json: bool,
    **owner: Any,
) -> int:
    """Find memories by TEXT, best first."""
    with opened(**owner) as memory:
        result = memory.stack.search(
            text,
            memory.scope,
            limit,
            filters_of(kinds, tags, since, until),
            min_relevance=min_relevance,
        )
        outcomes = result.outcomes
        if result and not memory.scope.is_everyone:
            outcomes += memory.stack.touch([hit.id for hit in result], memory.scope)
        if as_json:
            say_json(
                {
                    "results": [_hit_json(hit) for hit in result],
                    "partial": result.partial,
                    "outcomes": [outcome_json(outcome) for outcome in outcomes],
                    "notes": list(result.notes),
                }
            )
        else:
            for place, hit in enumerate(result, start=1):
                _show_hit(place, hit, explain)
            if not result:
                say(f"nothing found  ({safe(str(memory.scope))})")
            if result.wider is not None:
                wider = f"{result.wider.count} in the wider scope {result.wider.scope}"
                say(safe(wider))
            show_outcomes(outcomes)
    return code_of(result, result.partial)


@click.command()
@click.argument("record_id", metavar="ID")
@scope_options(everyone=True)
@json_option
def get(record_id: str, as_json: bool, **owner: Any) -> int:
    """Show the memory with this ID."""
    with opened(**owner) as memory:
        record = memory.stack.get(record_id, memory.scope)
        if as_json:
            say_json(None if record is None else record_json(record))
        elif record is None:
            say(f"no such memory  ({safe(str(memory.scope))})")
        else:
            for name, value in record_json(record).items():
                if value not in (None, [], {}) and name != "content":
                    text = value if isinstance(value, str) else json.dumps(value)
                    say(f"{name + ':':18}{safe(text)}")
            for line in record.content.split("\n"):
                say(f"  | {safe(line)}")
    return NOTHING if record is None else OK


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--after", metavar="CURSOR", help="Where the page before ended.")
@click.option("--order", type=click.Choice(["newest", "oldest"]), default="newest")
@kind_option
@tag_option
@scope_options(everyone=True)
@json_option
def list_(
    limit: int,
    after: str | None,
    order: Any,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    as_json: bool,
    **owner: Any,
) -> int:
    """List memories by the time they were made."""
    with opened(**owner) as memory:
        page = memory.stack.list(memory.scope, limit, after, order, filters_of(kinds, tags))
        if as_json:
            say_json(
                {
                    "records": [record_json(record) for record in page],
                    "next": page.next,
                    "partial": page.partial,
                    "outcomes": [outcome_json(outcome) for outcome in page.outcomes],
                }
            )
        else:
            for record in page:
                say(f"{safe(record.id)}  {record.created_at:%Y-%m-%d}  {_line(record)}")
            if not page:
                say(f"nothing found  ({safe(str(memory.scope))})")
            if page.next:
                say(f"more: --after {safe(shlex.quote(page.next))}", dim=True)
            show_outcomes(page.outcomes)
    return code_of(page, page.partial)


@click.command()
@click.argument("record_id", metavar="ID")
@click.option("--content", help="The new text.")
@click.option("--kind", help="What it is.")
@click.option("--importance", type=float, help="From 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="The new tags; may be repeated.")
@click.option("--no-tags", is_flag=True, help="Take all tags away.")
@click.option("--evergreen/--no-evergreen", default=None, help="Whether it never fades.")
@scope_options(everyone=False)
@json_option
def update(
    record_id: str,
    content: str | None,
    kind: str | None,
    importance: float | None,
    tags: tuple[str, ...],
    no_tags: bool,
    evergreen: bool | None,
    as_json: bool,
    **owner: Any,
) -> int:
    """Change the memory with this ID."""
    if tags and no_tags:
        raise click.UsageError("--tag and --no-tags contradict each other")
    wanted = {
        "content": content,
        "kind": kind,
        "importance": importance,
        "tags": () if no_tags else tags or None,
        "evergreen": evergreen,
    }
    changes = {name: value for name, value in wanted.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to change; give --content, --kind, --tag or another")
    with opened(**owner) as memory:
        receipt = memory.stack.update(record_id, changes, memory.scope)
        if as_json:
            say_json(_written(receipt))
        else:
            say(f"updated {safe(receipt.id)}  ({safe(str(memory.scope))})")
            show_outcomes(receipt.outcomes)
    return OK


@click.command()
@click.argument("record_id", metavar="ID")
@scope_options(everyone=False)
@json_option
def forget(record_id: str, as_json: bool, **owner: Any) -> int:
    """Delete the memory with this ID everywhere, and look again."""
    with opened(**owner) as memory:
        memory.stack.listen(SentBlocks(place().folder))
        report = memory.stack.forget(record_id, memory.scope)
        if as_json:
            say_json(
                {
                    "id": report.id,
                    "forgotten": report.forgotten,
                    "verified": report.verified,
                    "deleted": list(report.deleted),
                    "remaining": list(report.remaining),
                    "unverified": list(report.unverified),
                    "outcomes": [outcome_json(outcome) for outcome in report.outcomes],
                }
            )
        else:
            if report.remaining:
                say(safe(f"NOT forgotten: still in {', '.join(report.remaining)}"))
            elif not report.forgotten:
                say(f"no such memory  ({safe(str(memory.scope))})")
            else:
                sure = "and seen no more" if report.verified else "but not verified everywhere"
                say(f"forgotten {safe(report.id)}, {sure}")
            show_outcomes((*report.outcomes, *report.checks))
    if report.forgotten:  # whoever relies on 0 wants it gone everywhere
        return OK if report.verified and not report.partial else FAILED
    return FAILED if report.remaining or report.partial else NOTHING


def _metadata(pairs: tuple[str, ...]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError("--meta takes KEY=VALUE")
        try:
            metadata[name] = json.loads(value)
        except ValueError:
            metadata[name] = value
    return metadata


def _written(receipt: Any) -> dict[str, Any]:
    return {
        "id": receipt.id,
        "stored": receipt.stored,
        "partial": receipt.partial,
        "scope": receipt.record.scope.set_fields(),
        "outcomes": [outcome_json(outcome) for outcome in receipt.outcomes],
    }


def _hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "score": hit.score,
        "relevance": hit.relevance,
        "record": record_json(hit.record),
        "sources": [
            {"provider": s.provider, "rank": s.rank, "score": s.score, "stale": s.stale}
            for s in hit.sources
        ],
    }


def _show_hit(place: int, hit: Hit, explain: bool) -> None:
    sources = ", ".join(f"{source.provider} #{source.rank}" for source in hit.sources)
    say(f"{place}. {_line(hit.record)}", bold=True)
    relevance = "" if hit.relevance is None else f"  relevance {hit.relevance:.2f}"
    say(f"   {safe(hit.id)}  score {hit.score:.3f}{relevance}  {safe(sources)}", dim=True)
    if explain:
        for line in str(hit.explain()).split("\n"):
            say(f"     {safe(line)}", dim=True)


def _line(record: MemoryRecord) -> str:
    text = safe(" ".join(record.content[:400].split()))
    tags = safe(" ".join(f"#{tag}" for tag in record.tags))
    return f"[{record.kind}] {text if len(text) <= 200 else text[:199] + '…'}  {tags}".rstrip()


COMMANDS: dict[str, click.Command] = {
    "remember": remember,
    "recall": recall,
    "get": get,
    "list": list_,
    "update": update,
    "forget": forget,
}
