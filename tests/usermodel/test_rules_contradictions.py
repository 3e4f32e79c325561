"""Of what contradicts each other one line is current, and the other is kept as history."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from memsheaf.sessionsearch import Item
from memsheaf.usermodel import Profile, apply
from memsheaf.usermodel.rules import RulesDeriver

NOW = datetime(2026, 6, 1, tzinfo=UTC)

CASES = [
    (
        ["I'm a nurse", "I quit my job as a nurse", "I'm a teacher now"],
        ["No longer works as a nurse", "Is a teacher"],
        ["Is a nurse"],
    ),
    (["I have two kids", "I don't have kids"], ["Has no kids"], ["Has two kids"]),
    (["I have two cats", "I have three cats now"], ["Has three cats"], ["Has two cats"]),
    (["I have a black cat", "I have a white cat"], ["Has a black cat", "Has a white cat"], []),
    (["I have two cats", "I have a dog"], ["Has two cats", "Has a dog"], []),
    (
        ["I prefer tea to coffee", "I prefer coffee to tea"],
        ["Prefers coffee to tea"],
        ["Prefers tea to coffee"],
    ),
    (
        ["Always answer in German", "From now on, answer in English"],
        ["Wants the assistant to answer in English"],
        ["Wants the assistant to answer in German"],
    ),
    (
        ["I want to learn Spanish", "I'm learning Spanish", "I speak Spanish"],
        ["Speaks Spanish"],
        ["Wants to learn Spanish", "Is learning Spanish"],
    ),
    (
        ["I live in Berlin", "I moved to Lisbon", "I live in Berlin again"],
        ["Lives in Berlin"],
        ["Lives in Berlin", "Lives in Lisbon"],
    ),
    (["I like tea", "I love tea", "I hate tea"], ["Hates tea"], ["Likes tea"]),
    (["I'm single", "I got married", "I'm divorced"], ["Is divorced"], ["Is single", "Is married"]),
    (["I'm vegan", "I'm not vegan anymore"], ["Is not vegan"], ["Is vegan"]),
    (
        ["My dog Max is a beagle", "I have a cat", "My dog Max died last week"],
        ["Has a cat", "No longer has a dog named Max"],
        ["Has a dog named Max"],
    ),
    (
        ["My girlfriend Ana is great", "I broke up with my girlfriend"],
        ["No longer has a girlfriend"],
        ["Has a girlfriend named Ana"],
    ),
    (
        ["Please call me Tom", "Don't call me Tom"],
        ["Does not want to be called Tom"],
        ["Is called Tom"],
    ),
    (["I'm unemployed", "I work at Initech now"], ["Works at Initech"], ["Is unemployed"]),
    (["I run every morning", "I no longer run"], ["No longer runs"], ["Runs every morning"]),
]


@pytest.mark.parametrize("batched", [False, True], ids=["one by one", "in one batch"])
@pytest.mark.parametrize(("messages", "current", "ended"), CASES)
def test_the_newer_is_current_and_the_older_is_kept(
    say: Callable[..., Item],
    messages: list[str],
    current: list[str],
    ended: list[str],
    batched: bool,
) -> None:
    items = [say(text, place) for place, text in enumerate(messages)]
    profile = Profile("mira")
    for batch in [items] if batched else [[item] for item in items]:
        operations = RulesDeriver().derive(profile, batch)
        profile, rejected = apply(profile, operations, batch, NOW + timedelta(days=1))
        assert not rejected
    assert sorted(line.text for line in profile.current) == sorted(current)
    history = [line for line in profile if not line.is_current]
    assert sorted(line.text for line in history) == sorted(ended)
    assert all(line.ended_by and line.ended_at for line in history)
