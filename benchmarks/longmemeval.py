"""LongMemEval-S questions with their sessions (Wu et al. 2024); the file is given by path."""

import json
import lzma
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Question", "Session", "Turn", "load"]


class Turn(NamedTuple):
    """One turn: who says what, and whether it answers the question."""

    role: str
    text: str
    answers: bool


class Session(NamedTuple):
    """One conversation and its date; its name gives nothing away."""

    name: str
    date: str
    turns: list[Turn]
    answers: bool


class Question(NamedTuple):
    """A question and the sessions in which the answer is looked for."""

    text: str
    sessions: list[Session]


def load(path: Path) -> list[Question]:
    """Return the questions of a file, those that have no answer left out.

    The file is JSON, plain or as .xz: `questions` with the keys of their sessions, and `sessions`.
    """
    packed = path.read_bytes()
    data = json.loads(lzma.decompress(packed) if path.suffix == ".xz" else packed)
    asked = [one for one in data["questions"] if not str(one.get("question_id")).endswith("_abs")]
    return [_question(one, data["sessions"]) for one in asked]


def _question(one: dict[str, Any], sessions: dict[str, list[dict[str, Any]]]) -> Question:
    answers = set(one["answer_session_ids"])
    found = []
    pairs = zip(one["haystack"], one["haystack_dates"], strict=True)
    for number, (key, date) in enumerate(pairs):
        turns = [
            Turn(turn["role"], turn["content"], bool(turn.get("has_answer")))
            for turn in sessions[key]
        ]
        right = key.rpartition("#")[0] in answers
        found.append(Session(f"s{number}", date, turns, right))
    return Question(one["question"], found)
