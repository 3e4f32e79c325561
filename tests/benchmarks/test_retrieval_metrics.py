import json
import math
from pathlib import Path

import pytest
from benchmarks.locomo import evidence, load
from benchmarks.metrics import ndcg, recall, reciprocal_rank
from benchmarks.retrieval import figures, records_of, through, without_common_word

from memsheaf.stack.doubles import InMemoryStore


def test_recall_counts_the_relevant_within_k() -> None:
    assert recall(["a", "x", "b"], {"a", "b", "c"}, 2) == pytest.approx(1 / 3)
    assert recall(["a", "x", "b"], {"a", "b", "c"}, 10) == pytest.approx(2 / 3)
    assert recall([], {"a"}, 5) == 0


def test_reciprocal_rank_is_of_the_first_relevant() -> None:
    assert reciprocal_rank(["x", "b", "a"], {"a", "b"}) == 0.5
    assert reciprocal_rank(["x"], {"a"}) == 0


def test_ndcg_is_one_for_the_best_order_and_discounts_by_place() -> None:
    assert ndcg(["a", "b", "x"], {"a", "b"}, 10) == 1
    assert ndcg(["x", "a"], {"a"}, 10) == pytest.approx(1 / math.log2(3))
    assert ndcg(["x", "a"], {"a"}, 1) == 0
    assert ndcg(["a"], {"a", "b"}, 1) == 1


@pytest.mark.parametrize(
    ("strings", "expected"),
    [
        (["D1:3"], {"D1:3"}),
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D9:1 D4:4 D4:6"], {"D9:1", "D4:4", "D4:6"}),
        (["D:11:26"], {"D11:26"}),
        (["D30:05"], {"D30:5"}),
        (["D", ""], set()),
    ],
)
def test_evidence_is_read_from_dirty_strings(strings: list[str], expected: set[str]) -> None:
    assert evidence(strings) == expected


@pytest.fixture
def data(tmp_path: Path) -> Path:
    talk = {
        "session_2": [{"speaker": "Ana", "dia_id": "D2:1", "text": "The kiln is hot"}],
        "session_2_date_time": "2 May",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "My cat sleeps"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Look", "blip_caption": "a red canoe"},
        ],
        "session_1_date_time": "1 May",
    }
    questions = [
        {"question": "Who paddles a canoe?", "evidence": ["D1:2"], "category": 4},
        {"question": "What pottery equipment?", "evidence": ["D2:1; D9:9"], "category": 1},
        {"question": "Nothing known?", "evidence": ["D7:1"], "category": 2},
        {"question": "A trap?", "evidence": ["D1:1"], "category": 5},
    ]
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([{"sample_id": "c1", "conversation": talk, "qa": questions}]))
    return path


def test_a_conversation_becomes_dated_turns_and_answerable_questions(data: Path) -> None:
    (talk,) = load(data)
    assert [turn.key for turn in talk.turns] == ["D1:1", "D1:2", "D2:1"]
    assert talk.turns[1].text == "[1 May] Ben: Look [shared image: a red canoe]"
    assert [set(q.relevant) for q in talk.questions] == [{"D1:2"}, {"D2:1"}]


def test_questions_are_asked_through_the_stack(data: Path) -> None:
    talks = load(data)
    records = records_of(talks)
    assert list(without_common_word(talks, records)) == [("c1", "What pottery equipment?")]
    row = through([InMemoryStore()], talks, records)
    assert row["recall@10"] == 0.5
    assert row["mrr"] == 0.5


def test_figures_are_means_over_the_questions(data: Path) -> None:
    row = figures(load(data), [[["D1:2"], ["D1:1", "D2:1"]]])
    assert row["recall@5"] == 1
    assert row["mrr"] == 0.75
