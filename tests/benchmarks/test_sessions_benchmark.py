"""The session benchmark runs on a small corpus, and its corpus is what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import longmemeval, sessions
from benchmarks.session_corpus import FUNCTION_WORDS, Generated, from_path, questions


def test_generated_conversations_are_the_same_each_time_and_half_function_words() -> None:
    turns = list(Generated().turns(400))
    assert turns == list(Generated().turns(400))
    assert len(turns) == 400
    assert {turn.type for turn in turns} == {"message", "tool_call", "tool_result"}
    words = [word for turn in turns for word in turn.text.split()]
    share = sum(word in set(FUNCTION_WORDS) for word in words) / len(words)
    assert 0.45 < share < 0.55
    assert len(questions(iter(turns), 20, 400)) == 20


def test_text_from_a_path_repeats_under_other_conversations(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text('{"conversation": "a", "text": "one"}\n{"conversation": "a", "text": "two"}\n')
    turns = list(from_path(path, 3))
    assert [(turn.conversation, turn.text) for turn in turns] == [
        ("a~0", "one"),
        ("a~0", "two"),
        ("a~1", "one"),
    ]


def test_it_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, few in (("COLD", 1), ("APPENDS", 3), ("ROUNDS", 2), ("WARM", 3)):
        monkeypatch.setattr(sessions, name, few)
    out = tmp_path / "rows.json"
    sessions.main(["--size", "600", "--engines", "memsheaf,fts5", "--json", str(out)])
    ours, theirs = json.loads(out.read_text())
    assert (ours["engine"], theirs["engine"]) == ("memsheaf", "fts5")
    for row in (ours, theirs):
        assert row["p50_ms"] > 0
        assert row["items_per_s"] > 0
    assert ours["cold_ratio"] > 0
    assert "memsheaf / fts5" in capsys.readouterr().out


def test_longmemeval_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    turn = {"role": "user", "content": "I play the cello", "has_answer": True}
    asked = {
        "question_id": "q1",
        "question": "what do I play?",
        "answer_session_ids": ["answer_1"],
        "haystack": ["answer_1#x", "other#y"],
        "haystack_dates": ["2023/05/20", "2023/05/21"],
    }
    left_out = asked | {"question_id": "q2_abs"}
    content = {
        "questions": [asked, left_out],
        "sessions": {"answer_1#x": [turn], "other#y": [{"role": "user", "content": "hello"}]},
    }
    path.write_text(json.dumps(content))
    (question,) = longmemeval.load(path)
    assert [session.answers for session in question.sessions] == [True, False]
    assert [session.name for session in question.sessions] == ["s0", "s1"]
    assert question.sessions[0].turns[0].answers
