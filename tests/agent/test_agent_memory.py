"""Before a request and after its answer: injected, kept once, and not learned again."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import Access, AgentMemory, BlockLedger, Policy, Reflector
from memsheaf.models import ScriptedModel
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import ItemOrigin, SessionSearch
from memsheaf.stack import ClosedError, MemoryStack, Scope, ScopeError, hookimpl
from memsheaf.usermodel import UserModel

MIRA = Scope(user_id="mira")
ASK = {"role": "user", "content": "Who plays the cello?"}
ANSWER = {"role": "assistant", "content": "Mira does."}


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


def test_the_profile_is_injected_and_learned(
    noting: Any, stack: MemoryStack, sessions: SessionSearch
) -> None:
    with UserModel(deriver=noting) as model:
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


def test_context_answers_from_all_parts(
    noting: Any, stack: MemoryStack, sessions: SessionSearch
) -> None:
    with UserModel(deriver=noting) as model:
        memory = AgentMemory(stack=stack, sessions=sessions, user_model=model)
        memory.after_response([ASK, ANSWER], conversation="old")
        model.refresh("mira")
        told = memory.context("cello").to_json()
        assert [fact["text"] for fact in told["facts"]] == ["Mira plays the cello"]
        assert [hit["id"] for hit in told["sessions"]] == ["old:0"]
        assert "Who plays the cello?" in told["profile"]
        assert asyncio.run(memory.acontext("cello")).to_json() == told


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


def test_recalled_words_are_not_learned_again_by_any_part(
    noting: Any, stack: MemoryStack, sessions: SessionSearch
) -> None:
    """What is recalled, injected, echoed and answered by tools, five times over."""
    stack.store("Lena has two parrots")
    call = {"id": "1", "type": "function", "function": {"name": "memory_recall", "arguments": "{}"}}
    with UserModel(deriver=noting, background=False) as model:
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


@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("how", ["line", "user", "sources", "elsewhere"])
def test_a_profile_of_which_something_was_forgotten_is_not_put_back(
    noting: Any, sessions: SessionSearch, tmp_path: Path, how: str, mounted: bool
) -> None:
    more = [ASK, ANSWER, {"role": "user", "content": "And what else is there?"}]
    noor = Scope(user_id="noor")
    with (
        UserModel(tmp_path / "users", deriver=noting, background=False) as model,
        UserModel(tmp_path / "users", deriver=noting, background=False) as other,
        MemoryStack([model.as_provider()] if mounted else [], scope=MIRA) as stack,
        AgentMemory(
            stack=stack, sessions=sessions, user_model=None if mounted else model
        ) as memory,
        AgentMemory(
            stack=stack, sessions=sessions, user_model=None if mounted else model, scope=noor
        ) as hers,
    ):
        recorded = memory.after_response(
            [{"role": "user", "content": "I live in Lisbon"}, ANSWER], conversation="b"
        )
        model.observe(recorded.items, user_id="mira")
        (line,) = model.refresh("mira").current
        model.correct("noor", None, "Lives in Porto")
        assert "Lisbon" in str(memory.before_request([ASK], conversation="c").messages)
        theirs = hers.before_request([ASK], conversation="d").messages
        assert "Porto" in str(theirs)
        assert "Lisbon" in str(memory.before_request(more, conversation="c").messages)
        if how == "line":
            model.forget("mira", line.id)
        elif how == "user":
            model.forget("mira")
        elif how == "sources":
            model.forget_sources("mira", recorded.items)
        else:
            other.forget("mira", line.id)
        again = memory.before_request(more, conversation="c")
        assert "Lisbon" not in str(again.messages)
        assert hers.before_request([ASK], conversation="d").messages == theirs
    file = sessions.log.path.with_name("blocks.db")
    assert b"Lisbon" not in file.read_bytes()


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
