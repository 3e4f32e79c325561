"""demo: the whole thing at work in a temporary folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from memsheaf.interfaces.common import OK, json_option, outcome_json
from memsheaf.interfaces.terminal import safe, say, say_json
from memsheaf.stack import MemoryRecord, MemoryStack, Scope, SearchResult, hookimpl
from memsheaf.stack.config import load_config
from memsheaf.stack.config_mounts import mounts
from memsheaf.stack.mount import Mount

__all__ = ["COMMANDS"]

_CONFIG = """\
[[providers]]
name = "notes"
type = "local"

[[providers]]
name = "archive"
type = "sqlite"
"""

_MEMORIES = (
    ("Mira plays the cello in a string quartet on Thursdays", "fact", "music"),
    ("Mira is allergic to walnuts; hazelnuts are fine", "fact", "food"),
    ("Mira prefers tea to coffee, oolong above all", "preference", "food"),
    ("The quartet rehearses Dvorak's American quartet this winter", "note", "music"),
    ("Deploys go out on Tuesday mornings, never on Fridays", "decision", "work"),
    ("A failed deploy is rolled back with `make rollback` before anything else", "skill", "work"),
    ("The staging database is refreshed from production every night", "fact", "work"),
    ("The flat has a balcony to the east; tomatoes get sun until noon", "fact", "home"),
    ("The cello's bow was rehaired in March by the workshop on Quay Street", "episode", "music"),
    ("Connection pools ran dry when the timeout was below the query time", "gotcha", "work"),
    ("Mira's sister Leda lives in Lisbon and visits in May", "fact", "family"),
    ("Birthday cake: Leda wants almond, without walnuts for Mira", "note", "food"),
)
_QUESTIONS = ("Which nuts are a problem in a cake?", "When do deploys go out?", "cello bow")


class Flaky:
    """A provider whose server is never there."""

    @hookimpl
    def search(self, scope: Scope) -> list[object]:
        """Fail."""
        raise ConnectionError("the server does not answer")

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Fail."""
        raise ConnectionError("the server does not answer")

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Fail."""
        raise ConnectionError("the server does not answer")


@click.command()
@json_option
def demo(as_json: bool) -> int:
    """Stack two stores and a failing one, ask, see the arithmetic, forget."""
    with tempfile.TemporaryDirectory(prefix="memsheaf-demo-") as folder:
        home = Path(folder)
        (home / "memsheaf.toml").write_text(_CONFIG, encoding="utf-8")
        config = load_config(home, environ={"MEMSHEAF_HOME": folder})
        stores = mounts(config)
        with MemoryStack([*stores, Mount(Flaky(), name="cloud")]) as stack:
            _run(stack, as_json)
    return OK


def _run(stack: MemoryStack, as_json: bool) -> None:
    scope = Scope(user_id="mira")
    receipts = [
        stack.store(content, scope=scope, kind=kind, tags=[tag]) for content, kind, tag in _MEMORIES
    ]
    answers = {question: stack.search(question, scope, 3) for question in _QUESTIONS}
    victim = receipts[1]
    report = stack.forget(victim.id, scope)
    after = stack.search(_QUESTIONS[0], scope, 3)
    if as_json:
        say_json(
            {
                "stored": len(receipts),
                "answers": {q: [hit.record.content for hit in a] for q, a in answers.items()},
                "outcomes": [outcome_json(o) for o in answers[_QUESTIONS[0]].outcomes],
                "forgotten": report.forgotten,
                "remaining": list(report.remaining),
                "gone": victim.id not in [hit.id for hit in after],
            }
        )
        return
    say(f"1. {len(receipts)} memories stored in each of two stores", bold=True)
    say("   notes (local) and archive (sqlite) took them; cloud is down, and says so:")
    _show_outcomes(receipts[0].outcomes)
    say("2. Questions, one ranked answer from both stores", bold=True)
    for question, answer in answers.items():
        _show_answer(question, answer)
    say("3. Why the first hit is first", bold=True)
    for line in str(answers[_QUESTIONS[0]][0].explain()).split("\n"):
        say(f"   {safe(line)}")
    say("4. Forget, and look again", bold=True)
    say(f"   forget: {safe(victim.record.content)}")
    still = ", ".join(report.remaining) or "no store"
    say(
        f"   deleted in {sum(o.count for o in report.outcomes)} places; still seen in {safe(still)}"
    )
    if report.unverified:
        say(f"   could not be asked: {safe(', '.join(report.unverified))}")
    _show_answer(_QUESTIONS[0], after)
    say("The same in Python:", bold=True)
    say(EXAMPLE)


EXAMPLE = """\
from memsheaf.stack import MemoryStack, Scope

mira = Scope(user_id="mira")
with MemoryStack.from_config() as stack:
    receipt = stack.store("Mira is allergic to walnuts", scope=mira, tags=["food"])
    for hit in stack.search("which nuts are a problem", mira, limit=3):
        print(hit.record.content, [source.provider for source in hit.sources])
        print(hit.explain())
    assert stack.forget(receipt.id, mira).verified
"""


def _show_answer(question: str, answer: SearchResult) -> None:
    say(f"   ? {question}")
    for hit in answer:
        sources = ", ".join(f"{source.provider} #{source.rank}" for source in hit.sources)
        say(f"     {hit.score:.3f}  {safe(hit.record.content)}  ({safe(sources)})")
    _show_outcomes(answer.outcomes)


def _show_outcomes(outcomes: tuple[object, ...]) -> None:
    for outcome in outcomes:
        if not getattr(outcome, "ok", True):
            say(f"     ! {safe(str(outcome))}", dim=True)


COMMANDS: dict[str, click.Command] = {"demo": demo}
