"""A history is cut where a provider accepts it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.agent import count_tokens, trim_messages
from memsheaf.stack import UsageError


def call(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": i, "function": {"name": "f"}} for i in ids]}


def result(number: str, content: str = "42") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": number, "content": content}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


SYSTEM = {"role": "system", "content": "Be brief."}
TALK = [
    SYSTEM,
    user("q1"),
    call("t1", "t2"),
    result("t1"),
    result("t2"),
    {"role": "assistant", "content": "a1"},
    user("q2"),
]


def check(messages: list[Any]) -> None:
    """The rules of the providers: begins with the user's words, calls and results in pairs."""
    while messages and messages[0]["role"] == "system":
        messages = messages[1:]
    assert messages[0]["role"] == "user"
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
            waiting = {c["id"] for c in message.get("tool_calls", ())}
    assert not waiting


@pytest.mark.parametrize(
    ("keep", "kept"), [(0, [6]), (1, [6]), (2, [6]), (3, [6]), (5, [6]), (6, [1, 2, 3, 4, 5, 6])]
)
def test_any_number_leaves_a_legal_history(keep: int, kept: list[int]) -> None:
    before = copy.deepcopy(TALK)
    made = trim_messages(TALK, keep_last=keep)
    assert before == TALK
    assert made.messages == [SYSTEM, *(TALK[n] for n in kept)]
    assert made.dropped == len(TALK) - len(made.messages)
    assert made.fits is (keep > 0)
    check(made.messages)


def test_a_long_turn_keeps_its_newest_rounds() -> None:
    talk = [
        user("q"),
        *(call("t1"), result("t1")),
        *(call("t2", "t3"), result("t2"), result("t3")),
        *(call("t4"), result("t4")),
    ]
    assert trim_messages(talk, keep_last=4).messages == [talk[0], *talk[6:]]
    assert trim_messages(talk, keep_last=6).messages == [talk[0], *talk[3:]]
    assert trim_messages(talk, keep_last=8).messages == talk


def test_tokens_of_calls_and_results_count() -> None:
    talk = [
        user("look for it"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "t1", "function": {"name": "grep", "arguments": "word " * 1_600}}
            ],
        },
        result("t1", "word " * 1_600),
        user("thanks"),
    ]
    made = trim_messages(talk, max_tokens=500)
    assert made.messages == talk[-1:]
    assert made.tokens == count_tokens(made.messages) <= 500
    assert made.fits


def test_what_may_not_be_left_out_may_be_too_large() -> None:
    talk = [{"role": "system", "content": "word " * 900}, user("q1"), user("q2")]
    made = trim_messages(talk, max_tokens=500)
    assert made.messages == [talk[0], talk[2]]
    assert not made.fits
    assert made.tokens > 500


def test_what_fits_is_left_alone() -> None:
    talk = [{"role": "assistant", "content": "Hello."}, *TALK[1:], object()]
    made = trim_messages(talk)
    assert (made.messages, made.dropped, made.fits) == (talk, 0, True)
    assert made.messages is not talk
    assert trim_messages([]).messages == []
    assert trim_messages([SYSTEM], keep_last=0).messages == [SYSTEM]
    anthropic = [
        user("q1"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
        user("q2"),
    ]
    assert trim_messages(anthropic, keep_last=3).messages == anthropic[3:]


@pytest.mark.parametrize("name", ["keep_last", "max_tokens"])
def test_bounds_are_checked(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        trim_messages(TALK, **{name: -1})  # type: ignore[arg-type]


ROUNDS = st.lists(st.integers(0, 3), max_size=4)


@settings(max_examples=150, deadline=None)
@given(turns=st.lists(ROUNDS, min_size=1, max_size=5), keep=st.integers(0, 20), by=st.booleans())
def test_any_history_stays_legal(turns: list[list[int]], keep: int, by: bool) -> None:
    talk: list[Any] = [SYSTEM]
    for n, rounds in enumerate(turns):
        talk.append(user(f"question {n}"))
        for m, calls in enumerate(rounds):
            ids = [f"{n}-{m}-{c}" for c in range(calls)]
            talk += [call(*ids), *map(result, ids)] if ids else [user_answer(n, m)]
    made = trim_messages(talk, max_tokens=keep * 8) if by else trim_messages(talk, keep_last=keep)
    check(made.messages)
    assert made.messages[0] == SYSTEM
    assert user(f"question {len(turns) - 1}") in made.messages
    if made.fits:
        assert by or len(made.messages) - 1 <= keep
        assert not by or made.tokens <= keep * 8
    assert made.tokens == count_tokens(made.messages)
    assert made.dropped == len(talk) - len(made.messages)


def user_answer(turn: int, place: int) -> dict[str, Any]:
    return {"role": "assistant", "content": f"answer {turn} {place}"}
