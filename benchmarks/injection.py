"""What is injected into short and long messages: right memories, and memories by chance.

Run: python -m benchmarks.injection --locomo locomo.json
"""

import argparse
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.locomo import Conversation, Question, load
from memsheaf.agent import MIN_RELEVANCE, inject
from memsheaf.index import content_words
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryRecord, MemoryStack, Scope

AROUND = (0, 1, 2, 4, 8)
"""Utterances from elsewhere that stand around a question."""


class Figures(NamedTuple):
    """What messages of one length got.

    Attributes:
        words: Content words of a message, on average.
        right: The share of messages with at least one right memory in the block.
        right_whole: The same where only the whole message counts.
        chance: The share of messages, asked of another conversation, that got any memory.
        chance_whole: The same where only the whole message counts.
    """

    words: float
    right: float
    right_whole: float
    chance: float
    chance_whole: float


def around(question: str, talk: Sequence[str], count: int, rng: random.Random) -> str:
    """Return a message with the question somewhere between utterances."""
    chosen = rng.sample(talk, count)
    place = rng.randint(0, count)
    return " ".join([*chosen[:place], question, *chosen[place:]])


def utterances(conversations: Sequence[Conversation]) -> list[str]:
    """Return what was said, without date and name, where it is about a sentence."""
    said = (re.sub(r"^\[[^]]*\] [^:]*: ", "", t.text) for c in conversations for t in c.turns)
    return [text for text in said if 30 < len(text) < 200 and "[shared image" not in text]


def injected(stack: MemoryStack, message: str) -> set[str]:
    """Return the ids of the memories that `inject` chooses, whatever the budget."""
    made = inject([{"role": "user", "content": message}], stack, max_characters=100_000)
    return {hit.id for hit in made.hits}


def whole(stack: MemoryStack, message: str) -> set[str]:
    """Return the ids of the memories that match the whole message well enough."""
    return {hit.id for hit in stack.prefetch(message, limit=5, min_relevance=MIN_RELEVANCE)}


def run(conversations: Sequence[Conversation], questions: int, seed: int) -> dict[int, Figures]:
    """Measure each length of message over all conversations."""
    rng = random.Random(seed)
    stacks = []
    for conversation in conversations:
        scope, store = Scope(user_id=conversation.name), LocalStore()
        store.store_many(
            [MemoryRecord(id=t.key, content=t.text, scope=scope) for t in conversation.turns]
        )
        stacks.append(MemoryStack([store], scope=scope))
    figures = {}
    for count in AROUND:
        rows = []
        for place, conversation in enumerate(conversations):
            other = (place + 1) % len(conversations)
            elsewhere = [c for n, c in enumerate(conversations) if n not in (place, other)]
            talk = utterances(elsewhere)
            asked: list[Question] = rng.sample(conversation.questions, questions)
            for question in asked:
                message = around(question.text, talk, count, rng)
                rows.append(
                    (
                        len(content_words(message).split()),
                        bool(injected(stacks[place], message) & question.relevant),
                        bool(whole(stacks[place], message) & question.relevant),
                        bool(injected(stacks[other], message)),
                        bool(whole(stacks[other], message)),
                    )
                )
        figures[count] = Figures(*(mean(column) for column in zip(*rows, strict=True)))
    for stack in stacks:
        stack.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what is injected into messages.")
    parser.add_argument("--locomo", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--questions", type=int, default=80, help="per conversation and length")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()

    figures = run(load(options.locomo), options.questions, options.seed)
    print("utterances around  words  right (whole message only)  by chance (whole message only)")
    for count, one in figures.items():
        print(
            f"{count:17}  {one.words:5.0f}  {one.right:5.0%} ({one.right_whole:4.0%}){'':15}"
            f"  {one.chance:5.0%} ({one.chance_whole:4.0%})"
        )
    if options.json:
        rows = {count: one._asdict() for count, one in figures.items()}
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
