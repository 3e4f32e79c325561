# ruff: noqa: RUF001  (texts of many scripts are the subject)
"""A long message gets what matches a stretch of it; a short one what matches the whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import inject
from memsheaf.agent.relevant import POOL, STRETCH, relevant_hits, words_of
from memsheaf.providers.local import LocalStore
from memsheaf.stack import Hit, InvalidQuery, MemoryRecord, MemoryStack, Scope

MakeStack = Callable[..., MemoryStack]
MIRA = Scope(user_id="mira")
AROUND = (
    "The weather was dreadful again this morning, buses late, everybody soaked and grumpy. "
    "Which teacher called Otto once learned Mira playing her cello? "
    "Afterwards we queued an hour for lukewarm soup beside the crowded station kiosk."
)
MEMORIES = [
    "Mira learned the cello from a teacher called Otto",
    "Rent is due on the first",
    "The passport expires in October",
    "Lena has two parrots",
    "Graz has a castle hill",
    "The bicycle needs a new chain",
]


def hit(text: str, relevance: float = 0.0) -> Hit:
    return Hit(MemoryRecord(content=text, scope=MIRA), relevance=relevance)


def test_a_long_message_gets_what_matches_a_stretch() -> None:
    with MemoryStack([LocalStore()], scope=MIRA) as stack:
        stack.store_many(MEMORIES)
        whole = stack.search(AROUND, min_relevance=0.3)
        assert len(whole) == 0
        made = inject([{"role": "user", "content": AROUND}], stack)
        assert [h.record.content for h in made.hits] == MEMORIES[:1]
        away = AROUND.replace(
            "Which teacher called Otto once learned Mira playing her cello?", "So."
        )
        assert inject([{"role": "user", "content": away}], stack).reason == "nothing relevant"


@pytest.mark.parametrize(
    ("text", "long"),
    [
        (AROUND, True),
        ("Which teacher showed Mira the cello?", False),
        ("", False),
        ("the of and " * 50, False),
        ("cello " * 50, False),
        ("大提琴是谁教的，我想知道她是在哪里学的，还有她什么时候开始学习音乐的", False),
        ("word" * 1_000, False),
    ],
)
def test_long_is_more_words_than_a_question_has(text: str, long: bool) -> None:
    assert bool(words_of(text)) is long


def test_a_short_message_needs_the_whole(make_stack: MakeStack) -> None:
    question = [{"role": "user", "content": "Which teacher showed Mira the cello?"}]
    assert inject(question, make_stack((MEMORIES[0], 0.29))).reason == "nothing relevant"
    assert inject(question, make_stack((MEMORIES[0], 0.3))).block is not None


def test_what_matches_the_whole_always_counts() -> None:
    hits = [hit("unlike anything", 0.4), hit(MEMORIES[0], 0.1), hit("unlike all", 0.2)]
    assert relevant_hits(words_of(AROUND), hits, 5, 0.3) == tuple(hits[:2])
    assert relevant_hits(words_of(AROUND), hits, 1, 0.3) == tuple(hits[:1])
    assert relevant_hits(words_of(AROUND), hits, 5, 0.0) == tuple(hits)
    assert relevant_hits(words_of(AROUND), hits, 5, 1.0) == ()
    assert relevant_hits(words_of(AROUND), [], 5, 0.3) == ()


def test_a_longer_message_needs_a_better_stretch() -> None:
    hits = [hit("Her teacher was called Otto", 0.0), *(hit(text) for text in MEMORIES[1:])]
    text = "Which teacher called Otto gave lessons, helped her, and left last winter term?"
    assert words_of(text)
    assert relevant_hits(words_of(text), hits, 5, 0.1) == tuple(hits[:1])
    filler = " ".join(f"filler{n}" for n in range(200))
    assert relevant_hits(words_of(f"{filler} {text}"), hits, 5, 0.1) == ()


def test_more_is_looked_at_than_is_injected(make_stack: MakeStack) -> None:
    stack = make_stack(*((f"fact {n}", 0.1) for n in range(POOL - 1)), (MEMORIES[0], 0.1))
    made = inject([{"role": "user", "content": AROUND}], stack, limit=2)
    assert [h.record.content for h in made.hits] == MEMORIES[:1]
    many = make_stack(*((f"{MEMORIES[0]} {n}", 0.1) for n in range(9)))
    made = inject([{"role": "user", "content": AROUND}], many, limit=2, min_relevance=0.1)
    assert [h.id for h in made.hits] == ["m0", "m1"]
    assert inject([{"role": "user", "content": AROUND}], stack, limit=0).block is None


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=300), contents=st.lists(st.text(min_size=1).filter(str.strip)))
def test_any_text_is_taken(text: str, contents: list[str]) -> None:
    hits = [hit(content, n / 10) for n, content in enumerate(contents)]
    if words_of(text):
        kept = relevant_hits(words_of(text), hits, 3, 0.3)
        assert len(kept) <= 3
        assert [h for h in hits if h in kept] == list(kept)


def test_huge_texts_cost_little() -> None:
    text = " ".join(f"word{n}" for n in range(20_000))
    assert words_of(text)
    hits = [hit("word19999 " + "filler " * 8_000) for _ in range(POOL)]
    assert relevant_hits(words_of(text), hits, 5, 0.0) == tuple(hits[:5])
    assert len(words_of(text)) > STRETCH


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.3", None])
def test_the_threshold_is_checked_first(make_stack: MakeStack, value: object) -> None:
    with pytest.raises(InvalidQuery, match="min_relevance"):
        inject([], make_stack(), min_relevance=value)  # type: ignore[arg-type]
