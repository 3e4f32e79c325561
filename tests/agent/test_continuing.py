"""Where a list of messages goes on, as frameworks cut and change it: each turn is kept once."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import AgentMemory, TurnOptions, run_turn
from memsheaf.models import ScriptedModel
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import NewItem, SessionSearch, open_sessions
from memsheaf.stack import MemoryStack, Scope

MIRA = Scope(user_id="mira")
Hand = Callable[..., list[str]]


def u(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def a(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(id: str, text: str = "") -> dict[str, Any]:
    function = {"name": "find", "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function}]
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[SessionSearch]:
    with open_sessions(tmp_path / "sessions") as made:
        yield made


@pytest.fixture
def hand(sessions: SessionSearch) -> Iterator[Hand]:
    """Hands lists of messages over, one after the other; returns what the log holds."""
    with MemoryStack([LocalStore()], scope=MIRA) as stack:
        memory = AgentMemory(stack=stack, sessions=sessions)

        def over(*lists: list[Any]) -> list[str]:
            for messages in lists:
                assert memory.after_response(messages, conversation="c").outcomes == ()
            return kept(sessions)

        yield over


def kept(sessions: SessionSearch, conversation: str = "c") -> list[str]:
    items = sessions.log.items(conversation, MIRA)
    return [item.text for item in items if item.type == "message"]


def test_a_summary_in_place_of_the_beginning(hand: Hand) -> None:
    talk = [u("one"), a("1"), u("two"), a("2"), u("three"), a("3")]
    summed = [u("Summary: numbers were said."), *talk[4:], u("four"), a("4")]
    told = [m["content"] for m in talk]
    assert hand(talk, summed) == [*told, "four", "4"]


@pytest.mark.parametrize("left", [2, 3])
def test_a_summary_in_place_of_half_a_turn(hand: Hand, left: int) -> None:
    answer = a(
        "In the hall, behind the door that leads to the garden, where nobody ever goes. " * 2
    )
    turn = [u("Where?"), call("1"), result("1", "hall"), answer]
    summed = [u("Summary: it was looked for."), *turn[-left:], u("Why?"), a("Dry.")]
    assert hand([u("one"), a("1"), *turn], summed, summed) == [
        "one",
        "1",
        "Where?",
        answer["content"],
        "Why?",
        "Dry.",
    ]


def test_a_history_without_its_tool_calls(hand: Hand) -> None:
    first = [u("Where?"), call("1", "Let me look."), result("1", "hall"), a("In the hall.")]
    later = [u("Where?"), a("In the hall."), u("Why?"), a("It is dry.")]
    assert hand(first, later) == ["Where?", "Let me look.", "In the hall.", "Why?", "It is dry."]


def test_a_turn_of_many_calls_in_a_short_window(hand: Hand, sessions: SessionSearch) -> None:
    calls = [m for n in range(150) for m in (call(str(n)), result(str(n), f"room {n}"))]
    hand([u("zero"), a("0"), u("Where?"), *calls, a("Nowhere.")])
    later = [u("Where?"), a("Nowhere."), u("Why?"), a("It is dry.")]
    assert hand(later, later) == ["zero", "0", *(m["content"] for m in later)]
    again = [*later[:2], u("Where?"), *calls[:4], a("Here."), u("So?"), a("So.")]
    hand([u("Where?"), *calls[-6:], a("Nowhere."), *later[2:], u("More?"), a("No.")])
    assert sum(i.type == "tool_call" for i in sessions.log.items("c", MIRA)) == 150
    assert hand(again)[-4:] == ["Where?", "Here.", "So?", "So."]


def test_old_tool_results_that_were_cleared(hand: Hand, sessions: SessionSearch) -> None:
    first = [u("Where?"), call("1"), result("1", "hall"), a("In the hall.")]
    cleared = [u("Where?"), call("1"), result("1", "[cleared]"), a("In the hall.")]
    hand(first, [*cleared, u("Why?"), call("2"), result("2", "dry"), a("It is dry.")])
    items = sessions.log.items("c", MIRA)
    assert [i.type for i in items] == ["message", "tool_call", "tool_result", "message"] * 2


def test_answers_that_a_framework_changes(hand: Hand) -> None:
    changed = [u("one"), a("1 [source]"), u("two"), a("2")]
    assert hand([u("one"), a("1")], changed) == ["one", "1", "two", "2"]
    spaced = [u("one\n"), a(" 1"), u("two "), a("2"), u("three"), a("3")]
    assert hand(spaced) == ["one", "1", "two", "2", "three", "3"]


def test_a_question_that_was_asked_anew(hand: Hand) -> None:
    talk = [u("one"), a("1"), u("two"), a("2")]
    anew = [u("one"), a("1"), u("two!"), a("2!")]
    on = [*anew, u("three"), a("3")]
    assert hand(talk, anew, anew, on) == ["one", "1", "two", "2", "two!", "2!", "three", "3"]


def test_an_answer_that_was_made_anew_keeps_its_question(hand: Hand) -> None:
    talk = [u("one"), a("1")]
    assert hand(talk, [u("one"), a("uno")]) == ["one", "1", "one", "uno"]
    assert hand([u("one"), a("uno"), u("two"), a("2")])[-2:] == ["two", "2"]


def test_a_turn_that_broke_off_is_gone_on_with(hand: Hand) -> None:
    begun = [u("Where?"), call("1"), result("1", "hall")]
    assert hand(begun, begun, [*begun, a("In the hall.")]) == ["Where?", "In the hall."]
    assert hand([*begun, a("In the hall."), u("Why?")], [u("Why?"), a("Dry.")]) == [
        "Where?",
        "In the hall.",
        "Why?",
        "Dry.",
    ]


def test_only_the_newest_turn_is_handed_over(hand: Hand) -> None:
    turns = [[u("one"), a("1")], [u("ok"), a("done")], [u("two"), a("2")], [u("ok"), a("done")]]
    assert hand(*turns) == ["one", "1", "ok", "done", "two", "2", "ok", "done"]


def test_a_window_that_begins_with_an_answer(hand: Hand) -> None:
    talk = [u("one"), a("1"), u("two"), a("2")]
    assert hand(talk, [a("2"), u("three"), a("3")])[-2:] == ["three", "3"]
    assert len(hand()) == 6


def test_the_same_words_with_another_answer_are_said_again(hand: Hand) -> None:
    assert hand([u("ok"), a("done")], [u("ok"), a("fine")]) == ["ok", "done", "ok", "fine"]


def test_the_same_words_with_other_calls_are_said_again(hand: Hand) -> None:
    first = [u("again"), call("1"), result("1", "x"), a("done")]
    second = [u("again"), call("2"), result("2", "x"), a("done")]
    assert hand([u("one"), a("1"), *first], [u("Summary"), *second]) == [
        "one",
        "1",
        *["again", "done"] * 2,
    ]
    cleared = [*second[:2], result("2", "[cleared]"), a("done")]
    assert len(hand(cleared, [u("again"), a("done")])) == 6


def test_an_error_in_the_log_loses_no_turn(hand: Hand, sessions: SessionSearch) -> None:
    hand([u("ok"), a("done")])
    sessions.log.append("c", NewItem("error", "ModelUnavailable", status="failed"), MIRA)
    talk = [u("ok"), a("done")] * 2
    assert hand(talk, talk) == ["ok", "done"] * 2
    assert hand([*talk, u("ok"), a("done")]) == ["ok", "done"] * 3


@pytest.mark.parametrize("gone", [{0}, {1}, {2}, {3}, {2, 3}, {0, 1, 2, 3}])
def test_what_was_erased_does_not_come_back(
    hand: Hand, sessions: SessionSearch, gone: set[int]
) -> None:
    talk = [u("one"), a("1"), u("two"), a("2")]
    hand(talk)
    for seq in gone:
        sessions.log.erase("c", MIRA, seq)
    left = [m["content"] for n, m in enumerate(talk) if n not in gone]
    assert hand([*talk, u("three"), a("3")]) == [*left, "three", "3"]
    assert hand([*talk, u("three"), a("3")]) == [*left, "three", "3"]


def test_what_follows_an_erased_turn_is_kept_though_the_host_dropped_it_too(
    hand: Hand, sessions: SessionSearch
) -> None:
    hand([u("one"), a("1"), u("two"), a("2")])
    sessions.log.erase("c", MIRA, 2)
    sessions.log.erase("c", MIRA, 3)
    assert hand([u("one"), a("1"), u("three"), a("3")]) == ["one", "1", "three", "3"]


def test_two_writers_of_the_same_turns_keep_them_once(tmp_path: Path) -> None:
    talk = [u("one"), a("1"), u("two"), a("2"), u("three"), a("3")]
    together = threading.Barrier(4)

    def write() -> None:
        with (
            MemoryStack([LocalStore()], scope=MIRA) as stack,
            open_sessions(tmp_path / "shared") as own,
        ):
            memory = AgentMemory(stack=stack, sessions=own)
            together.wait(20)
            for end in (4, 6):
                memory.after_response(talk[:end], conversation="c")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_sessions(tmp_path / "shared") as read:
        assert kept(read) == [message["content"] for message in talk]


def test_an_old_list_that_comes_late_adds_nothing(hand: Hand) -> None:
    talk = [u("one"), a("1"), u("two"), a("2"), u("three"), a("3")]
    assert hand(talk, talk[:4]) == [m["content"] for m in talk]
    assert hand([*talk[:3], a("zwei")])[6:] == ["two", "zwei"]


def test_a_long_conversation_of_the_same_words(hand: Hand) -> None:
    talk = [u("ok"), a("done")] * 60
    assert len(hand(talk)) == 120
    assert len(hand([*talk, u("ok"), a("done")])) == 122
    assert len(hand([*talk, u("ok"), a("done")])) == 122


def test_both_ways_of_recording_go_together(sessions: SessionSearch) -> None:
    with MemoryStack([LocalStore()], scope=MIRA) as stack:
        memory = AgentMemory(stack=stack, sessions=sessions)

        def turn(prompt: Any, answer: str, **options: Any) -> None:
            run_turn(
                prompt,
                memory=memory,
                model=ScriptedModel([answer]),
                conversation="c",
                options=TurnOptions(**options),
            )

        turn("one", "1")
        turn([u("one"), a("1"), u("two")], "2")
        memory.after_response(
            [u("one"), a("1"), u("two"), a("2"), u("ok"), a("done")], conversation="c"
        )
        turn([u("two"), a("2"), u("ok"), a("done"), u("ok")], "well")
        assert kept(sessions) == ["one", "1", "two", "2", "ok", "done", "ok", "well"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=8),
    st.data(),
)
def test_whole_lists_keep_every_turn_once(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Whatever repeats: lists from the beginning, each handed over once or more, some skipped."""
    talk: list[Any] = []
    with (
        MemoryStack([LocalStore()], scope=MIRA) as stack,
        open_sessions(tmp_path_factory.mktemp("log")) as sessions,
    ):
        memory = AgentMemory(stack=stack, sessions=sessions)
        for words, tools in turns:
            talk.append(u(words))
            for number in range(tools):
                talk += [call(f"{len(talk)}-{number}"), result(f"{len(talk)}-{number}", "x")]
            talk.append(a(f"answer to {words}"))
            for _ in range(data.draw(st.integers(0, 2))):
                memory.after_response(talk, conversation="c")
        memory.after_response(talk, conversation="c")
        items = sessions.log.items("c", MIRA)
        assert [item.text for item in items if item.type == "message"] == [
            message["content"] for message in talk if message.get("content") not in (None, "x")
        ]
        assert sum(item.type == "tool_call" for item in items) == sum(n for _, n in turns)


def _cut(talk: list[Any], style: str, number: int, rng: random.Random) -> list[Any]:
    """What a framework leaves of its history before the next turn."""
    if style == "window":
        talk = talk[-rng.randint(3, 12) :]
    elif style == "texts":
        talk = [m for m in talk if m["content"] and m["role"] != "tool"]
    elif style == "summary" and len(talk) > 8:
        talk = [u(f"Summary {number}"), *talk[-6:]]
    elif style == "cleared":
        talk = [m | {"content": "[cleared]"} if m["role"] == "tool" else m for m in talk]
    return list(itertools.dropwhile(lambda message: message["role"] == "tool", talk))


@pytest.mark.parametrize("seed", range(25))
def test_frameworks_that_edit_their_history_as_they_like(hand: Hand, seed: int) -> None:
    rng = random.Random(seed)
    words = ["ok", "yes", "more", "what?"] if seed % 2 else [f"word {n}" for n in range(999)]
    talk: list[Any] = []
    said: list[str] = []
    for number in range(15):
        answer = f"answer {number}"
        talk.append(u(rng.choice(words)))
        said += [talk[-1]["content"], answer]
        for name in (f"{number}-{n}" for n in range(rng.choice([0, 0, 1, 3]))):
            talk += [call(name), result(name, f"result {name}")]
        talk.append(a(answer))
        for _ in range(rng.choice([1, 1, 2])):
            hand(talk)
        style = rng.choice(["whole", "window", "texts", "summary", "cleared"])
        talk = _cut(talk, style, number, rng)
    assert hand() == said
