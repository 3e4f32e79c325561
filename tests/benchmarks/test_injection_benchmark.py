"""The benchmark of injection on a small made-up file."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.injection import AROUND, around, main, run, utterances
from benchmarks.locomo import load

THINGS = ["cello", "parrot", "bicycle", "passport", "kiln", "castle"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    samples: list[dict[str, Any]] = []
    for name in ("one", "two", "three", "four"):
        said = [f"We keep the {thing} of {name} in the old shed" for thing in THINGS]
        said += [f"The {name} walk number {n} went along the river" for n in range(8)]
        turns = [
            {"speaker": name, "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(said)
        ]
        questions = [
            {
                "question": f"Where does {name} keep the {thing}?",
                "evidence": [f"D1:{n}"],
                "category": 4,
            }
            for n, thing in enumerate(THINGS)
        ]
        talk = {"session_1": turns, "session_1_date_time": "1 May"}
        samples.append({"sample_id": name, "conversation": talk, "qa": questions})
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(samples), "utf-8")
    return path


def test_short_and_long_messages_are_measured(data: Path) -> None:
    figures = run(load(data), 3, 1)
    assert list(figures) == list(AROUND)
    assert figures[0].right == figures[0].right_whole > 0.9
    assert figures[8].words > 5 * figures[0].words
    assert figures[8].right_whole < figures[0].right_whole
    assert figures[2].right > figures[2].right_whole
    assert run(load(data), 3, 1) == figures


def test_a_question_stands_between_utterances(data: Path) -> None:
    talk = utterances(load(data))
    assert "We keep the cello of one in the old shed" in talk
    message = around("Where?", talk, 3, random.Random(1))
    assert "Where?" in message
    assert sum(text in message for text in set(talk)) == 3


def test_it_prints_a_row_for_each_length(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["injection", "--locomo", str(data), "--questions", "2"])
    main()
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(AROUND)
