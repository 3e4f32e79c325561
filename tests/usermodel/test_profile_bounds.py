"""A profile stays bounded, and what it drops is visible and comes back when it is said again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memsheaf.sessionsearch import Item
from memsheaf.stack import InvalidRecord
from memsheaf.usermodel import Add, LineKind, Profile, Retract, Supersede, UserModel, apply
from memsheaf.usermodel.ageing import AGED, MAX_LINES, bounded

Say = Callable[..., Item]
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def grown(say: Say, count: int, profile: Profile | None = None, start: int = 0) -> Profile:
    items = [say(f"fact {n}", n) for n in range(start, start + count)]
    adds = [Add(LineKind.FACT, item.text, 0.8, (item.id,)) for item in items]
    return apply(profile or Profile("mira"), adds, items, NOW)[0]


def test_ten_thousand_lines_leave_the_newest_and_some_history(say: Say) -> None:
    profile = Profile("mira")
    for start in range(0, 10_000, 500):
        profile = grown(say, 500, profile, start)
    texts = [line.text for line in profile.current]
    assert texts == [f"fact {n}" for n in range(9_500, 10_000)]
    ended = [line for line in profile if not line.is_current]
    assert [line.text for line in ended] == [f"fact {n}" for n in range(9_000, 9_500)]
    assert {line.reason for line in ended} == {AGED}
    assert profile.last_id == 10_000


def test_what_is_said_often_and_instructions_stay_longer(say: Say) -> None:
    items = [say("often", 0), say("often", 1), say("always short answers", 2), say("once", 3)]
    kinds = [LineKind.FACT, LineKind.FACT, LineKind.INSTRUCTION, LineKind.FACT]
    adds = [Add(kind, item.text, 0.8, (item.id,)) for kind, item in zip(kinds, items, strict=True)]
    profile = apply(Profile("mira"), adds, items, NOW)[0]
    profile = grown(say, MAX_LINES - 2, profile, 10)
    assert [line.text for line in profile.current][:3] == [
        "often",
        "always short answers",
        "fact 10",
    ]
    assert [line.text for line in profile if not line.is_current] == ["once"]


def test_an_aged_line_holds_again_with_its_counts_when_it_is_said_again(say: Say) -> None:
    profile = grown(say, MAX_LINES + 1)
    aged = profile.find("L1")
    assert aged is not None
    assert (aged.is_current, aged.reason) == (False, AGED)
    again = say("Fact 0!", 9_000)
    after, _ = apply(profile, [Add(LineKind.FACT, again.text, 0.8, (again.id,))], [again], NOW)
    line = after.find("L1")
    assert line is not None
    assert (line.is_current, line.times, line.reason) == (True, 2, None)
    assert line.sources == ("c:0", again.id)
    assert after.last_id == profile.last_id
    assert len(after.current) == MAX_LINES


def test_a_retracted_line_does_not_come_back_under_its_id(say: Say) -> None:
    items = [say("one", 0), say("gone", 1), say("one", 2)]
    profile, _ = apply(
        Profile("mira"),
        [
            Add(LineKind.FACT, "one", 0.8, ("c:0",)),
            Retract("L1", ("c:1",), "gone"),
            Add(LineKind.FACT, "one", 0.8, ("c:2",)),
        ],
        items,
        NOW,
    )
    assert [(line.id, line.is_current) for line in profile] == [("L1", False), ("L2", True)]


def test_an_aged_line_takes_the_place_of_its_rival(say: Say) -> None:
    first = say("Lives in Rome", 0)
    add = Add(LineKind.FACT, first.text, 0.8, (first.id,), "home")
    profile = grown(say, MAX_LINES, apply(Profile("mira"), [add], [first], NOW)[0], 1)
    items = [say("Lives in Oslo", 8_000), say("Lives in Rome", 8_001)]
    adds = [Add(LineKind.FACT, item.text, 0.8, (item.id,), "home") for item in items]
    after, _ = apply(profile, adds, items, NOW)
    homes = [line for line in after if line.subject == "home"]
    assert [(line.id, line.text) for line in homes if line.is_current] == [("L1", "Lives in Rome")]
    oslo = next(line for line in homes if line.text == "Lives in Oslo")
    assert oslo.superseded_by == "L1"


def test_an_aged_line_ends_who_has_its_subject_now(say: Say) -> None:
    first = say("Lives in Rome", 0)
    add = Add(LineKind.FACT, first.text, 0.8, (first.id,), "home")
    profile = grown(say, MAX_LINES, apply(Profile("mira"), [add], [first], NOW)[0], 1)
    items = [say("Lives in Oslo", 8_000), say("Lives in Rome", 8_001)]
    adds = [
        Add(LineKind.FACT, "Lives in Oslo", 0.8, (items[0].id,), "home"),
        Add(LineKind.FACT, "Lives in Rome", 0.8, (items[1].id,)),
    ]
    after, _ = apply(profile, adds, items, NOW)
    homes = [line for line in after.current if line.subject == "home"]
    assert [(line.id, line.text) for line in homes] == [("L1", "Lives in Rome")]


def test_corrections_never_age_and_keep_what_they_corrected(say: Say, model: UserModel) -> None:
    item = say("Lives in Rome", 0)
    model.observe(item, user_id="mira")
    model.refresh("mira")
    model.correct("mira", "L1", "Lives in Porto")
    profile = model.profile("mira")
    for start in range(1, 3_000, 500):
        profile = grown(say, 500, profile, start)
    assert "Lives in Porto" in [line.text for line in profile.current]
    assert len(profile.current) == MAX_LINES + 1
    assert profile.find("L1") is not None
    again = say("Lives in Rome", 9_000)
    after, _ = apply(profile, [Add(LineKind.FACT, again.text, 0.9, (again.id,))], [again], NOW)
    assert "Lives in Rome" not in [line.text for line in after.current]


def test_a_user_s_own_lines_are_bounded_by_an_error(say: Say, model: UserModel) -> None:
    from memsheaf.usermodel.correcting import corrected

    profile = Profile("mira")
    for number in range(MAX_LINES):
        profile, _ = corrected(profile, None, f"own {number}", None, NOW)
    with pytest.raises(InvalidRecord, match="forget some"):
        corrected(profile, None, "one more", None, NOW)


def test_no_line_points_at_one_that_went(say: Say) -> None:
    profile = Profile("mira")
    items = [say(f"home {n}", n) for n in range(40)]
    adds = [Add(LineKind.FACT, item.text, 0.8, (item.id,), "home") for item in items]
    profile, _ = apply(profile, adds, items, NOW)
    few = bounded(
        [replace(line, superseded_by=None) if line.id == "L3" else line for line in profile], NOW, 5
    )
    ids = {line.id for line in few}
    assert len(few) == 6
    assert all(line.superseded_by is None or line.superseded_by in ids for line in few)


def test_ageing_is_told_by_the_history(say: Say, open_model: Any, echo_deriver: Any) -> None:
    model = open_model(echo_deriver(), batch_items=1_000, batch_tokens=100_000)
    model.observe([say(f"fact {n}", n) for n in range(MAX_LINES + 2)], user_id="mira")
    model.refresh("mira")
    aged = [change for change in model.history("mira") if change.action == "aged"]
    assert [change.text for change in aged] == ["fact 0", "fact 1"]
    assert "fact 0" not in (model.build_user_context("mira", "fact 0", 100_000) or "")


def test_what_supersedes_within_a_full_profile_stays_one(say: Say) -> None:
    profile = grown(say, MAX_LINES)
    last = profile.current[-1]
    item = say("better", 9_000)
    after, _ = apply(
        profile, [Supersede(last.id, LineKind.FACT, "better", 0.9, (item.id,))], [item], NOW
    )
    assert len(after.current) == MAX_LINES
    assert after.current[0].text == "fact 0"


def test_a_clock_that_went_back_ages_nothing_before_it_was_said(say: Say) -> None:
    profile = grown(say, MAX_LINES + 1)
    early = NOW - timedelta(days=10_000)
    item = say("now", 9_000)
    after, _ = apply(profile, [Add(LineKind.FACT, "now", 0.8, (item.id,))], [item], early)
    for line in after:
        assert line.ended_at is None or line.ended_at >= line.last_seen
