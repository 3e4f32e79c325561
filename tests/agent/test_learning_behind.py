"""Reflection and the user model work behind the turn."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from typing import Any

import pytest

from memsheaf.agent import AgentMemory, ReflectionSettings, Reflector
from memsheaf.models import ChatRequest, ScriptedModel
from memsheaf.sessionsearch import SessionSearch
from memsheaf.stack import MemoryStack, Scope

MIRA = Scope(user_id="mira")
ASK = {"role": "user", "content": "Who plays the cello?"}
ANSWER = {"role": "assistant", "content": "Mira does."}


def test_reflection_runs_behind_the_turn(stack: MemoryStack) -> None:
    started, release = threading.Event(), threading.Event()

    def answer(request: ChatRequest) -> str:
        started.set()
        release.wait(10)
        return '[{"action": "remember", "content": "Otto is a cello"}]'

    reflector = Reflector(stack, ScriptedModel(answer), settings=ReflectionSettings(every=2))
    with AgentMemory(stack=stack, reflector=reflector) as memory:
        assert not memory.after_response([ASK, ANSWER], conversation="c").reflecting
        assert memory.after_response([ASK, ANSWER], conversation="c").reflecting
        assert started.wait(10)
        assert not reflector.reports
        release.set()
        assert memory.flush(10)
        assert [report.changed for report in reflector.reports] == [True]
        assert len(stack.search("Otto")) == 1
        reflector.undo(reflector.reports[0])
        assert len(stack.search("Otto")) == 0


def test_waiting_reflections_of_one_conversation_are_one(stack: MemoryStack) -> None:
    gate = threading.Event()
    seen: list[str] = []

    def answer(request: ChatRequest) -> str:
        gate.wait(10)
        seen.append(str(request.messages[1]["content"]))
        return "[]"

    with Reflector(stack, ScriptedModel(answer)) as reflector:
        for number in range(5):
            said = {"role": "user", "content": f"message {number}"}
            reflector.after_run([said], MIRA, conversation="a")
            if number == 0:
                _until(lambda: reflector._busy)
        reflector.after_run([{"role": "user", "content": "elsewhere"}], MIRA, conversation="b")
        gate.set()
        assert reflector.flush(10)
        assert len(seen) == 3
        assert all(f"message {number}" in seen[1] for number in range(1, 5))
        assert "elsewhere" in seen[2]
        assert "message" not in seen[2].split('"conversation"')[1].split('"memories"')[0]
    assert not reflector.after_run([ASK], MIRA)


def test_runs_between_two_reflections_are_reflected_on(stack: MemoryStack) -> None:
    model = ScriptedModel(lambda request: "[]")
    with Reflector(stack, model, settings=ReflectionSettings(every=3)) as reflector:
        for number, conversation in enumerate("abbabb"):
            said = {"role": "user", "content": f"message {number}"}
            reflector.after_run([said], MIRA, conversation=conversation)
        assert reflector.flush(10)
    told = " ".join(str(call.messages[1]["content"]) for call in model.calls)
    assert [told.count(f"message {number}") for number in range(6)] == [1] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_reflects_on_its_own(stack: MemoryStack) -> None:
    """Where a worker is forked while the parent's model thinks."""
    gate = threading.Event()

    def answer(request: ChatRequest) -> str:
        gate.wait(10)
        return "[]"

    reflector = Reflector(stack, ScriptedModel(answer))
    reflector.after_run([ASK], MIRA, conversation="a")
    reflector.after_run([ASK], MIRA, conversation="b")
    _until(lambda: reflector._busy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            gate.set()
            idle = reflector.flush(5)
            again = reflector.after_run([ASK], MIRA, conversation="c") and reflector.flush(5)
            code = 0 if idle and again and len(reflector.reports) == 1 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.set()
    assert reflector.flush(10)
    assert len(reflector.reports) == 2
    reflector.close()


def test_a_model_that_fails_shows_in_a_report(stack: MemoryStack) -> None:
    reflector = Reflector(stack, ScriptedModel([ValueError("boom")]))
    reflector.after_run([ASK], MIRA)
    assert reflector.flush(10)
    assert reflector.reports[0].error is not None
    reflector.close()


def test_closing_stops_a_model_that_hangs(stack: MemoryStack) -> None:
    reflector = Reflector(stack, ScriptedModel(["[]"], delay=60))
    reflector.after_run([ASK], MIRA)
    start = time.monotonic()
    reflector.close(timeout=0.05)
    assert time.monotonic() - start < 30


def _until(condition: Any) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_log_that_fails_does_not_stop_reflection(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    with Reflector(stack, ScriptedModel(lambda request: "[]")) as reflector:
        memory = AgentMemory(stack=stack, sessions=sessions, reflector=reflector)
        assert memory.after_response([ASK, ANSWER], conversation="c").reflecting
        again = memory.after_response([ASK, ANSWER], conversation="c")
        assert (again.items, again.reflecting, again.outcomes) == ((), False, ())
        sessions.log.close()
        lost = memory.after_response([ASK, ANSWER], conversation="c")
        assert lost.reflecting
        assert [outcome.provider for outcome in lost.outcomes] == ["sessions"]


def test_busy_runs_without_an_error_are_learned_from(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    """The trigger of self-improvement: enough calls of tools, none failed; a skill comes of it."""
    skill = {"action": "remember", "content": "To find things, ask the cat.", "kind": "skill"}
    model = ScriptedModel(lambda request: f"Sure: ```json\n[{json.dumps(skill)}]\n```")
    settings = ReflectionSettings(every=None, min_tool_calls=3)
    with Reflector(stack, model, settings=settings) as reflector:
        memory = AgentMemory(stack=stack, sessions=sessions, reflector=reflector)

        def run(name: str, calls: int, answer: str = "found") -> bool:
            talk: list[Any] = [{"role": "user", "content": "Find it."}]
            for number in range(calls):
                call = {"name": "find", "arguments": "{}"}
                one = {"id": str(number), "type": "function", "function": call}
                talk.append({"role": "assistant", "content": None, "tool_calls": [one]})
                talk.append({"role": "tool", "tool_call_id": str(number), "content": answer})
            return memory.after_response([*talk, ANSWER], conversation=name).reflecting

        assert not run("few", 2)
        assert not run("failed", 3, '{"status": "error", "error": "tool_failed"}')
        assert run("busy", 3)
        assert reflector.flush(10)
        assert len(model.calls) == 1
    assert [record.content for record in stack.list(filters={"kinds": ["skill"]})] == [
        "To find things, ask the cat."
    ]
