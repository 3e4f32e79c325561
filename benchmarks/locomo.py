"""LoCoMo conversations as turns and questions (Maharana et al. 2024); the file is given by path."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Conversation", "Question", "Turn", "evidence", "load"]

_DIALOG_ID = re.compile(r"D:?(\d+):(\d+)")
CATEGORIES = (1, 2, 3, 4)
"""Multi-hop, temporal, open-domain and single-hop; the adversarial ones have no answer."""


class Turn(NamedTuple):
    """One turn's id and text."""

    key: str
    text: str


class Question(NamedTuple):
    """A question and the keys of the turns that answer it."""

    text: str
    relevant: frozenset[str]


class Conversation(NamedTuple):
    """A conversation's turns and the questions about it."""

    name: str
    turns: list[Turn]
    questions: list[Question]


def evidence(strings: Iterable[str]) -> set[str]:
    """Return the turn ids in evidence strings, which hold several in one, or stray signs.

    >>> sorted(evidence(["D8:6; D9:17", "D:11:26"]))
    ['D11:26', 'D8:6', 'D9:17']
    """
    return {
        f"D{int(session)}:{int(turn)}"
        for string in strings
        for session, turn in _DIALOG_ID.findall(string)
    }


def load(path: Path) -> list[Conversation]:
    """Return the conversations of a LoCoMo file.

    Questions of `CATEGORIES` that have at least one turn as evidence are kept.
    """
    return [_conversation(sample) for sample in json.loads(path.read_text("utf-8"))]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    sessions = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    turns = [
        Turn(turn["dia_id"], _text(turn, talk[f"session_{number}_date_time"]))
        for number in sessions
        for turn in talk[f"session_{number}"]
    ]
    known = {turn.key for turn in turns}
    questions = [
        Question(qa["question"], frozenset(evidence(qa["evidence"]) & known))
        for qa in sample["qa"]
        if qa["category"] in CATEGORIES
    ]
    return Conversation(sample["sample_id"], turns, [q for q in questions if q.relevant])


def _text(turn: dict[str, Any], date: str) -> str:
    caption = turn.get("blip_caption")
    image = f" [shared image: {caption}]" if caption else ""
    return f"[{date}] {turn['speaker']}: {turn['text']}{image}"
