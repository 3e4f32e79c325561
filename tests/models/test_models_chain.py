"""The auxiliary chain: order, fall-through, what the last error says; and the scripted double."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from memsheaf.models import (
    AllModelsFailed,
    BadRequest,
    CancelToken,
    ChatModel,
    ChatReply,
    ChatRequest,
    Done,
    Message,
    MissingExtra,
    ModelCancelled,
    ModelChain,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NoModel,
    OpenAICompatible,
    ScriptedModel,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    resolve,
)

HI: list[Message] = [{"role": "user", "content": "hi"}]
DOWN = ModelUnavailable("no link", model="cheap")


async def collect(model: ChatModel) -> list[StreamEvent]:
    return [event async for event in model.astream(HI)]


FACES: dict[str, Callable[[ChatModel], Any]] = {
    "complete": lambda model: model.complete(HI),
    "acomplete": lambda model: asyncio.run(model.acomplete(HI)),
    "stream": lambda model: list(model.stream(HI))[-1].reply,  # type: ignore[union-attr]
    "astream": lambda model: asyncio.run(collect(model))[-1].reply,  # type: ignore[union-attr]
}


@pytest.fixture(params=list(FACES.values()), ids=list(FACES))
def ask(request: pytest.FixtureRequest) -> Callable[[ChatModel], ChatReply]:
    found: Callable[[ChatModel], ChatReply] = request.param
    return found


def test_slot_then_default_then_primary() -> None:
    slot, default, primary = (ScriptedModel(name=name) for name in ("slot", "default", "primary"))
    chain = resolve("job", slots={"job": slot, "x": None}, default=default, primary=primary)
    assert chain.models == (slot, default, primary)
    assert resolve("other", slots={"job": slot}, default=default, primary=primary).models == (
        default,
        primary,
    )
    assert resolve("other", primary=primary).models == (primary,)


def test_each_model_once_and_the_primary_last() -> None:
    cheap, primary = ScriptedModel(name="cheap"), ScriptedModel(name="primary")
    slots: dict[str, ChatModel | None] = {
        "a": cheap,
        "b": primary,
        "c": ModelChain([cheap, primary]),
    }
    assert resolve("a", slots=slots, default=cheap, primary=primary).models == (cheap, primary)
    assert resolve("b", slots=slots, default=cheap, primary=primary).models == (primary,)
    assert resolve("c", slots=slots, default=cheap, primary=primary).models == (cheap, primary)


def test_no_model() -> None:
    with pytest.raises(NoModel, match="'job' is named but has no model"):
        resolve("job", slots={"job": None}, primary=ScriptedModel())
    with pytest.raises(NoModel, match="no model for slot 'job'; configure"):
        resolve("job")
    with pytest.raises(NoModel, match="empty"):
        ModelChain([])


def test_the_next_answers(ask: Callable[[ChatModel], ChatReply]) -> None:
    first, second = ScriptedModel([DOWN]), ScriptedModel(["hello there"])
    reply = ask(ModelChain([first, second]))
    assert reply.text == "hello there"
    assert len(first.calls) == len(second.calls) == 1


def test_all_failed(ask: Callable[[ChatModel], ChatReply]) -> None:
    key = ModelRefused("HTTP 401; check the API key", model="main", status=401)
    chain = ModelChain([ScriptedModel([DOWN], name="cheap"), ScriptedModel([key], name="main")])
    with pytest.raises(AllModelsFailed) as info:
        ask(chain)
    assert info.value.failures == (("cheap", DOWN), ("main", key))
    assert str(info.value) == (
        "every model of the chain failed: cheap: ModelUnavailable: no link; "
        "main: ModelRefused: HTTP 401; check the API key"
    )
    assert info.value.__cause__ is key


@pytest.mark.parametrize("error", [ModelCancelled("stop"), BadRequest("wrong")])
def test_what_is_not_the_models_fault_ends_the_chain(
    ask: Callable[[ChatModel], ChatReply], error: ModelError
) -> None:
    second = ScriptedModel(["no"])
    with pytest.raises(type(error)):
        ask(ModelChain([ScriptedModel([error]), second]))
    assert second.calls == []


def test_a_bug_is_not_a_failure_of_the_model(ask: Callable[[ChatModel], ChatReply]) -> None:
    with pytest.raises(ZeroDivisionError):
        ask(ModelChain([ScriptedModel([ZeroDivisionError()]), ScriptedModel(["no"])]))


class Breaks(ScriptedModel):
    """Says one word, then breaks off."""

    def stream(self, messages: Any, **options: Any) -> Any:
        yield TextDelta("par")
        raise DOWN

    async def astream(self, messages: Any, **options: Any) -> Any:
        yield TextDelta("par")
        raise DOWN


def test_a_stream_that_began_does_not_move_on() -> None:
    second = ScriptedModel(["no"])
    chain = ModelChain([Breaks(), second])
    with pytest.raises(ModelUnavailable, match="no link"):
        list(chain.stream(HI))
    with pytest.raises(ModelUnavailable, match="no link"):
        asyncio.run(collect(chain))
    assert second.calls == []


def test_a_model_whose_library_is_missing_is_stepped_over(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[ChatModel], ChatReply]
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with OpenAICompatible("http://127.0.0.1:9", "m") as remote:
        with pytest.raises(MissingExtra, match=r"pip install 'memsheaf\[models\]'"):
            ask(remote)
        assert ask(ModelChain([remote, ScriptedModel(["local"])])).text == "local"


def test_scripted_faces_and_records(ask: Callable[[ChatModel], ChatReply]) -> None:
    call = ToolCall("1", "look", "{}")
    whole = ChatReply(text="a  b\n", tool_calls=(call,))
    model = ScriptedModel([call, whole], name="double")
    assert ask(model) == ChatReply(
        text="", tool_calls=(call,), model="double", finish_reason="tool_calls"
    )
    assert ask(model) == whole
    with pytest.raises(ModelError, match="double: the script has 2 replies and this is call 3"):
        ask(model)
    assert [request.messages for request in model.calls] == [tuple(HI)] * 3
    assert isinstance(model, ChatModel)


def test_scripted_stream_is_the_reply_in_pieces() -> None:
    calls = [ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}")]
    model = ScriptedModel([ChatReply(text="  a b \n", tool_calls=tuple(calls)), calls])
    events = list(model.stream(HI))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "  a b \n"
    assert [e.call for e in events if isinstance(e, ToolCallReady)] == calls
    assert isinstance(events[-1], Done)


def test_scripted_function_sees_the_request() -> None:
    def script(request: ChatRequest) -> str:
        return f"{len(request.messages)} {request.json_mode}"

    assert ScriptedModel(script).complete(HI, json_mode=True).text == "1 True"


def test_scripted_delay_ends_by_timeout_and_by_token() -> None:
    model = ScriptedModel(["a"] * 9, delay=60)
    with pytest.raises(ModelTimeout):
        model.complete(HI, timeout=0.01)
    with pytest.raises(ModelTimeout):
        asyncio.run(model.acomplete(HI, timeout=0.01))
    faces: list[Callable[[CancelToken], object]] = [
        lambda token: model.complete(HI, cancel=token),
        lambda token: asyncio.run(model.acomplete(HI, cancel=token)),
    ]
    for call in faces:
        token = CancelToken()
        timer = threading.Timer(0.05, token.cancel)
        timer.start()
        with pytest.raises(ModelCancelled):
            call(token)
        timer.join()
    assert ScriptedModel(["a"], delay=0.01).complete(HI).text == "a"
    short = ScriptedModel(["a"], delay=0.01)
    assert asyncio.run(short.acomplete(HI)).text == "a"


def test_scripted_stream_ends_by_token() -> None:
    token = CancelToken()
    events = ScriptedModel(["one two three"]).stream(HI, cancel=token)
    next(events)
    token.cancel()
    with pytest.raises(ModelCancelled):
        next(events)


def test_scripted_checks_the_call_before_it_counts() -> None:
    model = ScriptedModel(["a"])
    with pytest.raises(BadRequest):
        model.stream([])
    assert model.calls == []


def test_import_is_cheap() -> None:
    code = (
        "import sys; before = set(sys.modules); import memsheaf.models; "
        "heavy = {'httpx', 'stamina', 'pydantic', 'numpy', 'anyio', 'asyncio.events'} "
        "& (set(sys.modules) - before); "
        "ours = {m for m in sys.modules if m.startswith('memsheaf.') "
        "and not m.startswith('memsheaf.models')}; print(sorted(heavy | ours))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['asyncio.events']"
