"""demo: the main job on a sample conversation, in a temporary folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from memsheaf.agent import Injection, inject
from memsheaf.interfaces.common import OK, json_option, outcome_json
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import (
    Explanation,
    ForgetReport,
    Hit,
    MemoryRecord,
    MemoryStack,
    Mount,
    Outcome,
    ProviderUnavailable,
    Receipt,
    Scope,
    SearchResult,
)
from memsheaf.stack.doubles import FailingProvider

__all__ = ["COMMANDS", "EXAMPLE"]

_MIRA = Scope(user_id="mira")
_QUESTIONS = (
    "Which nuts is Mira allergic to?",
    "What seat does she want on a train?",
    "Who looks after the boiler?",
)
_IN_THE_OUTAGE = "When may we deploy?"
_SECRET = "passport number"
_MESSAGES = [
    {"role": "system", "content": "You are Mira's assistant."},
    {"role": "user", "content": "Order a birthday cake for Leda, please."},
]

EXAMPLE = """\
from memsheaf.agent import inject
from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import MemoryStack, Scope
stores = [LocalStore("memory"), SqliteStore("memory.db")]
with MemoryStack(stores, scope=Scope(user_id="mira")) as stack:
    receipt = stack.store("Mira is allergic to walnuts", kind="fact", tags=["food"])
    print(stack.search("which nuts is she allergic to?")[0].explain())
    print(inject([{"role": "user", "content": "Is Mira allergic to walnuts?"}], stack).messages)
    print(stack.forget(receipt.id).verified)"""


@click.command()
@json_option
def demo(as_json: bool) -> int:
    """Stack two stores and a flaky one, ask, see the arithmetic, forget, inject."""
    with tempfile.TemporaryDirectory(prefix="memsheaf-demo-") as folder:
        home = Path(folder)
        cloud = FailingProvider(ProviderUnavailable("the server does not answer"), on=())
        stores = [
            Mount(LocalStore(home / "local"), name="local"),
            Mount(SqliteStore(home / "memory.db"), name="sqlite"),
            Mount(cloud, name="cloud"),
        ]
        with MemoryStack(stores, scope=_MIRA) as stack:
            receipts = stack.store_many(_sample())
            answers = {question: stack.search(question, limit=2) for question in _QUESTIONS}
            cloud.on = frozenset({"search"})
            outage = stack.search(_IN_THE_OUTAGE, limit=2)
            cloud.on = frozenset()
            found = stack.search(_SECRET, limit=1)
            report = stack.forget(found[0].id)
            after = stack.search(_SECRET, limit=1, min_relevance=0.5)
            injected = inject(_MESSAGES, stack, limit=3)
    if as_json:
        say_json(_json(receipts, {**answers, _IN_THE_OUTAGE: outage}, report, after, injected))
        return OK
    _tell_stores(receipts)
    _tell_answers(answers, outage)
    _tell_forget(found[0], report, after)
    _tell_injection(injected)
    say("The same in ten lines of Python", bold=True)
    say()
    say(EXAMPLE)
    return OK


def _sample() -> list[MemoryRecord]:
    """The memories of the conversation that the package ships."""
    lines = files("memsheaf.interfaces").joinpath("sample.jsonl").read_text(encoding="utf-8")
    turns = [json.loads(line) for line in lines.splitlines()]
    return [
        MemoryRecord(
            content=turn["memory"],
            kind=turn["kind"],
            tags=turn["tags"],
            created_at=turn["at"],
            metadata={"said": turn["said"]},
            derived_from=(turn["turn"],),
            scope=_MIRA,
        )
        for turn in turns
    ]


def _tell_stores(receipts: Sequence[Receipt]) -> None:
    say("1. Remember", bold=True)
    took = ", ".join(outcome.provider for outcome in receipts[0].outcomes if outcome.ok)
    say(f"   {len(receipts)} memories of a conversation with Mira, each taken by {took}")
    say(f"   for instance: {safe(receipts[0].record.content)}")
    say()


def _tell_answers(answers: dict[str, SearchResult], outage: SearchResult) -> None:
    say("2. Ask: one ranked answer from all of them", bold=True)
    for question, answer in answers.items():
        _tell_answer(question, answer)
    say("3. A provider fails, the answer still comes", bold=True)
    _tell_answer(_IN_THE_OUTAGE, outage)


def _tell_answer(question: str, answer: SearchResult) -> None:
    say(f"   ? {question}")
    for place, hit in enumerate(answer, start=1):
        sources = ", ".join(f"{source.provider} #{source.rank}" for source in hit.sources)
        say(f"   {place}. {safe(hit.record.content)}  ({sources}; relevance {hit.relevance:.2f})")
        _tell_arithmetic(hit.explain(), 0)
    _tell_outcomes(answer.outcomes)
    say()


def _tell_arithmetic(node: Explanation, depth: int) -> None:
    say(f"        {'  ' * depth}{node.value:.3f}  {safe(node.description)}", dim=True)
    for part in node.parts:
        _tell_arithmetic(part, depth + 1)


def _tell_outcomes(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if not outcome.complete:
            say(f"   ! {safe(str(outcome))}")


def _tell_forget(victim: Hit, report: ForgetReport, after: SearchResult) -> None:
    say("4. Forget, and look again", bold=True)
    deleted = ", ".join(o.provider for o in report.outcomes if o.count)
    say(f"   forget: {safe(victim.record.content)}")
    say(f"   deleted from {deleted}; forgotten {report.forgotten}, verified {report.verified}")
    say(f"   ? {_SECRET}: {len(after)} found")
    say()


def _tell_injection(injected: Injection) -> None:
    say("5. Into the messages of a request", bold=True)
    for title, messages in (("before", _MESSAGES), ("after", injected.messages)):
        say(f"   {title}:")
        for message in messages:
            first, *rest = message["content"].split("\n")
            say(f"     {message['role']}: {safe(first)}")
            for line in rest:
                say(f"       {safe(line)}".rstrip())
    say()


def _json(
    receipts: Sequence[Receipt],
    answers: dict[str, SearchResult],
    report: ForgetReport,
    after: SearchResult,
    injected: Injection,
) -> dict[str, Any]:
    return {
        "stored": len(receipts),
        "answers": [
            {
                "question": question,
                "hits": [_hit(hit) for hit in answer],
                "partial": answer.partial,
                "outcomes": [outcome_json(outcome) for outcome in answer.outcomes],
            }
            for question, answer in answers.items()
        ],
        "forget": {
            "forgotten": report.forgotten,
            "verified": report.verified,
            "found_after": len(after),
        },
        "messages_before": _MESSAGES,
        "messages_after": injected.messages,
        "example": EXAMPLE,
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "content": hit.record.content,
        "score": hit.score,
        "relevance": hit.relevance,
        "sources": [{"provider": s.provider, "rank": s.rank} for s in hit.sources],
        "arithmetic": str(hit.explain()),
    }


COMMANDS: dict[str, click.Command] = {"demo": demo}
