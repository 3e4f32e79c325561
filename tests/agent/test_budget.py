"""One budget, shared fairly, kept by any tokenizer, cut only at the borders of items."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import estimate_tokens, inject
from memsheaf.agent.block import build_block
from memsheaf.agent.budget import Section, Sizes, share_out
from memsheaf.stack import Hit, MemoryRecord, MemoryStack, Scope, UsageError

Parse = Callable[[str], list[dict[str, Any]]]
MakeStack = Callable[..., MemoryStack]
ID = "0123456789abcdef"
ASKED = [{"role": "user", "content": "Who plays the cello?"}]
MIRA = Scope(user_id="mira")


def hit(content: str) -> Hit:
    return Hit(MemoryRecord(content=content, scope=MIRA))


def water_level(demands: list[int], total: int) -> list[float]:
    """Max-min fair shares by raising a level, as an oracle."""
    level = 0.0
    while sum(min(d, level + 1 / 64) for d in demands) <= total and level < max(demands, default=0):
        level += 1 / 64
    return [min(d, level) for d in demands]


@settings(max_examples=100, deadline=None)
@given(demands=st.lists(st.integers(0, 40), min_size=1, max_size=6), total=st.integers(0, 120))
def test_small_items_come_to_max_min_fair_shares(demands: list[int], total: int) -> None:
    chosen = share_out([Section([1] * demand, in_order=True) for demand in demands], total)
    for places, fair in zip(chosen, water_level(demands, total), strict=True):
        assert places == list(range(len(places)))
        assert abs(len(places) - fair) <= 1
    assert sum(map(len, chosen)) == min(total, sum(demands))


@settings(max_examples=150, deadline=None)
@given(
    sections=st.lists(
        st.builds(Section, st.lists(st.integers(0, 30), max_size=8), st.booleans()), max_size=4
    ),
    total=st.integers(0, 100),
)
def test_nothing_that_fits_is_left_out(sections: list[Section], total: int) -> None:
    chosen = share_out(sections, total)
    used = sum(s.costs[p] for s, places in zip(sections, chosen, strict=True) for p in places)
    assert used <= total
    for section, places in zip(sections, chosen, strict=True):
        left_out = [p for p in range(len(section.costs)) if p not in places]
        if section.in_order:
            assert places == list(range(len(places)))
            left_out = left_out[:1]
        assert all(section.costs[p] > total - used for p in left_out)


def test_a_large_profile_leaves_room_for_memories_and_the_reverse(parse: Parse) -> None:
    memories = [hit(f"memory {n} " + "word " * 15) for n in range(30)]
    texts = [("profile", "a line of the profile\n" * 60), ("calendar", "Friday: rehearsal")]
    block = build_block(memories, texts, ID, Sizes(3_000))
    assert block is not None
    lines = parse(block.text)
    size = {"memories": 0, "profile": 0, "calendar": 0}
    for line in lines:
        size[line.get("context", "memories")] += len(json.dumps(line))
    assert lines[-1] == {"context": "calendar", "text": "Friday: rehearsal"}
    assert len(block.text) > 2_850
    assert abs(size["memories"] - size["profile"]) < 200


def test_a_small_profile_is_met_and_memories_get_the_rest(parse: Parse) -> None:
    memories = [hit(f"memory {n} " + "word " * 15) for n in range(30)]
    block = build_block(memories, [("profile", "lives in Graz")], ID, Sizes(2_000))
    assert block is not None
    assert parse(block.text)[-1] == {"context": "profile", "text": "lives in Graz"}
    assert len(block.text) > 1_800


TOKENIZERS: list[Callable[[str], int]] = [
    estimate_tokens,
    lambda text: len(text.split()),
    lambda text: len(text.encode()) // 3,
    lambda text: len(text) // 4 + 7,  # a whole is far less than its lines
    lambda text: len(text) ** 2 // 400,  # and far more
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(st.text(min_size=1, max_size=80).filter(str.strip), max_size=5),
    context=st.lists(st.text(max_size=30), max_size=12).map("\n".join),
    tokens=st.integers(0, 400),
    characters=st.none() | st.integers(0, 1_500),
)
def test_both_limits_hold_for_any_tokenizer(
    parse: Parse,
    tokenizer: Callable[[str], int],
    texts: list[str],
    context: str,
    tokens: int,
    characters: int | None,
) -> None:
    sizes = Sizes(characters, tokens, tokenizer)
    block = build_block([hit(text) for text in texts], [("profile", context)], ID, sizes)
    if block is None:
        return
    assert tokenizer(block.text) <= tokens
    assert characters is None or len(block.text) <= characters
    for line in parse(block.text):
        if "memory" in line:
            assert line["text"] in [MemoryRecord(content=t, scope=MIRA).content for t in texts]
        else:
            assert (context + "\n").startswith(line["text"] + "\n")


def test_the_defaults_hold_for_text_of_any_script(make_stack: MakeStack) -> None:
    for text in ("word " * 60, "大提琴。" * 60, "x1-" * 100, "Überlänge " * 40):
        made = inject(ASKED, make_stack(*(f"{text} {n}" for n in range(9))), limit=9)
        assert made.block is not None
        assert len(made.block) <= 2_000
        assert estimate_tokens(made.block) <= 500


def test_a_given_size_is_the_only_limit(make_stack: MakeStack) -> None:
    stack = make_stack(*(f"{'大提琴' * 100} {n}" for n in range(9)))
    made = inject(ASKED, stack, max_characters=2_000)
    assert made.block is not None
    assert estimate_tokens(made.block) > 500
    made = inject(ASKED, make_stack(*("word " * 200 + str(n) for n in range(9))), max_tokens=900)
    assert made.block is not None
    assert len(made.block) > 2_000


def test_a_memory_that_is_far_too_long_is_not_counted(make_stack: MakeStack) -> None:
    counted: list[str] = []

    def tokenizer(text: str) -> int:
        counted.append(text)
        return len(text) // 4

    stack = make_stack("a" * 60_000, "short")
    made = inject(ASKED, stack, max_tokens=300, tokenizer=tokenizer)
    assert [h.record.content for h in made.hits] == ["short"]
    assert max(map(len, counted)) < 2_000


@pytest.mark.parametrize("value", [1.5, True, "9"])
def test_sizes_are_whole_numbers(make_stack: MakeStack, value: Any) -> None:
    for name in ("max_tokens", "max_characters"):
        with pytest.raises(UsageError, match=name):
            inject(ASKED, make_stack("x"), **{name: value})


@pytest.mark.parametrize("size", [0, -5])
def test_without_room_nothing_is_injected(make_stack: MakeStack, size: int) -> None:
    for name in ("max_tokens", "max_characters"):
        made = inject(ASKED, make_stack("x"), **{name: size})  # type: ignore[arg-type]
        assert (made.block, made.reason) == (None, "nothing relevant")
