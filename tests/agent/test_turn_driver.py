"""The turn driver: order, loop, tools, hooks, interruption, streams, and the awaitable twin."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import (
    AgentMemory,
    HostTool,
    Step,
    ToolsDone,
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
from memsheaf.models import (
    CancelToken,
    ChatReply,
    ChatRequest,
    ModelUnavailable,
    ScriptedModel,
    TextDelta,
    ToolCall,
    Usage,
)
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import open_sessions
from memsheaf.stack import MemoryStack, Scope, UsageError

MIRA = Scope(user_id="mira")
ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


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


def run(
    memory: AgentMemory, model: ScriptedModel, prompt: Any = "Who plays the cello?", **options: Any
) -> TurnResult:
    return run_turn(
        prompt, memory=memory, model=model, conversation="c", options=TurnOptions(**options)
    )


def test_a_turn_is_recorded_recalled_answered_and_found_again(memory: AgentMemory) -> None:
    model = ScriptedModel(["Mira, on a violoncello."])
    result = run(memory, model, system="Be brief.")
    assert (result.status, result.text, result.iterations) == (
        "completed",
        "Mira, on a violoncello.",
        1,
    )
    sent = model.calls[0].messages
    assert sent[0] == {"role": "system", "content": "Be brief."}
    assert "Mira plays the cello" in str(sent[1]["content"])
    assert kept(memory) == [
        ("message", "Who plays the cello?"),
        ("message", "Mira, on a violoncello."),
    ]
    assert [item.text for item in result.items] == [text for _, text in kept(memory)]
    sessions = memory.sessions
    assert sessions is not None
    assert sessions.search("violoncello", scope=MIRA)[0].item.role == "assistant"


def test_the_user_s_words_are_kept_before_the_model_is_asked(memory: AgentMemory) -> None:
    seen: list[Any] = []

    def answer(request: ChatRequest) -> str:
        seen.extend(kept(memory))
        return "Mira."

    run(memory, ScriptedModel(answer))
    assert seen == [("message", "Who plays the cello?")]


def test_the_conversation_so_far_comes_from_the_log(memory: AgentMemory) -> None:
    model = ScriptedModel(["one", "two", "three"])
    for number in range(3):
        run(memory, model, f"Question {number}, about nothing at all")
    assert [message["content"] for message in model.calls[2].messages] == [
        "Question 0, about nothing at all",
        "one",
        "Question 1, about nothing at all",
        "two",
        "Question 2, about nothing at all",
    ]
    run(memory, ScriptedModel(["four"]), "Question 3 about nothing", history=0)


def test_blocks_that_were_sent_are_put_back_byte_for_byte(memory: AgentMemory) -> None:
    model = ScriptedModel(["Mira.", "A cello."])
    run(memory, model)
    run(memory, model, "And what does Mira play?")
    first, second = (call.messages for call in model.calls)
    assert json.dumps(second[: len(first)]) == json.dumps(first)


def test_tools_are_run_and_their_results_go_back(memory: AgentMemory) -> None:
    calls = [
        ToolCall("1", "add", '{"a": 1, "b": 2}'),
        ToolCall("2", "memory_recall", '{"q": "cello"}'),
    ]
    model = ScriptedModel([calls, "Three, and Mira."])
    tool = HostTool("add", "Add.", ADD, lambda a, b: {"sum": a + b})
    result = run(memory, model, tools=[tool])
    assert result.status == "completed"
    told = model.calls[1].messages[-2:]
    assert [message["tool_call_id"] for message in told] == ["1", "2"]
    assert json.loads(str(told[0]["content"])) == {"sum": 3}
    assert json.loads(str(told[1]["content"]))["count"] == 1
    assert [kind for kind, _ in kept(memory)] == [
        "message",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "message",
    ]
    offered = [tool["function"]["name"] for tool in model.calls[0].tools]
    assert offered == ["memory_remember", "memory_recall", "memory_forget", "session_search", "add"]


def test_tools_run_side_by_side(memory: AgentMemory) -> None:
    together = threading.Barrier(3, timeout=10)

    def wait() -> str:
        together.wait()
        return "met"

    calls = [ToolCall(str(n), "wait", "{}") for n in range(3)]
    model = ScriptedModel([calls, "done"])
    run(memory, model, tools=[HostTool("wait", "", {"type": "object"}, wait)])
    assert [message["content"] for message in model.calls[1].messages[-3:]] == ["met"] * 3


def test_errors_of_tools_go_to_the_model(memory: AgentMemory) -> None:
    def explode() -> None:
        raise RuntimeError("no such room")

    calls = [
        ToolCall("1", "explode", "{}"),
        ToolCall("2", "nothing", "{}"),
        ToolCall("3", "explode", "{broken"),
        ToolCall("4", "explode", '{"unknown": 1}'),
    ]
    model = ScriptedModel([calls, "Sorry."])
    result = run(memory, model, tools=[HostTool("explode", "", {"type": "object"}, explode)])
    told = [json.loads(str(m["content"])) for m in model.calls[1].messages[-4:]]
    assert [one["error"] for one in told] == [
        "tool_failed",
        "unknown_tool",
        "invalid_arguments",
        "invalid_arguments",
    ]
    assert "no such room" in told[0]["message"]
    assert result.status == "completed"


def test_a_tool_that_hangs_is_left_to_itself(memory: AgentMemory) -> None:
    release = threading.Event()
    tool = HostTool("hang", "", {"type": "object"}, lambda: release.wait(60))
    model = ScriptedModel([[ToolCall("1", "hang", "{}")], "Sorry."])
    run(memory, model, tools=[tool], tool_timeout=0.05)
    release.set()
    assert json.loads(str(model.calls[1].messages[-1]["content"]))["error"] == "timed_out"


def test_the_loop_ends(memory: AgentMemory) -> None:
    model = ScriptedModel(lambda request: ToolCall("1", "memory_recall", '{"query": "x"}'))
    result = run(memory, model)
    assert (result.status, result.iterations) == ("max_iterations", 10)
    assert run(memory, model, max_iterations=2).iterations == 2


def test_a_model_that_fails_is_a_result_and_the_words_are_kept(memory: AgentMemory) -> None:
    result = run(memory, ScriptedModel([ModelUnavailable("no server", model="m")]))
    assert result.status == "failed"
    assert isinstance(result.error, ModelUnavailable)
    assert kept(memory) == [("message", "Who plays the cello?"), ("error", "ModelUnavailable")]


def test_an_interrupted_turn_keeps_what_was_said(memory: AgentMemory) -> None:
    token = CancelToken()

    def stop() -> str:
        token.cancel()
        return "stopped"

    model = ScriptedModel([ToolCall("1", "stop", "{}"), "never"])
    tool = HostTool("stop", "", {"type": "object"}, stop)
    result = run(memory, model, tools=[tool], cancel=token)
    assert result.status == "interrupted"
    assert len(model.calls) == 1
    assert [kind for kind, _ in kept(memory)] == ["message", "tool_call", "tool_result"]


def test_a_model_call_is_interrupted(memory: AgentMemory) -> None:
    token = CancelToken()
    timer = threading.Timer(0.05, token.cancel)
    timer.start()
    result = run(memory, ScriptedModel(["late"], delay=60), cancel=token)
    timer.join()
    assert result.status == "interrupted"


class Noting(TurnHooks):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, step: Step, state: TurnState) -> None:
        self.seen.append(f"before {step}")

    def after(self, step: Step, state: TurnState) -> None:
        self.seen.append(f"after {step}")


def test_hooks_are_called_around_each_step(memory: AgentMemory) -> None:
    hooks = Noting()
    run(memory, ScriptedModel([ToolCall("1", "memory_recall", '{"q": "x"}'), "done"]), hooks=hooks)
    steps = ["record", "recall", "model", "tools", "model", "keep", "learn"]
    assert hooks.seen == [f"{when} {step}" for step in steps for when in ("before", "after")]


def test_a_hook_that_raises_ends_the_turn(memory: AgentMemory) -> None:
    class Refusing(TurnHooks):
        def before(self, step: Step, state: TurnState) -> None:
            if step is Step.MODEL:
                raise PermissionError("not now")

    model = ScriptedModel(["never"])
    result = run(memory, model, hooks=Refusing())
    assert result.status == "failed"
    assert isinstance(result.error, PermissionError)
    assert model.calls == []
    assert kept(memory)[0] == ("message", "Who plays the cello?")


def test_an_echoed_block_is_scrubbed_from_stream_and_log(memory: AgentMemory) -> None:
    def echo(request: ChatRequest) -> str:
        words = str(request.messages[-1]["content"])
        return words[words.index("<memory-context") :] + "\n\nMira plays it."

    events = list(
        stream_turn(
            "Who plays the cello?", memory=memory, model=ScriptedModel(echo), conversation="c"
        )
    )
    streamed = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert streamed.strip() == "Mira plays it."
    assert isinstance(events[-1], TurnDone)
    assert events[-1].result.text.strip() == "Mira plays it."
    assert kept(memory)[1][1].strip() == "Mira plays it."


def test_events_come_in_their_order(memory: AgentMemory) -> None:
    model = ScriptedModel([ToolCall("1", "memory_recall", '{"q": "x"}'), "It is done"])
    events = list(stream_turn("Look it up", memory=memory, model=model, conversation="c"))
    assert [type(event) for event in events] == [
        ToolCall,
        ToolsDone,
        TextDelta,
        TextDelta,
        TextDelta,
        TurnDone,
    ]


def test_usage_is_summed(memory: AgentMemory) -> None:
    replies = [
        ChatReply(
            text="", tool_calls=(ToolCall("1", "memory_recall", "{}"),), usage=Usage(10, 1, 4)
        ),
        ChatReply(text="done", usage=Usage(20, 2, 8)),
    ]
    assert run(memory, ScriptedModel(replies)).usage == Usage(30, 3, 12)


def test_a_whole_list_of_messages_is_used_as_it_is(memory: AgentMemory) -> None:
    talk = [
        {"role": "user", "content": "Hello there, friend of mine"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Who plays the cello?"},
    ]
    model = ScriptedModel(["Mira.", "Mira."])
    run(memory, model, talk)
    run(
        memory,
        model,
        [*talk, {"role": "assistant", "content": "Mira."}, {"role": "user", "content": "And?"}],
    )
    assert [text for _, text in kept(memory)] == [
        "Hello there, friend of mine",
        "Hi.",
        "Who plays the cello?",
        "Mira.",
        "And?",
        "Mira.",
    ]


@pytest.mark.parametrize(
    "prompt", ["", [], [{"role": "assistant", "content": "x"}], ["x"], {"role": "tool"}]
)
def test_a_prompt_without_the_user_is_refused(memory: AgentMemory, prompt: Any) -> None:
    if prompt == "":
        assert run(memory, ScriptedModel(["?"]), prompt).status == "completed"
        return
    with pytest.raises(UsageError):
        run(memory, ScriptedModel(["?"]), prompt)


@pytest.mark.parametrize("options", [{"max_iterations": 0}, {"history": -1}, {"tool_timeout": 0}])
def test_options_outside_their_rules_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        TurnOptions(**options)


def test_a_log_that_fails_does_not_end_the_turn(memory: AgentMemory) -> None:
    assert memory.sessions is not None
    memory.sessions.log.close()
    result = run(memory, ScriptedModel(["Mira."]))
    assert result.status == "completed"
    assert result.text == "Mira."
    assert {outcome.provider for outcome in result.outcomes} == {"sessions"}


def test_a_clock_s_turn_leaves_no_trace(memory: AgentMemory) -> None:
    result = run(memory, ScriptedModel(["Mira."]), origin="automation")
    assert result.status == "completed"
    assert result.items == ()
    assert memory.sessions is not None
    assert len(memory.sessions.log.conversations(MIRA)) == 0


def test_the_awaitable_twin_does_the_same(memory: AgentMemory, tmp_path: Path) -> None:
    script: list[Any] = [
        [ToolCall("1", "add", '{"a": 1, "b": 2}'), ToolCall("2", "explode", "{}")],
        "Three.",
    ]

    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    def explode() -> None:
        raise RuntimeError("boom")

    tools = [
        HostTool("add", "Add.", ADD, add),
        HostTool("explode", "", {"type": "object"}, explode),
    ]
    options = TurnOptions(tools=tools)

    async def waited() -> TurnResult:
        return await arun_turn(
            "What is one and two?",
            memory=memory,
            model=ScriptedModel(script),
            conversation="a",
            options=options,
        )

    async def streamed() -> list[Any]:
        stream = astream_turn(
            "What is one and two?",
            memory=memory,
            model=ScriptedModel(script),
            conversation="s",
            options=options,
        )
        return [event async for event in stream]

    sync = run_turn(
        "What is one and two?",
        memory=memory,
        model=ScriptedModel(script),
        conversation="b",
        options=options,
    )
    twin = asyncio.run(waited())
    events = asyncio.run(streamed())
    assert isinstance(events[-1], TurnDone)
    for other in (twin, events[-1].result):
        assert (other.status, other.text, other.iterations) == (
            sync.status,
            sync.text,
            sync.iterations,
        )
        assert [m.get("content") for m in other.messages] == [
            m.get("content") for m in sync.messages
        ]
    assert kept(memory, "a") == kept(memory, "b") == kept(memory, "s")


def test_the_awaitable_twin_is_interrupted(memory: AgentMemory) -> None:
    token = CancelToken()

    async def hang() -> None:
        token.cancel()
        await asyncio.sleep(60)

    async def go() -> TurnResult:
        return await arun_turn(
            "Wait",
            memory=memory,
            model=ScriptedModel([ToolCall("1", "hang", "{}"), "never"]),
            conversation="c",
            options=TurnOptions(
                tools=[HostTool("hang", "", {"type": "object"}, hang)], cancel=token
            ),
        )

    start = time.monotonic()
    assert asyncio.run(go()).status == "interrupted"
    assert time.monotonic() - start < 30


def test_a_turn_without_sessions(tmp_path: Path) -> None:
    with MemoryStack([LocalStore()], scope=MIRA) as stack:
        result = run(AgentMemory(stack=stack), ScriptedModel(["Hi."]), "Hello there my friend")
    assert (result.status, result.items) == ("completed", ())
