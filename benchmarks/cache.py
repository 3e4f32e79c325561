"""How much of a conversation a provider's prompt cache still serves from request to request.

Run: python -m benchmarks.cache
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpus import Zipf
from memsheaf.agent import BlockLedger, cache_report, inject, inject_system
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryRecord, MemoryStack, Scope, hookimpl

SCOPE = Scope(user_id="mira")
SYSTEM = {"role": "system", "content": "You are a helpful assistant. Be brief."}
Messages = list[dict[str, Any]]
Build = Callable[[Messages], list[Any]]


class Profile:
    """A profile of the user that is refreshed every few turns."""

    def __init__(self) -> None:
        self.version = 0

    @hookimpl
    def build_system_prompt(self) -> str:
        """Static text."""
        return "You remember earlier conversations with the user."

    @hookimpl
    def build_user_context(self, scope: Scope) -> str:
        """The present version."""
        return f"- lives in Graz\n- has said {self.version} things\n- prefers short answers"


class Figures(NamedTuple):
    """What a way of injecting came to.

    Attributes:
        turns: Turns after the first.
        warm: Turns of which every request begins with all the bytes of the request before it:
            nothing before the last message of the user has changed.
        bytes_sent: Bytes of all requests after the first, the steps of tool loops included.
        bytes_cached: Bytes of them that the request before had sent as well.
        blocks: Turns that got memories after the user's words.
    """

    turns: int
    warm: int
    bytes_sent: int
    bytes_cached: int
    blocks: int

    @property
    def warm_share(self) -> float:
        """The share of warm turns."""
        return self.warm / self.turns

    @property
    def cached_share(self) -> float:
        """The share of the bytes that a cache serves."""
        return self.bytes_cached / self.bytes_sent


def conversation(turns: int, words: list[str]) -> Iterator[Messages]:
    """Yield the clean history at each request: every third turn calls a tool, once or twice."""
    talk: Messages = [SYSTEM]
    for turn in range(turns):
        question = words[turn % len(words)]
        trivial = turn % 10 == 9
        talk.append({"role": "user", "content": "ok, thanks" if trivial else f"{question}?"})
        yield list(talk)
        for step in range(turn % 3):
            call = f"call-{turn}-{step}"
            function = {"name": "look_up", "arguments": json.dumps({"what": question})}
            calls = [{"id": call, "type": "function", "function": function}]
            talk.append({"role": "assistant", "content": None, "tool_calls": calls})
            talk.append({"role": "tool", "tool_call_id": call, "content": f"found {question}"})
            yield list(talk)
        talk.append({"role": "assistant", "content": f"It is about {question.split()[0]}."})


def measure(turns: int, words: list[str], profile: Profile, build: Build) -> Figures:
    """Build every request of a conversation, and compare each with the one before it."""
    cold: set[int] = set()
    turn = sent = cached = blocks = 0
    before: list[Any] | None = None
    for number, talk in enumerate(conversation(turns, words)):
        profile.version = number // 4
        messages = build(talk)
        if talk[-1]["role"] == "user":
            turn += 1
            blocks += "lives in Graz" in messages[-1]["content"]
        if before is not None:
            report = cache_report(before, messages)
            sent += report.after_bytes
            cached += report.byte
            if not report.extended:
                cold.add(turn)
        before = messages
    return Figures(turns - 1, turns - 1 - len(cold - {1}), sent, cached, blocks)


def memsheaf(stack: MemoryStack, ledger: BlockLedger) -> Build:
    """Memsheaf over a framework that keeps its history clean."""

    def build(talk: Messages) -> list[Any]:
        with_static = inject_system(talk, stack)
        return inject(with_static, stack, ledger=ledger, conversation="monday").messages

    return build


def naive(stack: MemoryStack) -> Build:
    """Memories and profile in the system prompt, found anew for each request."""

    def build(talk: Messages) -> list[Any]:
        words = next(m["content"] for m in reversed(talk) if m["role"] == "user")
        found = "\n".join(f"- {hit.record.content}" for hit in stack.search(words, limit=5))
        about = "\n".join(text for _, text in stack.user_context(words))
        system = f"{SYSTEM['content']}\n\n## Memory\n{found}\n\n## About the user\n{about}"
        return [{"role": "system", "content": system}, *talk[1:]]

    return build


def run(turns: int, memories: int) -> dict[str, Figures]:
    """Measure both ways over the same conversation."""
    zipf = Zipf()
    store, profile = LocalStore(), Profile()
    store.store_many([MemoryRecord(content=r.text, scope=SCOPE) for r in zipf.records(memories)])
    words = zipf.queries(turns)
    ledger = BlockLedger()
    with MemoryStack([store, profile], scope=SCOPE, plugins=[ledger]) as stack:
        figures = {
            "naive": measure(turns, words, profile, naive(stack)),
            "memsheaf": measure(turns, words, profile, memsheaf(stack, ledger)),
        }
    ledger.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how warm the prompt cache stays.")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()

    figures = run(options.turns, options.memories)
    print(f"{options.turns} turns, {options.memories:,} memories, a profile that changes")
    for name, one in figures.items():
        print(
            f"{name}: {one.cached_share:.1%} of {one.bytes_sent:,} bytes cached, "
            f"{one.blocks} turns with memories after the user's words"
        )
    if options.json:
        rows = {name: one._asdict() for name, one in figures.items()}
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    ours, theirs = figures["memsheaf"].warm_share, figures["naive"].warm_share
    print(
        f"prefix up to the last user message byte-identical: {ours:.0%} of turns "
        f"(naive system prompt: {theirs:.0%})"
    )


if __name__ == "__main__":
    main()
