"""What a turn loses when something breaks: nothing that was said."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import (
    AgentMemory,
    BlockLedger,
    HostTool,
    Step,
    TurnDone,
    TurnHooks,
    TurnOptions,
    TurnResult,
    TurnState,
    arun_turn,
    astream_turn,
    run_turn,
    stream_turn,
)
from memsheaf.models import ChatReply, ChatRequest, Done, ScriptedModel, TextDelta, ToolCall
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import open_sessions
from memsheaf.stack import MemoryStack, Scope, UsageError
from memsheaf.usermodel import UserModel

MIRA = Scope(user_id="mira")
ASK = "Who plays the cello?"
ANY = {"type": "object"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[AgentMemory]:
    with (
        MemoryStack([LocalStore()], scope=MIRA) as stack,
        open_sessions(tmp_path / "sessions") as sessions,
        AgentMemory(stack=stack, sessions=sessions) as made,
    ):
        stack.store("Mira plays the cello")
        yield made


def kept(memory: AgentMemory, conversation: str = "c") -> list[tuple[str, str]]:
    assert memory.sessions is not None
    items = memory.sessions.log.items(conversation, MIRA)
    return [(item.type, item.text) for item in items]


def run(memory: AgentMemory, model: Any, prompt: Any = ASK, **options: Any) -> TurnResult:
    return run_turn(
        prompt, memory=memory, model=model, conversation="c", options=TurnOptions(**options)
    )


class Raising(TurnHooks):
    def __init__(self, when: str, step: Step) -> None:
        self.when, self.step = when, step

    def before(self, step: Step, state: TurnState) -> None:
        if (self.when, self.step) == ("before", step):
            raise PermissionError("not now")

    def after(self, step: Step, state: TurnState) -> None:
        if (self.when, self.step) == ("after", step):
            raise PermissionError("not now")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", list(Step))
def test_a_hook_that_raises_loses_nothing_that_was_said(
    memory: AgentMemory, when: str, step: Step
) -> None:
    model = ScriptedModel([ToolCall("1", "memory_recall", '{"q": "x"}'), "Mira."])
    result = run(memory, model, hooks=Raising(when, step))
    assert result.status == "failed"
    assert isinstance(result.error, PermissionError)
    assert kept(memory)[0] == ("message", ASK)
    if step in (Step.KEEP, Step.LEARN):
        assert kept(memory)[-1] == ("message", "Mira.")


class Breaking:
    """A model that says a little and breaks off."""

    name = "breaking"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def complete(self, messages: Any, **options: Any) -> Any:
        raise self.error

    async def acomplete(self, messages: Any, **options: Any) -> Any:
        raise self.error

    def stream(self, messages: Any, **options: Any) -> Any:
        yield TextDelta("Mira, ")
        yield TextDelta("I think, ")
        raise self.error

    async def astream(self, messages: Any, **options: Any) -> Any:
        yield TextDelta("Mira, ")
        yield TextDelta("I think, ")
        raise self.error


def test_any_exception_of_a_model_is_a_result(memory: AgentMemory) -> None:
    result = run(memory, Breaking(ValueError("odd")))
    assert (result.status, type(result.error)) == ("failed", ValueError)
    assert kept(memory) == [("message", ASK), ("error", "ValueError")]


def test_what_was_shown_of_a_broken_reply_is_kept(memory: AgentMemory) -> None:
    shown = "Mira, I think, "
    model = Breaking(ConnectionError("gone"))
    *_, last = stream_turn(ASK, memory=memory, model=model, conversation="c")
    assert isinstance(last, TurnDone)
    assert (last.result.status, last.result.text) == ("failed", shown)
    assert kept(memory) == [("message", ASK), ("message", shown), ("error", "ConnectionError")]
    assert memory.sessions is not None
    assert memory.sessions.log.items("c", MIRA)[1].status == "failed"


def test_an_interrupt_from_outside_keeps_what_was_said(memory: AgentMemory) -> None:
    def answer(request: ChatRequest) -> Any:
        if len(request.messages) > 1:
            raise KeyboardInterrupt
        return ToolCall("1", "find", "{}")

    tool = HostTool("find", "", ANY, lambda: "in the hall")
    with pytest.raises(KeyboardInterrupt):
        run(memory, ScriptedModel(answer), tools=[tool])
    assert kept(memory) == [
        ("message", ASK),
        ("tool_call", "find {}"),
        ("tool_result", "in the hall"),
    ]


def test_a_stream_that_nobody_reads_to_its_end_keeps_what_was_shown(memory: AgentMemory) -> None:
    model = ScriptedModel(["Mira plays it, and well"])
    stream = stream_turn(ASK, memory=memory, model=model, conversation="c")
    first = next(stream)
    assert isinstance(first, TextDelta)
    stream.close()
    assert kept(memory) == [("message", ASK), ("message", first.text)]

    async def read_one() -> str:
        told = astream_turn(ASK, memory=memory, model=model, conversation="a")
        first = await anext(told)
        assert isinstance(first, TextDelta)
        await told.aclose()
        return first.text

    model = ScriptedModel(["Mira plays it, and well"])
    shown = asyncio.run(read_one())
    assert kept(memory, "a") == [("message", ASK), ("message", shown)]


def test_a_turn_that_is_closed_is_learned_from(memory: AgentMemory) -> None:
    with UserModel(background=False) as users:
        memory.user_model = users
        model = ScriptedModel(["Good to know, and welcome"])
        stream = stream_turn("I live in Graz.", memory=memory, model=model, conversation="c")
        next(stream)
        stream.close()
        assert "Graz" in str(users.refresh("mira").current)


def test_a_task_that_is_cancelled_keeps_the_user_s_words(memory: AgentMemory) -> None:
    asked = threading.Event()

    class Hanging(Breaking):
        async def acomplete(self, messages: Any, **options: Any) -> Any:
            asked.set()
            await asyncio.sleep(60)

    async def go() -> None:
        turn = arun_turn(ASK, memory=memory, model=Hanging(ValueError()), conversation="c")
        task = asyncio.ensure_future(turn)
        await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert kept(memory) == [("message", ASK)]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), StopIteration()])
def test_a_tool_that_would_end_the_process_is_an_error_of_its_own(
    memory: AgentMemory, error: BaseException
) -> None:
    def leave() -> None:
        raise error

    tool = HostTool("leave", "", ANY, leave)
    options = TurnOptions(tools=[tool])
    script: list[str | ToolCall] = [ToolCall("1", "leave", "{}"), "Still here."]
    assert run(memory, ScriptedModel(script), tools=[tool]).text == "Still here."
    turn = arun_turn(
        ASK, memory=memory, model=ScriptedModel(script), conversation="a", options=options
    )
    assert asyncio.run(turn).text == "Still here."
    told = [text for kind, text in kept(memory) if kind == "tool_result"]
    assert json.loads(told[0])["error"] == "tool_failed"


def test_coroutines_that_end_themselves_are_errors_of_their_own(memory: AgentMemory) -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    async def leave() -> None:
        raise SystemExit(1)

    calls = [ToolCall("1", "give_up", "{}"), ToolCall("2", "leave", "{}")]
    model = ScriptedModel([calls, "Still here."])
    tools = [HostTool("give_up", "", ANY, give_up), HostTool("leave", "", ANY, leave)]
    turn = arun_turn(
        ASK, memory=memory, model=model, conversation="c", options=TurnOptions(tools=tools)
    )
    assert asyncio.run(turn).text == "Still here."
    told = [json.loads(str(m["content"]))["error"] for m in model.calls[1].messages[-2:]]
    assert told == ["tool_failed", "tool_failed"]


_HANGING = """
import asyncio, threading
from memsheaf.agent import *
from memsheaf.models import ScriptedModel, ToolCall
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack, Scope

async def go(memory):
    calls = [ToolCall(str(n), "hang", "{}") for n in range(20)]
    tool = HostTool("hang", "", {"type": "object"}, threading.Event().wait)
    options = TurnOptions(tools=[tool], tool_timeout=0.2)
    model = ScriptedModel([calls, "done"])
    result = await arun_turn(
        "x y z", memory=memory, model=model, conversation="c", options=options
    )
    print(result.text)

with MemoryStack([LocalStore()], scope=Scope(user_id="mira")) as stack:
    asyncio.run(go(AgentMemory(stack=stack)))
"""


def test_tools_that_hang_do_not_hold_the_end_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HANGING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_tools_see_the_context_of_the_turn(memory: AgentMemory) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    tool = HostTool("who", "", ANY, lambda: who.get())
    who.set("mira")
    model = ScriptedModel([ToolCall("1", "who", "{}"), "done"])
    run(memory, model, tools=[tool])
    assert model.calls[1].messages[-1]["content"] == "mira"


def test_two_tools_of_one_name_are_refused(memory: AgentMemory) -> None:
    mine = HostTool("memory_recall", "", ANY, lambda: "mine")
    with pytest.raises(UsageError, match="memory_recall"):
        run(memory, ScriptedModel(["?"]), tools=[mine])
    assert kept(memory) == []
    assert run(memory, ScriptedModel(["Hi."]), tools=[mine], memory_tools=False).text == "Hi."


def test_a_reply_with_too_many_calls_is_cut(memory: AgentMemory) -> None:
    ran: list[int] = []
    tool = HostTool("count", "", ANY, lambda: ran.append(1))
    calls = [ToolCall(str(n), "count", "{}") for n in range(200)]
    model = ScriptedModel([calls, "done"])
    assert run(memory, model, tools=[tool]).text == "done"
    assert len(ran) == 32
    told = model.calls[1].messages[-200:]
    assert [message["tool_call_id"] for message in told] == [call.id for call in calls]
    assert json.loads(str(told[-1]["content"]))["error"] == "too_many_calls"


def test_calls_without_ids_of_their_own_get_some(memory: AgentMemory) -> None:
    calls = [ToolCall("", "memory_recall", "{}"), ToolCall("", "x", "{}"), ToolCall("a", "x", "{}")]
    model = ScriptedModel([[*calls, calls[-1]], "done"])
    assert run(memory, model).status == "completed"
    made, *told = model.calls[1].messages[-5:]
    ids = [call["id"] for call in made["tool_calls"]]
    assert len(set(ids)) == 4
    assert [message["tool_call_id"] for message in told] == ids


@pytest.mark.parametrize(
    "reply",
    [
        ChatReply(text=None),  # type: ignore[arg-type]
        ChatReply(text="a\ud800\x00"),
        ToolCall("1", None, "{}"),  # type: ignore[arg-type]
        ToolCall("1", "memory_remember", None),  # type: ignore[arg-type]
        ToolCall("1", "memory_remember", {"content": "x"}),  # type: ignore[arg-type]
        ToolCall("1", "x" * 100_000, "[" * 100_000),
        ToolCall("\ud800", "memory\x00", '{"q": "\ud800"}'),
        ToolCall("1", "memory_remember", '{"content": "\\ud800"}'),
    ],
    ids=range(8),
)
def test_replies_that_no_server_should_send(memory: AgentMemory, reply: Any) -> None:
    model = ScriptedModel([reply, "done"])
    result = run(memory, model)
    assert result.status == "completed"
    assert kept(memory)[0] == ("message", ASK)
    json.dumps(model.calls[-1].messages, ensure_ascii=False).encode()
    result.text.encode()


def test_a_reply_that_is_only_an_echoed_block_says_nothing(memory: AgentMemory) -> None:
    def echo(request: ChatRequest) -> str:
        words = str(request.messages[-1]["content"])
        return words[words.index("<memory-context") :]

    result = run(memory, ScriptedModel(echo))
    assert (result.status, result.text) == ("completed", "")
    assert kept(memory) == [("message", ASK)]


def test_a_ledger_that_fails_loses_no_words(tmp_path: Path) -> None:
    ledger = BlockLedger()
    with (
        MemoryStack([LocalStore()], scope=MIRA) as stack,
        open_sessions(tmp_path / "sessions") as sessions,
    ):
        stack.store("Mira plays the cello")
        memory = AgentMemory(stack=stack, sessions=sessions, ledger=ledger)
        sent = memory.before_request([{"role": "user", "content": ASK}], conversation="c").messages
        ledger.close()
        recorded = memory.after_response(
            [*sent, {"role": "assistant", "content": "Mira."}], conversation="c"
        )
        assert [item.text for item in recorded.items] == [ASK, "Mira."]
        assert [outcome.provider for outcome in recorded.outcomes] == ["ledger"]


def test_a_profile_that_fails_ends_no_turn(memory: AgentMemory) -> None:
    model = UserModel(background=False)
    model.close()
    memory.user_model = model
    result = run(memory, ScriptedModel(["Mira."]))
    assert (result.status, result.text) == ("completed", "Mira.")
    assert "user_model" in {o.provider for o in (*result.outcomes, *result.injection.outcomes)}
    told = memory.context("cello")
    assert len(told.facts) == 1
    assert "user_model" in {o.provider for o in told.outcomes}


def test_a_long_conversation_is_cut_at_a_place_that_moves_rarely(memory: AgentMemory) -> None:
    model = ScriptedModel(lambda request: ChatReply(text=f"answer {len(model.calls)}"))
    for number in range(40):
        run(memory, model, f"Question {number} on nothing", history=16)
    sent = [[str(m["content"]) for m in call.messages] for call in model.calls]
    assert all(8 <= len(messages) <= 17 for messages in sent[8:])
    moved = sum(after[0] != before[0] for before, after in itertools.pairwise(sent))
    assert 5 <= moved <= 9
    assert all(call.messages[0]["role"] == "user" for call in model.calls)


def test_several_conversations_at_once(memory: AgentMemory) -> None:
    def talk(name: str) -> None:
        for number in range(5):
            run_turn(
                f"{name} {number}",
                memory=memory,
                model=ScriptedModel(["ok"]),
                conversation=name,
            )

    threads = [threading.Thread(target=talk, args=(f"c{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(4):
        said = [text for _, text in kept(memory, f"c{n}") if text != "ok"]
        assert said == [f"c{n} {number}" for number in range(5)]


def test_streams_end_with_their_reply(memory: AgentMemory) -> None:
    class Silent(Breaking):
        def stream(self, messages: Any, **options: Any) -> Any:
            yield TextDelta("Mira")

    *_, last = stream_turn(ASK, memory=memory, model=Silent(ValueError()), conversation="c")
    assert isinstance(last, TurnDone)
    assert (last.result.status, last.result.text) == ("failed", "Mira")

    class Good(Breaking):
        def stream(self, messages: Any, **options: Any) -> Any:
            yield TextDelta("Mira")
            yield Done(ChatReply(text="Mira"))

    *_, last = stream_turn(ASK, memory=memory, model=Good(ValueError()), conversation="d")
    assert isinstance(last, TurnDone)
    assert last.result.status == "completed"
    assert kept(memory, "d") == [("message", ASK), ("message", "Mira")]


@pytest.mark.parametrize("conversation", ["", " ", "a\nb", "x" * 600])
def test_a_conversation_that_cannot_be_kept_is_refused(
    memory: AgentMemory, conversation: str
) -> None:
    with pytest.raises(UsageError):
        run_turn(ASK, memory=memory, model=ScriptedModel(["?"]), conversation=conversation)
    with pytest.raises(UsageError):
        memory.after_response([{"role": "user", "content": ASK}], conversation=conversation)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_goes_on_recording(memory: AgentMemory) -> None:
    """Where a worker is forked while a thread of the parent records."""
    with memory.log._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                said = [{"role": "user", "content": ASK}]
                made = memory.after_response(said, conversation="child")
                code = 0 if len(made.items) == 1 else 2
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept(memory, "child") == [("message", ASK)]
