"""Several agents and users over one memory: apart by scope, shared by choice."""

from __future__ import annotations

from typing import Any

import pytest

from memsheaf.agent import AgentMemory, context
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import SessionSearch
from memsheaf.stack import MemoryStack, Scope, ScopeError
from memsheaf.usermodel import UserModel

MIRA = Scope(user_id="mira")
ASK = {"role": "user", "content": "Who plays the cello?"}
ANSWER = {"role": "assistant", "content": "Mira does."}


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
    noting: Any, stack: MemoryStack, sessions: SessionSearch
) -> None:
    with UserModel(deriver=noting, background=False) as model:
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
