"""What the rules deriver makes of LoCoMo conversations: how much, and a sample to judge by reading.

Each speaker is a user, each turn an item, each session a batch.

Run: python -m benchmarks.derivers locomo.json --sample 100 --seed 1
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import Line, Profile
from memsheaf.usermodel.applying import apply
from memsheaf.usermodel.rules import RulesDeriver

_START = datetime(2023, 1, 1, tzinfo=UTC)


class Derived(NamedTuple):
    """A user's profile after all sessions, what they said, and how many operations were refused."""

    profile: Profile
    items: dict[str, Item]
    rejected: int


def batches(sample: dict[str, Any], speaker: str) -> Iterator[list[Item]]:
    """What a speaker said, session by session."""
    talk = sample["conversation"]
    sessions = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in sessions:
        turns = talk[f"session_{number}"]
        conversation = f"{sample['sample_id']}/{number}"
        yield [
            Item(
                conversation,
                place,
                "message",
                turn["text"],
                "user",
                ItemOrigin.USER,
                created_at=_START + timedelta(days=number, seconds=place),
            )
            for place, turn in enumerate(turns)
            if turn["speaker"] == speaker
        ]


def derived(sample: dict[str, Any], speaker: str) -> Derived:
    """The profile of a speaker."""
    deriver = RulesDeriver()
    profile = Profile(f"{sample['sample_id']}/{speaker}")
    items: dict[str, Item] = {}
    rejected = 0
    for batch in batches(sample, speaker):
        items |= {item.id: item for item in batch}
        operations = deriver.derive(profile, batch)
        now = _START + timedelta(days=10_000)
        profile, rejections = apply(profile, operations, batch, now)
        rejected += len(rejections)
    return Derived(profile, items, rejected)


def main() -> None:
    """Print figures and the sample; lines that ended are lines too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a LoCoMo file")
    parser.add_argument("--sample", type=int, default=100, help="lines to print")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    lines: list[tuple[Derived, Line]] = []
    turns = rejected = 0
    for sample in json.loads(options.data.read_text("utf-8")):
        talk = sample["conversation"]
        for speaker in (talk["speaker_a"], talk["speaker_b"]):
            result = derived(sample, speaker)
            turns += len(result.items)
            rejected += result.rejected
            lines += [(result, line) for line in result.profile]

    unsourced = sum(not set(line.sources) <= result.items.keys() for result, line in lines)
    unsourced += sum(not line.sources for _, line in lines)
    said = sum(line.times for _, line in lines)
    print(f"{len(lines)} lines and {said} statements in {turns} turns")
    print(
        f"{100 * len(lines) / turns:.1f} lines and {100 * said / turns:.1f} statements a 100 turns"
    )
    print(f"{unsourced} lines without a source, {rejected} operations rejected")
    print(f"kinds: {dict(Counter(str(line.kind) for _, line in lines))}")

    random.Random(options.seed).shuffle(lines)
    for number, (result, line) in enumerate(lines[: options.sample], 1):
        ended = "" if line.is_current else "  [ended]"
        print(f"\n{number}. {line.text}{ended}  ({line.kind}, {line.confidence:.2f})")
        for source in line.sources[:2]:
            print(f"   {source}: {' '.join(result.items[source].text.split())}")


if __name__ == "__main__":
    main()
