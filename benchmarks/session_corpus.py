"""What the session benchmark stores and asks: generated conversations, or text from a path.

A generated conversation is like those of a coding agent: short words of the user, longer answers,
tool calls, long tool results. Half of its words are English function words, as in English; the
others follow Zipf's law, and every sixth is one of a few words that belong to the conversation.
A question is what somebody remembers of one message: some of its words among function words.
"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.corpus import VOCABULARY, Zipf

_WORDS = """
    the of and to a in is that it for on was with as be at by i this had not are but from or have an
    they which one you were her all she there would their we him been has when who will no if out so
    what up said its about into than them can only other time new some could these may
"""
FUNCTION_WORDS = _WORDS.split()
ITEMS = 50
"""Items of a conversation, in the mean."""
TOPIC = 12
"""Words that belong to a conversation."""
QUESTION = 4
"""Content words of a question."""

KINDS = (
    ("message", "user", 20, 0.2),
    ("message", "assistant", 45, 0.3),
    ("tool_call", "assistant", 15, 0.25),
    ("tool_result", "tool", 70, 0.25),
)
"""Type, role, words in the median, and share."""


class Turn(NamedTuple):
    """One item."""

    conversation: str
    type: str
    role: str
    text: str


class Generated(Zipf):
    """Conversations of a mean size."""

    def turns(self, size: int) -> Iterator[Turn]:
        """Yield so many items, conversation by conversation."""
        rng = np.random.default_rng([self.seed, 7])
        shares = np.array([share for *_, share in KINDS])
        medians = np.array([words for _, _, words, _ in KINDS])
        function = np.array(FUNCTION_WORDS, dtype=object)
        weights = 1 / np.arange(1, len(function) + 1)
        cumulated = np.cumsum(weights / weights.sum())
        number = 0
        while size > 0:
            count = min(size, int(rng.integers(ITEMS // 2, ITEMS * 3 // 2)))
            size -= count
            kinds = rng.choice(len(KINDS), count, p=shares)
            lengths = (medians[kinds] * rng.lognormal(0, 0.6, count)).astype(int).clip(3, 1000)
            total = int(lengths.sum())
            words = np.array(self._draw(rng, total), dtype=object)
            topic = self._words[rng.integers(200, VOCABULARY // 4, TOPIC)]
            own = rng.random(total) < 1 / 6
            words[own] = topic[rng.integers(0, TOPIC, int(own.sum()))]
            small = rng.random(total) < 0.5
            words[small] = function[np.searchsorted(cumulated, rng.random(int(small.sum())))]
            at = 0
            for kind, length in zip(kinds.tolist(), lengths.tolist(), strict=True):
                name, role, _, _ = KINDS[kind]
                text = " ".join(words[at : at + length].tolist())
                yield Turn(f"session-{number:06}", name, role, text)
                at += length
            number += 1


def from_path(path: Path, size: int) -> Iterator[Turn]:
    """Yield so many items of real text: JSON lines with a conversation, type, role and text.

    The lines repeat under other conversations when they run out.
    """
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    for number in range(size):
        row = rows[number % len(rows)]
        conversation = f"{row['conversation']}~{number // len(rows)}"
        yield Turn(conversation, row.get("type", "message"), row.get("role", "user"), row["text"])


def questions(turns: Iterator[Turn], count: int, size: int, seed: int = 0) -> list[str]:
    """Return questions about messages that are spread over so many items."""
    rng = random.Random(seed)
    function = frozenset(FUNCTION_WORDS)
    found = []
    for turn in turns:
        if turn.type != "message" or rng.random() > 3 * count / size:
            continue
        words = list(dict.fromkeys(re.findall(r"\w+", turn.text.lower())))
        content = [word for word in words if word not in function]
        if len(content) >= QUESTION:
            asked = rng.sample(content, QUESTION) + rng.sample(FUNCTION_WORDS, QUESTION)
            rng.shuffle(asked)
            found.append(" ".join(asked))
    rng.shuffle(found)
    return found[:count]
