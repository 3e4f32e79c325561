"""The benchmark of derivers on a conversation of a few turns."""

import json
import sys
from pathlib import Path

import pytest
from benchmarks import derivers

TALK = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Mira",
        "speaker_b": "Omar",
        "session_2": [
            {"speaker": "Mira", "dia_id": "D2:1", "text": "I moved to Lisbon!"},
            {"speaker": "Omar", "dia_id": "D2:2", "text": "Do you love it?"},
        ],
        "session_1_date_time": "1 May 2023",
        "session_1": [
            {"speaker": "Mira", "dia_id": "D1:1", "text": "I live in Berlin."},
            {"speaker": "Omar", "dia_id": "D1:2", "text": "I love Berlin. I play chess."},
        ],
    },
}


def test_each_speaker_is_a_user_and_sessions_come_in_order() -> None:
    mira = derivers.derived(TALK, "Mira")
    assert [line.text for line in mira.profile.current] == ["Lives in Lisbon"]
    assert set(mira.items) == {"conv-1/1:0", "conv-1/2:0"}
    omar = derivers.derived(TALK, "Omar")
    assert [line.text for line in omar.profile.current] == ["Loves Berlin", "Plays chess"]


def test_it_prints_figures_and_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps([TALK]))
    monkeypatch.setattr(sys, "argv", ["derivers", str(data), "--sample", "2"])
    derivers.main()
    printed = capsys.readouterr().out
    assert "4 lines and 4 statements in 4 turns" in printed
    assert "0 lines without a source, 0 operations rejected" in printed
    assert printed.count("\n   conv-1/") == 2
