"""What a deriver asks for is applied only where the user's own words support it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import (
    Add,
    Confirm,
    Line,
    LineKind,
    LineOrigin,
    Operation,
    Profile,
    Retract,
    Supersede,
    apply,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FACT, PREFERENCE = LineKind.FACT, LineKind.PREFERENCE
Say = Callable[..., Item]


def learned(profile: Profile, item: Item, *operations: Operation) -> Profile:
    after, rejections = apply(profile, operations, [item], NOW)
    assert not rejections
    return after


def lives_in(city: str, *sources: str, **more: Any) -> Add:
    return Add(FACT, f"Lives in {city}", 0.9, sources, **more)


def test_a_line_keeps_its_sources_dates_and_counts(say: Say) -> None:
    items = [say("I like tea", 1), say("Tea, as I said", 2)]
    after, rejections = apply(
        Profile("mira"), [Add(PREFERENCE, "Likes  tea\n", 0.7, ("c:2", "c:1"))], items, NOW
    )
    assert not rejections
    assert after.version == 1
    (line,) = after.lines
    assert (line.id, line.kind, line.text, line.confidence) == ("L1", PREFERENCE, "Likes tea", 0.7)
    assert line.sources == ("c:1", "c:2")
    assert line.times == 2
    assert (line.first_seen, line.last_seen) == (items[0].created_at, items[1].created_at)
    assert line.is_current
    assert line.origin is LineOrigin.DERIVED


def test_unknown_sources_are_dropped_and_a_line_without_one_is_not_accepted(say: Say) -> None:
    invented = [
        Add(FACT, "Works at Acme", 0.9, ("c:99",)),
        Add(FACT, "Works at Acme", 0.9, ()),
        Add(FACT, "Works at Acme", 0.9, ("other:0",)),
    ]
    after, rejections = apply(Profile("mira"), invented, [say("I like tea")], NOW)
    assert after == Profile("mira")
    assert {each.reason for each in rejections} == {
        "no source is an item of the batch that the user said"
    }
    after, _ = apply(
        Profile("mira"), [Add(FACT, "Likes tea", 0.9, ("c:99", "c:0"))], [say("I like tea")], NOW
    )
    assert after.lines[0].sources == ("c:0",)


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "assistant", "origin": ItemOrigin.AGENT},
        {"role": "user", "origin": ItemOrigin.AUTOMATION},
        {"role": "user", "origin": ItemOrigin.IMPORT},
        {"role": "user", "origin": ItemOrigin.TOOL},
        {"role": None},
        {"role": "tool", "type": "tool_result", "origin": ItemOrigin.TOOL},
        {"type": "reasoning"},
    ],
)
def test_only_what_the_user_said_supports_a_line(say: Say, fields: dict[str, Any]) -> None:
    item = say("I live in Rome", **fields)
    after, rejections = apply(Profile("mira"), [lives_in("Rome", item.id)], [item], NOW)
    assert not after.lines
    assert len(rejections) == 1


@pytest.mark.parametrize(
    "operation",
    [
        Add(FACT, " \n ", 0.5, ("c:0",)),
        Add(FACT, "x" * 501, 0.5, ("c:0",)),
        Add("hobby", "Rows", 0.5, ("c:0",)),  # type: ignore[arg-type]
        Add(FACT, 7, 0.5, ("c:0",)),  # type: ignore[arg-type]
        Add(FACT, "Rows", 1.5, ("c:0",)),
        Add(FACT, "Rows", math.nan, ("c:0",)),
        Add(FACT, "Rows", True, ("c:0",)),
        Add(FACT, "Rows", 0.5, "c:0"),  # type: ignore[arg-type]
        Add(FACT, "Rows", 0.5, ("c:0",), subject=" "),
        Confirm("L7", ("c:0",)),
        Supersede("L7", FACT, "Rows", 0.5, ("c:0",)),
        Retract("L7", ("c:0",)),
        Confirm(None, ("c:0",)),  # type: ignore[arg-type]
        {"op": "add", "text": "Rows"},
        None,
    ],
)
def test_what_is_malformed_is_rejected_and_the_rest_goes_on(say: Say, operation: Any) -> None:
    good = Add(FACT, "Sails", 0.5, ("c:0",))
    after, rejections = apply(Profile("mira"), [operation, good], [say("I sail")], NOW)
    assert [line.text for line in after.lines] == ["Sails"]
    assert [each.operation for each in rejections] == [operation]
    assert "Rows" not in rejections[0].reason


def test_nothing_changes_without_operations(say: Say) -> None:
    before = learned(Profile("mira"), say("I live in Rome"), lives_in("Rome", "c:0"))
    assert apply(before, [], [say("Hello", 1)], NOW) == (before, ())


def test_saying_it_again_confirms_the_line(say: Say) -> None:
    profile = learned(Profile("mira"), say("I live in Rome"), lives_in("Rome", "c:0"))
    profile = learned(profile, say("I do live in Rome", 1), lives_in("Rome", "c:1"))
    profile = learned(profile, say("Rome is home", 2), Confirm("L1", ("c:2",)))
    (line,) = profile.lines
    assert line.times == 3
    assert line.sources == ("c:0", "c:1", "c:2")
    assert line.confidence == pytest.approx(1 - 0.1 * 0.8**2)
    assert profile.version == 3
    assert line.last_seen - line.first_seen == timedelta(minutes=2)


def test_the_same_item_counts_once(say: Say) -> None:
    item = say("I live in Rome")
    profile = learned(Profile("mira"), item, lives_in("Rome", "c:0"), lives_in("Rome", "c:0"))
    again = learned(profile, item, Confirm("L1", ("c:0",)))
    assert again == profile
    assert profile.lines[0].times == 1


def test_superseding_keeps_both_with_their_dates(say: Say) -> None:
    profile = learned(Profile("mira"), say("I live in Berlin"), lives_in("Berlin", "c:0"))
    move = Supersede("L1", FACT, "Lives in Lisbon", 0.9, ("c:5",))
    profile = learned(profile, say("I moved to Lisbon", 5), move)
    old, new = profile.lines
    assert (old.superseded_by, old.ended_at, old.ended_by) == ("L2", new.first_seen, ("c:5",))
    assert profile.current == (new,)
    after, rejections = apply(profile, [Confirm("L1", ("c:6",))], [say("x", 6)], NOW)
    assert (after, rejections[0].reason) == (profile, "the line has ended")


def test_moving_back_makes_a_new_line(say: Say) -> None:
    profile = Profile("mira")
    for seq, city in enumerate(["Berlin", "Lisbon", "Berlin"]):
        profile = learned(profile, say("…", seq), lives_in(city, f"c:{seq}", subject="home"))
    assert [line.text for line in profile.lines] == [
        "Lives in Berlin",
        "Lives in Lisbon",
        "Lives in Berlin",
    ]
    assert [line.id for line in profile.current] == ["L3"]


def test_a_subject_has_one_current_line(say: Say) -> None:
    profile = learned(
        Profile("mira"), say("Call me Samuel"), Add(FACT, "Is called Samuel", 0.9, ("c:0",), "Name")
    )
    profile = learned(
        profile, say("Call me Sam", 1), Add(FACT, "Is called Sam", 0.9, ("c:1",), "name")
    )
    assert [line.text for line in profile.current] == ["Is called Sam"]
    assert profile.lines[0].superseded_by == "L2"


def test_a_line_that_takes_a_subject_ends_the_one_that_had_it(say: Say) -> None:
    said = say("I like coffee, tea at home")
    profile = learned(
        Profile("mira"),
        said,
        Add(PREFERENCE, "Likes coffee", 0.9, ("c:0",)),
        Add(PREFERENCE, "Likes tea", 0.9, ("c:0",), "home"),
        Supersede("L1", PREFERENCE, "Likes coffee", 0.9, ("c:0",), "home"),
    )
    assert [(line.id, line.subject) for line in profile.current] == [("L1", "home")]
    assert profile.lines[1].superseded_by == "L1"


def test_a_successor_ends_the_line_it_replaces_and_its_subject_s(say: Say) -> None:
    profile = learned(
        Profile("mira"),
        say("I live in Rome"),
        Add(FACT, "Feels Roman", 0.9, ("c:0",)),
        lives_in("Rome", "c:0", subject="home"),
    )
    moved = Supersede("L1", FACT, "Lives in Oslo", 0.9, ("c:1",), "home")
    profile = learned(profile, say("I live in Oslo now", 1), moved)
    assert [line.text for line in profile.current] == ["Lives in Oslo"]
    assert [line.superseded_by for line in profile.lines] == ["L3", "L3", None]


def test_older_words_never_outrank_newer_ones(say: Say) -> None:
    profile = learned(
        Profile("mira"), say("I live in Lisbon", 9), lives_in("Lisbon", "c:9", subject="home")
    )
    profile = learned(
        profile, say("I live in Berlin", 1), lives_in("Berlin", "c:1", subject="home")
    )
    assert [line.text for line in profile.current] == ["Lives in Lisbon"]
    late = profile.lines[1]
    assert (late.text, late.superseded_by) == ("Lives in Berlin", "L1")
    assert late.ended_at == profile.lines[0].first_seen
    after, rejections = apply(profile, [Retract("L1", ("c:1",))], [say("I left Lisbon", 1)], NOW)
    assert (after, rejections[0].reason) == (profile, "the line was said again later")


def test_a_time_in_the_future_counts_as_now(say: Say) -> None:
    item = say("I live in Rome", created_at=NOW + timedelta(days=900))
    profile = learned(Profile("mira"), item, lives_in("Rome", "c:0", subject="home"))
    assert profile.lines[0].last_seen == NOW
    later, _ = apply(
        profile,
        [lives_in("Oslo", "c:1", subject="home")],
        [say("I live in Oslo", 1, created_at=NOW + timedelta(hours=1))],
        NOW + timedelta(hours=2),
    )
    assert [line.text for line in later.current] == ["Lives in Oslo"]


def test_retracting_ends_a_line_and_keeps_it(say: Say) -> None:
    profile = learned(Profile("mira"), say("I use vim"), Add(PREFERENCE, "Uses vim", 0.9, ("c:0",)))
    profile = learned(profile, say("I no longer use vim", 3), Retract("L1", ("c:3",), "gave it up"))
    (line,) = profile.lines
    assert profile.current == ()
    assert (line.superseded_by, line.ended_by, line.reason) == (None, ("c:3",), "gave it up")


def corrected(say: Say) -> Profile:
    """A profile in which the user has put Lisbon in the place of Berlin."""
    profile = learned(
        Profile("mira"), say("I live in Berlin"), lives_in("Berlin", "c:0", subject="home")
    )
    wrong = profile.lines[0]
    right = Line(
        id="L2",
        kind=FACT,
        text="Lives in Lisbon",
        confidence=1.0,
        first_seen=NOW,
        last_seen=NOW,
        origin=LineOrigin.USER,
        subject="home",
    )
    ended = Line(
        **{
            **{name: getattr(wrong, name) for name in wrong.__slots__},
            "superseded_by": "L2",
            "ended_at": NOW,
        }
    )
    return Profile("mira", 2, (ended, right), 2)


@pytest.mark.parametrize(
    "operation",
    [
        Supersede("L2", FACT, "Lives in Oslo", 0.9, ("c:7",)),
        Add(FACT, "Lives in Oslo", 0.9, ("c:7",), "home"),
    ],
)
def test_what_contradicts_a_correction_is_history(say: Say, operation: Operation) -> None:
    later = NOW + timedelta(days=1)
    item = say("I live in Oslo", 7, created_at=later)
    after, rejections = apply(corrected(say), [operation], [item], later)
    assert not rejections
    assert [line.text for line in after.current] == ["Lives in Lisbon"]
    assert [(line.text, line.superseded_by) for line in after.lines[2:]] == [
        ("Lives in Oslo", "L2")
    ]


def test_a_corrected_statement_does_not_come_back(say: Say) -> None:
    profile = corrected(say)
    for seq in (8, 9):
        profile = learned(
            profile,
            say("I live in Berlin", seq),
            Add(FACT, "The user lives in Berlin.", 0.9, (f"c:{seq}",)),
        )
    assert [line.text for line in profile.current] == ["Lives in Lisbon"]
    assert len(profile.lines) == 2
    assert profile.lines[0].sources == ("c:0", "c:8", "c:9")


def test_what_supersedes_a_line_that_was_replaced_meanwhile_meets_its_successor(say: Say) -> None:
    late = Supersede("L1", FACT, "Lives in Oslo", 0.9, ("c:7",))
    after = learned(corrected(say), say("I live in Oslo", 7), late)
    assert [line.text for line in after.current] == ["Lives in Lisbon"]
    assert after.lines[2].superseded_by == "L2"
    gone = learned(Profile("mira"), say("vim"), Add(FACT, "Uses vim", 0.9, ("c:0",)))
    gone = learned(gone, say("no vim", 1), Retract("L1", ("c:1",)))
    gone = learned(gone, say("emacs", 2), Supersede("L1", FACT, "Uses emacs", 0.9, ("c:2",)))
    assert [line.text for line in gone.current] == ["Uses emacs"]


def test_only_the_user_retracts_what_the_user_wrote(say: Say) -> None:
    profile = corrected(say)
    after, rejections = apply(profile, [Retract("L2", ("c:7",))], [say("I left", 7)], NOW)
    assert after == profile
    assert "only the user" in rejections[0].reason


def test_near_duplicates_merge_and_keep_counts_and_sources(say: Say) -> None:
    profile = learned(
        Profile("mira"), say("tea!", 1), Add(PREFERENCE, "Prefers tea", 0.6, ("c:1",))
    )
    profile = learned(profile, say("coffee", 2), Add(PREFERENCE, "Prefers coffee", 0.6, ("c:2",)))
    move = Supersede("L2", PREFERENCE, "The user prefers tea.", 0.6, ("c:3",))
    profile = learned(profile, say("I prefer tea to coffee", 3), move)
    assert [line.id for line in profile.current] == ["L1"]
    assert profile.lines[0].sources == ("c:1", "c:3")
    assert profile.lines[1].superseded_by == "L1"


def test_lines_that_became_the_same_are_merged_into_the_oldest(say: Say) -> None:
    lines = []
    for number, text in enumerate(["Prefers tea", "prefers the tea", "Does not prefer tea"], 1):
        seen = NOW - timedelta(days=10 - number)
        lines.append(
            Line(
                id=f"L{number}",
                kind=PREFERENCE,
                text=text,
                confidence=0.5,
                first_seen=seen,
                last_seen=seen,
                sources=(f"old:{number}",),
            )
        )
    after, _ = apply(Profile("mira", 1, tuple(lines), 3), [], [say("hello")], NOW)
    assert [line.id for line in after.current] == ["L1", "L3"]
    assert (after.lines[0].times, after.lines[0].sources) == (2, ("old:1", "old:2"))
    assert after.lines[1].superseded_by == "L1"


def test_a_line_that_is_said_very_often_keeps_its_first_and_newest_sources(say: Say) -> None:
    profile = learned(Profile("mira"), say("tea", 0), Add(PREFERENCE, "Likes tea", 0.5, ("c:0",)))
    for seq in range(1, 151):
        profile = learned(profile, say("tea", seq), Confirm("L1", (f"c:{seq}",)))
    (line,) = profile.lines
    assert line.times == 151
    assert len(line.sources) == 100
    assert (line.sources[0], line.sources[-1]) == ("c:0", "c:150")


texts = st.sampled_from(
    ["Likes tea", "likes the tea", "Likes coffee", "Lives in Rome", "", "x" * 600]
)
sources = st.lists(st.sampled_from(["c:0", "c:1", "c:2", "c:3", "z:9"]), max_size=3).map(tuple)
lines = st.sampled_from(["L1", "L2", "L3", "L9"])
sure = st.floats(-0.5, 1.5)
subjects = st.sampled_from([None, "home"])
operations = st.one_of(
    st.builds(Add, st.sampled_from(LineKind), texts, sure, sources, subjects),
    st.builds(Confirm, lines, sources),
    st.builds(Supersede, lines, st.sampled_from(LineKind), texts, sure, sources, subjects),
    st.builds(Retract, lines, sources),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(operations, max_size=6), max_size=4))
def test_whatever_a_deriver_asks_for_a_profile_stays_sound(batches: list[list[Operation]]) -> None:
    profile = Profile("mira")
    items = [
        Item(
            "c",
            seq,
            "message",
            "words",
            "user",
            ItemOrigin.USER,
            created_at=NOW - timedelta(days=9 - seq),
        )
        for seq in range(4)
    ]
    for batch in batches:
        before = profile
        profile, rejections = apply(before, batch, items, NOW)
        assert len(rejections) <= len(batch)
        assert profile.version == before.version + (profile.lines != before.lines)
        assert [line.id for line in profile.lines[: len(before.lines)]] == [
            line.id for line in before.lines
        ]
    ids = [line.id for line in profile.lines]
    assert len(set(ids)) == len(ids) <= profile.last_id
    homes = [line for line in profile.current if line.subject == "home"]
    assert len(homes) <= 1
    for line in profile.lines:
        assert line.sources
        assert set(line.sources) <= {"c:0", "c:1", "c:2", "c:3"}
        assert line.times == len(line.sources)
        assert 0 <= line.confidence <= 1
        assert line.first_seen <= line.last_seen <= NOW
        assert 0 < len(line.text) <= 500
        assert line.superseded_by is None or (line.superseded_by in ids and not line.is_current)
        assert line.superseded_by != line.id
