"""The benchmark of the prompt cache states a share that can go down."""

from __future__ import annotations

import re
import sys

import pytest
from benchmarks import cache
from benchmarks.cache import Profile, conversation, main, measure, naive

from memsheaf.agent import inject
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack


def test_the_last_line_states_the_share(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["cache", "--turns", "12", "--memories", "200"])
    main()
    last = capsys.readouterr().out.splitlines()[-1]
    ours, theirs = map(int, re.findall(r"(\d+)%", last))
    assert ours == 100
    assert theirs < 50


def test_every_other_way_is_colder() -> None:
    words = [f"word{n} of the cello" for n in range(12)]
    profile = Profile()
    with MemoryStack([LocalStore(), profile], scope=cache.SCOPE) as stack:
        stack.store("the cello")
        forgetful = measure(12, words, profile, lambda talk: inject(talk, stack).messages)
        system = measure(12, words, profile, naive(stack))
        untouched = measure(12, words, profile, list)
    assert (untouched.warm, untouched.turns, untouched.blocks) == (11, 11, 0)
    assert forgetful.warm < 3
    assert forgetful.blocks == 11
    assert system.warm < untouched.warm
    assert system.cached_share < untouched.cached_share


def test_the_conversation_has_tool_calls_and_trivial_turns() -> None:
    requests = list(conversation(12, ["a b", "c d"]))
    assert sum(talk[-1]["role"] == "user" for talk in requests) == 12
    assert sum(talk[-1]["role"] == "tool" for talk in requests) == 12
    assert any(talk[-1]["content"] == "ok, thanks" for talk in requests)
