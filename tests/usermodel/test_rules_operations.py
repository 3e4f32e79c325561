"""What the rules make of a conversation: operations on a profile, and the profile after them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch import Item, ItemOrigin
from memsheaf.usermodel import Add, Confirm, Deriver, Profile, Supersede, apply
from memsheaf.usermodel.rules import RulesDeriver
from memsheaf.usermodel.rules_statements import MAX_LINE, Statement, read

START = datetime(2026, 3, 1, tzinfo=UTC)


def items(*messages: str, start: int = 0) -> list[Item]:
    return [
        Item(
            "c",
            place,
            "message",
            message,
            "user",
            ItemOrigin.USER,
            created_at=START + timedelta(minutes=place),
        )
        for place, message in enumerate(messages, start)
    ]


def after(*messages: str, profile: Profile | None = None, batch: bool = False) -> Profile:
    """The profile after messages, each a batch of its own or all one batch."""
    profile = profile or Profile("mira")
    said = items(*messages)
    for group in [said] if batch else [[item] for item in said]:
        operations = RulesDeriver().derive(profile, group)
        profile, rejections = apply(profile, operations, group, START + timedelta(days=1))
        assert rejections == ()
    return profile


def current(profile: Profile) -> list[str]:
    return [line.text for line in profile.current]


SEQUENCES = [
    (["I live in Berlin.", "I moved from Berlin to Lisbon."], ["Lives in Lisbon"]),
    (["My name is Samuel.", "Call me Sam, not Samuel."], ["Is called Sam, not Samuel"]),
    (["I use vim.", "I no longer use vim."], ["No longer uses vim"]),
    (["I use vim.", "I switched from vim to Helix."], ["Uses Helix instead of vim"]),
    (["I no longer use vim.", "I use vim."], ["Uses vim"]),
    (["I love coffee.", "I don't like coffee anymore."], ["No longer likes coffee"]),
    (["I love coffee.", "I'm not a fan of coffee."], ["Does not like coffee"]),
    (["I play tennis.", "I used to play tennis."], ["No longer plays tennis"]),
    (["I used to play tennis."], []),
    (
        ["I play guitar and piano.", "I no longer play guitar."],
        ["Plays guitar and piano", "No longer plays guitar"],
    ),
    (["I used to smoke but now I vape."], ["No longer smokes", "Vapes"]),
    (["I used to live in Berlin but now I live in Lisbon."], ["Lives in Lisbon"]),
    (["I live in Lisbon.", "I used to live in Berlin."], ["Lives in Lisbon"]),
    (["I live in Lisbon.", "I no longer live in Lisbon."], ["No longer lives in Lisbon"]),
    (["I'm 30 years old.", "I just turned 31."], ["Is 31 years old"]),
    (
        ["My favourite colour is green.", "My favorite color is red."],
        ["Their favourite color is red"],
    ),
    (
        ["My favourite food is sushi.", "My favorite food is ramen."],
        ["Their favourite food is ramen"],
    ),
    (["I work at Siemens.", "I just left my job at Siemens."], ["No longer works at Siemens"]),
    (["I work at Siemens.", "I work at Bosch."], ["Works at Bosch"]),
    (["I like turtles.", "I love turtles."], ["Likes turtles"]),
    (["I'm vegan.", "I'm no longer vegan."], ["Is not vegan"]),
    (["I'm vegetarian.", "I used to be vegetarian."], ["Is not vegetarian"]),
    (["I work at Siemens.", "I quit my job."], ["Has quit their job"]),
    (["I like gluten.", "I avoid gluten."], ["Avoids gluten"]),
    (["My editor is vim.", "My editor is Helix."], ["Their editor is Helix"]),
    (["I'm single.", "I'm married."], ["Is married"]),
    (["My name is Sarah.", "Actually it's Sara, not Sarah."], ["Is called Sara"]),
    (["My name is Jon. Actually it's John."], ["Is called John"]),
    (["I live in Porto and work as a nurse."], ["Lives in Porto", "Works as a nurse"]),
    (["I have a dog named Rex.", "My dog loves the beach."], ["Has a dog named Rex"]),
    (["I have two kids.", "My kids are at school."], ["Has two kids"]),
    (["I have no kids.", "We have two kids."], ["Has two kids"]),
    (["My kids love it here.", "We have two kids."], ["Has two kids"]),
    (["My dog is asleep.", "My dog's name is Rex."], ["Has a dog named Rex"]),
    (
        ["I have a dog named Rex.", "I have a dog named Max."],
        ["Has a dog named Rex", "Has a dog named Max"],
    ),
    (["I have no kids.", "My kids are at school."], ["Has kids"]),
    (["I have a dog.", "I no longer have a dog."], ["Has no dog"]),
    (
        ["I want to learn Japanese.", "I don't want to learn Japanese anymore."],
        ["Does not want to learn Japanese"],
    ),
    (["I prefer tea over coffee.", "I love hiking."], ["Prefers tea to coffee", "Loves hiking"]),
]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("messages", "lines"), SEQUENCES)
def test_the_newest_is_current(messages: list[str], lines: list[str], batch: bool) -> None:
    profile = after(*messages, batch=batch)
    assert current(profile) == lines


def test_what_was_superseded_stays_with_its_source() -> None:
    old, new = after("I live in Berlin.", "I moved to Lisbon.").lines
    assert (old.text, old.sources, old.superseded_by) == ("Lives in Berlin", ("c:0",), new.id)
    assert (new.text, new.sources) == ("Lives in Lisbon", ("c:1",))


def test_said_again_confirms_the_line() -> None:
    profile = after("I live in Lisbon.")
    again = items("As I said, I live in Lisbon.", start=1)
    assert RulesDeriver().derive(profile, again) == (Confirm("L1", ("c:1",)),)


def test_said_twice_in_a_batch_is_one_operation_with_both_sources() -> None:
    (operation,) = RulesDeriver().derive(Profile("mira"), items("I love tea.", "I love tea!"))
    assert isinstance(operation, Add)
    assert operation.sources == ("c:0", "c:1")


def test_a_new_value_names_the_subject_or_the_line_that_it_ends() -> None:
    (moved,) = RulesDeriver().derive(after("I live in Berlin."), items("I moved to Lisbon."))
    assert isinstance(moved, Add)
    assert moved.subject == "home"
    (gone,) = RulesDeriver().derive(
        after("I live in Berlin."), items("I no longer live in Berlin.")
    )
    assert isinstance(gone, Supersede)
    assert (gone.line_id, gone.subject) == ("L1", "home")


@pytest.mark.parametrize(
    "item",
    [
        Item("c", 0, "message", "I live in Lisbon.", "assistant", ItemOrigin.AGENT),
        Item("c", 0, "message", "I live in Lisbon.", "user", ItemOrigin.AUTOMATION),
        Item("c", 0, "message", "I live in Lisbon.", "user", ItemOrigin.TOOL),
        Item("c", 0, "tool_result", "I live in Lisbon.", "user", ItemOrigin.USER),
    ],
)
def test_only_what_the_user_said_counts(item: Item) -> None:
    assert RulesDeriver().derive(Profile("mira"), [item]) == ()


def test_a_correction_without_a_line_that_holds_the_wrong_word_does_nothing() -> None:
    assert current(after("I live in Porto.", "It's Sara, not Sarah.")) == ["Lives in Porto"]


def test_a_correction_of_what_just_ended_another_line() -> None:
    before = after("I live in Berlin.")
    said = items("I no longer live in Berlin.", "It's Munich, not Berlin.", start=1)
    profile, _ = apply(before, RulesDeriver().derive(before, said), said, START)
    assert current(profile) == ["No longer lives in Munich"]


def test_a_correction_that_fits_two_lines_does_nothing() -> None:
    profile = after("I love tea with milk.", "I hate milk.", "It's oat, not milk.")
    assert current(profile) == ["Loves tea with milk", "Hates milk"]


def test_a_long_message_is_taken_as_pasted() -> None:
    assert read("I live in Lisbon. " + "Lorem ipsum dolor sit amet. " * 200) == []


def test_it_is_a_deriver() -> None:
    deriver = RulesDeriver()
    assert isinstance(deriver, Deriver)
    assert deriver.name == "rules"


@given(st.lists(st.sampled_from([said for said, _ in SEQUENCES]), min_size=2, max_size=4))
@settings(max_examples=60)
def test_a_batch_gives_what_its_messages_give_one_by_one(parts: list[list[str]]) -> None:
    messages = [message for part in parts for message in part]
    assert sorted(current(after(*messages, batch=True))) == sorted(current(after(*messages)))


_WORDS = (
    "I am I'm my wife love like hate use live in Lisbon no longer not vegan, . ? ! \" ' ` ``` < > "
    "( ) and but because since called me is 34 years old always never want to - : ; the a it "
    "favourite from Berlin every day \u202e \U0001f600"
)
_PIECES = st.sampled_from([*_WORDS.split(), "\n", "\x00", "\ud800"])


@given(st.lists(_PIECES, max_size=40).map(" ".join))
def test_any_text_gives_bounded_lines_or_nothing(message: str) -> None:
    for said in read(message):
        if isinstance(said, Statement):
            assert 0 < len(said.text) <= MAX_LINE
            assert said.text.isprintable()
            assert said.text[0].isupper() or not said.text[0].isalpha()


@given(st.text(max_size=300))
def test_any_characters_are_read(message: str) -> None:
    batch = items(message)
    for operation in RulesDeriver().derive(Profile("mira"), batch):
        assert operation.sources == ("c:0",)
