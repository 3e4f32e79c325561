"""Before a request and after its answer: injected, kept once, learned in the background."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import (
    Access,
    AgentMemory,
    BlockLedger,
    Policy,
    ReflectionSettings,
    Reflector,
    context,
)
from memsheaf.models import ChatRequest, ScriptedModel
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import ItemOrigin, SessionSearch, open_sessions
from memsheaf.stack import ClosedError, MemoryStack, Scope, ScopeError, hookimpl
from memsheaf.usermodel import Add, LineKind, Operation, Profile, UserModel

MIRA = Scope(user_id="mira")
ASK = {"role": "user", "content": "Who plays the cello?"}
ANSWER = {"role": "assistant", "content": "Mira does."}


class Noting:
    """A deriver that keeps each item as a line."""

    name = "noting"

    def derive(self, profile: Profile, items: Any) -> list[Operation]:
        return [Add(LineKind.FACT, f"Said: {item.text}", 0.9, (item.id,)) for item in items]


@pytest.fixture
def stack() -> Iterator[MemoryStack]:
    with MemoryStack([LocalStore()], scope=MIRA) as made:
        made.store("Mira plays the cello")
        yield made


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[SessionSearch]:
    with open_sessions(tmp_path / "sessions") as made:
        yield made


def kept(sessions: SessionSearch, conversation: str = "c") -> list[str]:
    return [item.text for item in sessions.log.items(conversation, MIRA)]


def test_a_stack_alone_is_enough(stack: MemoryStack) -> None:
    with AgentMemory(stack=stack) as memory:
        sent = memory.before_request([ASK])
        assert "Mira plays the cello" in sent.messages[-1]["content"]
        assert memory.after_response([ASK, ANSWER], conversation="c").items == ()
        assert "memory_recall" in memory.tools().names
        assert "session_search" not in memory.tools().names


def test_a_scope_is_needed() -> None:
    with MemoryStack([LocalStore()]) as stack, pytest.raises(ScopeError):
        AgentMemory(stack=stack)


def test_turns_are_kept_once_however_often_they_are_handed_over(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    memory = AgentMemory(stack=stack, sessions=sessions)
    talk: list[Any] = []
    for number in range(4):
        talk += [{"role": "user", "content": "ok"}, {"role": "assistant", "content": "done"}]
        sent = memory.before_request(talk[:-1], conversation="c").messages
        memory.after_response([*sent, talk[-1]], conversation="c")
        memory.after_response(talk, conversation="c")  # a retry
        assert len(kept(sessions)) == 2 * (number + 1)


def test_blocks_are_never_kept(stack: MemoryStack, sessions: SessionSearch) -> None:
    memory = AgentMemory(stack=stack, sessions=sessions)
    sent = memory.before_request([ASK], conversation="c")
    assert sent.block is not None
    echoed = {"role": "assistant", "content": f"{sent.block}\n\nMira does."}
    recorded = memory.after_response([*sent.messages, echoed], conversation="c")
    assert [item.text.strip() for item in recorded.items] == ["Who plays the cello?", "Mira does."]


def test_a_framework_may_cut_off_the_beginning(stack: MemoryStack, sessions: SessionSearch) -> None:
    memory = AgentMemory(stack=stack, sessions=sessions)
    said = [{"role": role, "content": f"{role} {n}"} for n in range(6) for role in _PAIR]
    for end in range(2, len(said) + 1, 2):
        memory.after_response(said[max(0, end - 6) : end], conversation="c")
    assert kept(sessions) == [message["content"] for message in said]


_PAIR = ("user", "assistant")


def test_tool_calls_and_results_are_kept(stack: MemoryStack, sessions: SessionSearch) -> None:
    memory = AgentMemory(stack=stack, sessions=sessions)
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    talk = [
        ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "in the hall"},
        ANSWER,
    ]
    recorded = memory.after_response(talk, conversation="c")
    assert [i.type for i in recorded.items] == ["message", "tool_call", "tool_result", "message"]
    assert sessions.search("hall", scope=MIRA)[0].item.type == "tool_result"


def test_what_another_owner_holds_is_not_written(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    noor = AgentMemory(stack=stack, sessions=sessions, scope=Scope(user_id="noor"))
    noor.after_response([ASK, ANSWER], conversation="c")
    mira = AgentMemory(stack=stack, sessions=sessions)
    recorded = mira.after_response([ASK, ANSWER], conversation="c")
    assert recorded.items == ()
    assert [o.provider for o in recorded.outcomes] == ["sessions"]


@pytest.mark.parametrize("origin", ["sub_agent", "automation"])
def test_runs_without_a_person_keep_and_teach_nothing(
    stack: MemoryStack, sessions: SessionSearch, origin: str
) -> None:
    memory = AgentMemory(stack=stack, sessions=sessions)
    assert memory.before_request([ASK], conversation="c", origin=origin).block is not None
    assert memory.after_response([ASK, ANSWER], conversation="c", origin=origin).items == ()
    assert len(sessions.log.conversations(MIRA)) == 0
    assert "memory_remember" not in memory.tools(origin).names


def test_a_policy_may_turn_memory_off_or_on(stack: MemoryStack, sessions: SessionSearch) -> None:
    policy = Policy(sub_agent="off", automation="full")  # type: ignore[arg-type]
    memory = AgentMemory(stack=stack, sessions=sessions, policy=policy)
    assert memory.before_request([ASK], origin="sub_agent").messages == [ASK]
    recorded = memory.after_response([ASK, ANSWER], conversation="c", origin="automation")
    assert [item.origin for item in recorded.items] == [ItemOrigin.AUTOMATION, ItemOrigin.AGENT]


def test_the_profile_is_injected_and_learned(stack: MemoryStack, sessions: SessionSearch) -> None:
    with UserModel(deriver=Noting()) as model:
        memory = AgentMemory(stack=stack, sessions=sessions, user_model=model)
        recorded = memory.after_response(
            [{"role": "user", "content": "I live in Lisbon"}, ANSWER], conversation="c"
        )
        assert recorded.learning
        profile = model.refresh("mira")
        assert [line.text for line in profile.current] == ["Said: I live in Lisbon"]
        assert profile.current[0].sources == ("c:0",)
        sent = memory.before_request([{"role": "user", "content": "Where do I live?"}])
        assert sent.block is not None
        assert "Said: I live in Lisbon" in sent.block
        answer = memory.tools().call("user_context", {})
        assert "Said: I live in Lisbon" in answer["user_context"]


def test_context_answers_from_all_parts(stack: MemoryStack, sessions: SessionSearch) -> None:
    with UserModel(deriver=Noting()) as model:
        memory = AgentMemory(stack=stack, sessions=sessions, user_model=model)
        memory.after_response([ASK, ANSWER], conversation="old")
        model.refresh("mira")
        told = memory.context("cello").to_json()
        assert [fact["text"] for fact in told["facts"]] == ["Mira plays the cello"]
        assert [hit["id"] for hit in told["sessions"]] == ["old:0"]
        assert "Who plays the cello?" in told["profile"]
        assert asyncio.run(memory.acontext("cello")).to_json() == told


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


def test_views_of_two_users_are_apart(stack: MemoryStack, sessions: SessionSearch) -> None:
    noor = AgentMemory(stack=stack, sessions=sessions, scope=Scope(user_id="noor"))
    mira = AgentMemory(stack=stack, sessions=sessions)
    mira.after_response([ASK, ANSWER], conversation="m")
    assert noor.before_request([ASK]).block is None
    assert noor.tools().call("session_search", {"query": "cello"})["count"] == 0
    assert noor.tools().call("session_search", {"around": "m:0"})["error"] == "not_found"
    assert mira.tools().call("session_search", {"query": "cello"})["count"] == 1
    window = mira.tools().call("session_search", {"around": "m:0"})
    assert [one["content"] for one in window["results"]] == [ASK["content"], ANSWER["content"]]
    latest = mira.tools().call("session_search", {})
    assert [one["conversation_id"] for one in latest["results"]] == ["m"]


def test_agents_share_by_choice(sessions: SessionSearch) -> None:
    with MemoryStack([LocalStore()]) as stack:
        cook = AgentMemory(stack=stack, scope=Scope(user_id="mira", agent_id="cook"))
        guide = AgentMemory(stack=stack, scope=Scope(user_id="mira", agent_id="guide"))
        cook.tools().call("memory_remember", {"content": "Mira eats no nuts"})
        assert guide.tools().call("memory_recall", {"query": "nuts"})["count"] == 0
        wider = AgentMemory(stack=stack, scope=MIRA)
        assert wider.tools().call("memory_recall", {"query": "nuts"})["count"] == 1


def test_a_user_s_namespaces_have_profiles_of_their_own(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    with UserModel(deriver=Noting(), background=False) as model:
        work, home, plain = (
            AgentMemory(stack=stack, sessions=sessions, user_model=model, scope=scope)
            for scope in (
                Scope(user_id="mira", namespace="work"),
                Scope(user_id="mira", namespace="home"),
                MIRA,
            )
        )
        said = {"role": "user", "content": "I lead the search team"}
        assert work.after_response([said, ANSWER], conversation="w").learning
        model.flush()
        for memory, known in ((work, True), (home, False), (plain, False)):
            block = memory.before_request([{"role": "user", "content": "Which team?"}]).block or ""
            assert ("search team" in block) == known
            told = memory.tools().call("user_context", {"query": "team"})
            assert ("search team" in told["user_context"]) == known


class Static:
    @hookimpl
    def build_system_prompt(self) -> str:
        return "You remember earlier conversations."


def test_an_anthropic_style_request_has_its_system_value_apart() -> None:
    with MemoryStack([LocalStore(), Static()], scope=MIRA) as stack:
        stack.store("Mira plays the cello")
        memory = AgentMemory(stack=stack, policy=Policy(sub_agent=Access.OFF))
        parts = [{"role": "user", "content": [{"type": "text", "text": ASK["content"]}]}]
        sent = memory.before_request(parts, static=False).messages
        assert [message["role"] for message in sent] == ["user"]
        assert len(sent[0]["content"]) == 2
        static = "You remember earlier conversations."
        assert memory.system_value("Be brief.") == f"Be brief.\n\n{static}"
        assert memory.system_value() == static
        assert memory.system_value([]) == [{"type": "text", "text": static}]
        assert memory.system_value("Be brief.", origin="sub_agent") == "Be brief."
        assert memory.system_value(origin="sub_agent") == ""
        assert [m["role"] for m in memory.before_request([ASK]).messages] == ["system", "user"]


def test_what_was_given_is_closed_by_whoever_made_it(stack: MemoryStack) -> None:
    ledger = BlockLedger()
    with Reflector(stack, ScriptedModel(lambda request: "[]")) as reflector:
        one, two = (AgentMemory(stack=stack, ledger=ledger, reflector=reflector) for _ in range(2))
        one.close()
        one.close()
        assert two.before_request([ASK], conversation="c").block is not None
        assert two.after_response([ASK, ANSWER], conversation="c").reflecting
        two.close()
        assert len(reflector.reports) == 1
    ledger.close()
    own = AgentMemory(stack=stack)
    own.close()
    with pytest.raises(ClosedError):
        own.before_request([ASK], conversation="c")


def test_context_answers_for_a_scope_each_part_by_itself(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    noor = Scope(user_id="noor")
    stack.store("Noor plays the cello in Porto", scope=noor)
    memory = AgentMemory(stack=stack, sessions=sessions)
    assert [hit.record.content for hit in memory.context("cello", noor).facts] == [
        "Noor plays the cello in Porto"
    ]
    with UserModel(background=False) as model:
        told = context("cello", MIRA, stack=stack, sessions=sessions, user_model=model)
        assert set(told.to_json()) == {"facts", "sessions", "profile"}
        assert told.profile is None
    sessions.log.close()
    told = context("cello", MIRA, stack=stack, sessions=sessions, user_model=model)
    assert [fact["text"] for fact in told.to_json()["facts"]] == ["Mira plays the cello"]
    assert told.sessions is None
    assert {o.provider for o in told.outcomes if not o.ok} >= {"sessions"}
    with pytest.raises(ScopeError):
        memory.context("cello", Scope())


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


def test_recalled_words_are_not_learned_again_by_any_part(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    """What is recalled, injected, echoed and answered by tools, five times over."""
    stack.store("Lena has two parrots")
    call = {"id": "1", "type": "function", "function": {"name": "memory_recall", "arguments": "{}"}}
    with UserModel(deriver=Noting(), background=False) as model:
        memory = AgentMemory(stack=stack, sessions=sessions, user_model=model)
        talk: list[Any] = []
        for number in range(5):
            talk.append({"role": "user", "content": f"Any parrots, {number}?"})
            sent = memory.before_request(talk, conversation="c")
            talk = list(sent.messages)
            found = memory.tools().call("memory_recall", {"query": "parrots"})
            talk += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": json.dumps(found)},
                {"role": "assistant", "content": f"{sent.block or ''}\n\nYes."},
            ]
            memory.after_response(talk, conversation="c")
        model.flush()
        assert len(stack.search("two parrots", limit=50)) == 1
        texts = [item.text for item in sessions.log.items("c", MIRA)]
        assert not any("Lena" in text for text in texts)
        assert not any("Lena" in line.text for line in model.profile("mira").lines)


def test_sharing_between_agents_is_one_documented_rule(stack: MemoryStack) -> None:
    """What is written is found with the very scope it was written with."""
    cook = AgentMemory(stack=stack, scope=Scope(user_id="lena", agent_id="cook"))
    lena = AgentMemory(stack=stack, scope=Scope(user_id="lena"))
    cook.tools().call("memory_remember", {"content": "prefers metric units"})
    lena.tools().call("memory_remember", {"content": "prefers Celsius"})
    found = {
        str(scope): {
            one["content"]
            for one in AgentMemory(stack=stack, scope=scope)
            .tools()
            .call("memory_recall", {"query": "prefers"})["memories"]
        }
        for scope in (
            Scope(user_id="lena", agent_id="cook"),
            Scope(user_id="lena"),
            Scope(user_id="lena", agent_id="other"),
            Scope(user_id="tomas", agent_id="cook"),
        )
    }
    assert found == {
        "user_id=lena agent_id=cook": {"prefers metric units"},
        "user_id=lena": {"prefers metric units", "prefers Celsius"},
        "user_id=lena agent_id=other": set(),
        "user_id=tomas agent_id=cook": set(),
    }


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


@pytest.mark.parametrize("given", [False, True])
def test_what_is_forgotten_is_not_put_back(stack: MemoryStack, given: bool) -> None:
    ledger = {"ledger": BlockLedger()} if given else {}
    with AgentMemory(stack=stack, **ledger) as memory:  # type: ignore[arg-type]
        assert "Mira plays" in str(memory.before_request([ASK], conversation="c").messages)
        memory.tools().call("memory_forget", {"id": stack.list()[0].id})
        more = [ASK, ANSWER, {"role": "user", "content": "And what else is there?"}]
        assert "Mira plays" not in str(memory.before_request(more, conversation="c").messages)
    assert stack.forget("none").outcomes
    if given:
        ledger["ledger"].close()


def test_agents_that_are_left_to_themselves_hold_nothing(stack: MemoryStack) -> None:
    """As in hosts that make an agent's memory anew for each request."""
    listening = stack._core.manager.get_plugins
    before = len(listening())
    for _ in range(5):
        AgentMemory(stack=stack).before_request([ASK], conversation="c")
    gc.collect()
    assert len(listening()) == before


def test_after_a_restart_blocks_are_put_back_and_not_learned(
    stack: MemoryStack, sessions: SessionSearch
) -> None:
    with AgentMemory(stack=stack, sessions=sessions) as memory:
        sent = memory.before_request([ASK], conversation="c").messages
    with AgentMemory(stack=stack, sessions=sessions) as memory:
        again = memory.before_request([ASK], conversation="c")
        assert (again.messages, again.restored) == (sent, 1)
        recorded = memory.after_response([*sent, ANSWER], conversation="c")
        assert [item.text for item in recorded.items] == [ASK["content"], ANSWER["content"]]
    file = sessions.log.path.with_name("blocks.db")
    assert file.stat().st_mode & 0o777 == 0o600
