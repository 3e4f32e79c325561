"""OpenAI-style chats and LangChain dumps: every shape, and none that breaks the reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import (
    Entry,
    Header,
    ImportOptions,
    Problem,
    Skipped,
    Source,
    import_paths,
)
from memsheaf.sessionsearch.importers.langchain import LangChainImporter
from memsheaf.sessionsearch.importers.openai_chat import OpenAiChatImporter
from memsheaf.stack import Scope

OPENAI, LANGCHAIN = OpenAiChatImporter(), LangChainImporter()
MIRA = Scope(user_id="mira")

Told = tuple[str, str | None, str]


class Read:
    def __init__(self, importer: Any, source: Source, options: ImportOptions) -> None:
        self.sure: float = importer.detect(source)
        events = list(importer.read(source, options))
        self.headers = [event for event in events if isinstance(event, Header)]
        self.entries = [event for event in events if isinstance(event, Entry)]
        self.problems = [event for event in events if isinstance(event, Problem)]
        self.skipped = [event.kind for event in events if isinstance(event, Skipped)]
        self.items = [entry.item for entry in self.entries]

    @property
    def told(self) -> list[Told]:
        return [(item.type, item.role, item.text) for item in self.items]

    @property
    def conversations(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            found.setdefault(entry.conversation, []).append(entry.item.text)
        return found


Reader = Callable[..., Read]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def reading(importer: Any, value: Any, options: ImportOptions | None = None) -> Read:
        path = tmp_path / "chat.data"
        text = value if isinstance(value, str) else json.dumps(value)
        path.write_text(text, encoding="utf-8")
        return Read(importer, Source(path), options or ImportOptions())

    return reading


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


CALL = {
    "id": "t1",
    "type": "function",
    "function": {"name": "tide", "arguments": '{"at": "Brest"}'},
}
TALK = [
    {"role": "system", "content": "Be brief."},
    user("When is the tide?"),
    assistant(None, tool_calls=[CALL]),
    {"role": "tool", "tool_call_id": "t1", "content": "nine"},
    assistant("At nine."),
]
SAID: list[Told] = [
    ("event", "system", "Be brief."),
    ("message", "user", "When is the tide?"),
    ("tool_call", "assistant", "tide\nat: Brest"),
    ("tool_result", "tool", "nine"),
    ("message", "assistant", "At nine."),
]


@pytest.mark.parametrize(
    "value",
    [
        TALK,
        {"model": "m", "messages": TALK},
        [{"messages": TALK}],
        [TALK],
        lines(*TALK),
        lines({"messages": TALK}),
        lines({"messages": TALK}) * 2,
        lines({"custom_id": "1", "method": "POST", "url": "/v1", "body": {"messages": TALK}}) * 2,
        lines(
            {"request": {"messages": TALK[:-1]}, "response": {"choices": [{"message": TALK[-1]}]}}
        ),
        json.dumps({"messages": TALK}, indent=2),
        json.dumps(TALK, indent=2),
    ],
)
def test_a_talk_is_the_same_in_every_shape(read: Reader, value: Any) -> None:
    found = read(OPENAI, value)
    assert found.sure >= 0.6
    assert found.told == SAID
    assert len(found.conversations) == 1
    assert found.problems == []
    assert [item.origin for item in found.items] == ["automation", "user", "agent", "tool", "agent"]
    assert found.items[2].data == {"name": "tide", "call_id": "t1"}
    assert found.items[3].data == {"call_id": "t1"}


def test_times_models_names_and_ids_are_kept(read: Reader) -> None:
    talk = [
        {**user("hello"), "timestamp": "2026-01-05T03:32:10Z", "name": "mira", "id": "m-1"},
        {**assistant("hi"), "created": 1767583930, "model": "other"},
        assistant("again"),
    ]
    about = {"session_id": "s-1", "title": "Greeting", "model": "small", "messages": talk}
    found = read(OPENAI, about)
    assert set(found.conversations) == {"openai-chat:s-1"}
    assert found.headers[-1].title == "Greeting"
    assert found.headers[-1].metadata == {
        "format": "openai-chat",
        "source_id": "s-1",
        "model": "small",
    }
    assert str(found.items[0].created_at) == "2026-01-05 03:32:10+00:00"
    assert str(found.items[1].created_at) == "2026-01-05 03:32:10+00:00"
    assert found.items[0].metadata == {"id": "m-1", "name": "mira", "model": "small"}
    assert found.items[1].metadata == {"model": "other"}


def test_missing_and_null_contents_invent_nothing(read: Reader) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
    talk = [
        user("weather?"),
        {"role": "assistant", "tool_calls": [call]},
        assistant(None, tool_calls=[]),
        assistant(""),
        {"role": "tool", "tool_call_id": "t1", "content": None},
        {"role": "developer", "content": "be brief"},
        {"role": "user"},
    ]
    found = read(OPENAI, talk)
    assert found.told == [
        ("message", "user", "weather?"),
        ("tool_call", "assistant", "w"),
        ("tool_result", "tool", ""),
        ("event", "developer", "be brief"),
    ]
    assert found.skipped == ["empty message"] * 3


def test_parts_and_older_and_newer_calls(read: Reader) -> None:
    talk = [
        user(
            [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:"}}]
        ),
        {"role": "assistant", "function_call": {"name": "old", "arguments": "not json {"}},
        {"role": "function", "name": "old", "content": "done"},
        assistant([{"type": "refusal", "refusal": "I will not."}], reasoning_content="think"),
        {"type": "function_call", "name": "newer", "arguments": '{"a": [1, 2]}', "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "out"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}]},
        assistant(
            [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I ask."},
                {"type": "tool_use", "id": "u", "name": "ask", "input": {"q": "x"}},
            ]
        ),
        user(
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "u",
                    "content": [{"type": "text", "text": "y"}],
                }
            ]
        ),
    ]
    found = read(OPENAI, talk)
    assert found.told == [
        ("message", "user", "look\n[image]"),
        ("tool_call", "assistant", "old\nnot json {"),
        ("tool_result", "tool", "done"),
        ("reasoning", "assistant", "think"),
        ("message", "assistant", "I will not."),
        ("tool_call", "assistant", "newer\na: [1, 2]"),
        ("tool_result", "tool", "out"),
        ("reasoning", "assistant", "why"),
        ("reasoning", "assistant", "hm"),
        ("message", "assistant", "I ask."),
        ("tool_call", "assistant", "ask\nq: x"),
        ("tool_result", "tool", "y"),
    ]
    assert len({item.key for item in found.items}) == len(found.items)
    quiet = read(OPENAI, talk, ImportOptions(include_thinking=False))
    assert "reasoning" not in {item.type for item in quiet.items}


def test_two_equal_words_stay_two(read: Reader) -> None:
    found = read(OPENAI, [user("yes"), user("yes")])
    assert [item.text for item in found.items] == ["yes", "yes"]
    assert len({item.key for item in found.items}) == 2


def test_the_requests_of_an_agent_are_one_conversation(read: Reader) -> None:
    first, second = TALK[:2], [*TALK, user("And tomorrow?")]
    other = [user("Who are you?"), assistant("A model.")]
    found = read(OPENAI, lines(*[{"messages": m} for m in (first, other, first, second, second)]))
    assert sorted(map(len, found.conversations.values())) == [2, 6]
    assert found.told == [*SAID[:2], ("message", "user", "Who are you?"),
                          ("message", "assistant", "A model."), *SAID[2:],
                          ("message", "user", "And tomorrow?")]  # fmt: skip


def test_lists_with_ids_of_their_own_are_never_mixed(read: Reader) -> None:
    found = read(
        OPENAI,
        lines(
            {"session_id": "a", "messages": TALK[:2]},
            {"session_id": "b", "messages": TALK},
        ),
    )
    assert {name: len(said) for name, said in found.conversations.items()} == {
        "openai-chat:a": 2,
        "openai-chat:b": 5,
    }


def test_a_grown_document_stays_the_same_conversation(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    with ConversationLog(tmp_path / "log.db") as log:
        for length, added in ((5, 5), (5, 0)):
            path.write_text(json.dumps({"messages": TALK[:length]}))
            assert import_paths(path, log, MIRA).added == added
        path.write_text(json.dumps({"messages": [*TALK, user("Thanks!")]}))
        assert import_paths(path, log, MIRA).added == 1
        copy = tmp_path / "copy.json"
        copy.write_text(json.dumps([*TALK, user("Thanks!")]))
        assert import_paths(copy, log, MIRA).added == 0
        (kept,) = log.conversations(MIRA)
        assert (kept.title, kept.item_count) == ("When is the tide?", 6)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        "x",
        [],
        {},
        [[1], [{}]],
        {"messages": 3},
        {"messages": [1, None, {"role": 7}, {"role": "user", "content": {"text": {"text": 1}}}]},
        [{"role": "a\nb", "content": "x\x00"}],
        [{"role": "assistant", "tool_calls": [1, {"function": {"name": {}, "arguments": [1]}}]}],
        [{"role": "assistant", "tool_calls": {"a": 1}, "content": [1, [2], None]}],
        [{"role": "tool", "content": {"a": 1}, "tool_call_id": ["x"]}],
        [{"role": "user", "content": "x", "timestamp": {"a": 1}, "id": [1], "model": 4}],
        {"id": {"a": 1}, "title": 7, "messages": [{"role": "user", "content": "x"}]},
        [{"messages": [], "session_id": "\n"}],
        [{"response": {"choices": [7]}, "messages": [{"role": "user", "content": "x"}]}],
    ],
)
@pytest.mark.parametrize("importer", [OPENAI, LANGCHAIN])
def test_what_is_no_chat_raises_nothing(read: Reader, importer: Any, bad: Any) -> None:
    read(importer, bad)
    found = read(importer, lines({"messages": TALK}, bad, {"messages": TALK}))
    if importer is OPENAI:
        assert found.told[:5] == SAID


def test_a_bad_line_costs_only_itself(read: Reader) -> None:
    text = '{"messages": [{"role": "us\n' + lines({"messages": TALK}) + "null\n[1]\n" + '{"mess'
    found = read(OPENAI, text)
    assert found.sure >= 0.5
    assert found.told == SAID
    assert [problem.line for problem in found.problems] == [1, 3, 4]


HUMAN, AI = "When is the tide?", "At nine."
DATA: list[Any] = [
    {"type": "system", "data": {"content": "Be brief."}},
    {"type": "human", "data": {"content": HUMAN, "id": "h-1"}},
    {
        "type": "ai",
        "data": {
            "content": "",
            "tool_calls": [{"name": "tide", "args": {"at": "Brest"}, "id": "t1"}],
            "additional_kwargs": {"tool_calls": [CALL]},
            "response_metadata": {"model_name": "gpt-x"},
        },
    },
    {"type": "tool", "data": {"content": "nine", "tool_call_id": "t1", "name": "tide"}},
    {"type": "AIMessageChunk", "data": {"content": [{"type": "text", "text": AI}]}},
]


def constructor(name: str, module: str = "messages", **kwargs: Any) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", module, name],
        "kwargs": kwargs,
    }


DUMPED = [
    constructor("SystemMessage", content="Be brief."),
    constructor("HumanMessage", content=HUMAN),
    constructor("AIMessage", content="", additional_kwargs={"tool_calls": [CALL]}),
    constructor("ToolMessage", content="nine", tool_call_id="t1"),
    constructor("AIMessage", content=AI),
]
PLAIN: list[Any] = [{"type": e["type"], **e["data"]} for e in DATA]


@pytest.mark.parametrize(
    "value",
    [
        DATA,
        DUMPED,
        PLAIN,
        {"messages": DATA},
        {"values": {"messages": PLAIN}},
        [{"messages": PLAIN}],
        lines(*DATA),
        lines(*DUMPED),
        lines({"messages": DATA}) * 2,
        constructor("ChatPromptValue", "prompts", messages=DUMPED),
    ],
)
def test_langchain_in_every_shape(read: Reader, value: Any) -> None:
    found = read(LANGCHAIN, value)
    assert found.told == SAID
    assert found.problems == []
    assert len(found.conversations) == 1
    if "values" not in value and not (isinstance(value, dict) and "lc" in value):
        assert found.sure >= 0.85
        assert found.sure > read(OPENAI, value).sure


def test_langchain_models_and_ids(read: Reader) -> None:
    found = read(LANGCHAIN, DATA)
    assert found.items[1].metadata == {"id": "h-1"}
    assert found.items[2].metadata == {"model": "gpt-x"}
    assert found.items[3].data == {"name": "tide", "call_id": "t1"}
    chat = {"type": "chat", "data": {"role": "user", "content": "hello"}}
    assert read(LANGCHAIN, [chat]).told == [("message", "user", "hello")]


def test_langchain_constructs_nothing(read: Reader) -> None:
    evil = {**constructor("HumanMessage", content="x"), "id": ["os", "system", "HumanMessage"]}
    odd = {**constructor("Evil", "x", command="touch /tmp/owned"), "id": ["subprocess", "Popen"]}
    found = read(LANGCHAIN, [DUMPED[1], odd, evil])
    assert [item.text for item in found.items] == [HUMAN, "x"]
    assert len(found.problems) == 1


def test_the_roles_of_openai_are_not_langchain(read: Reader) -> None:
    assert read(LANGCHAIN, TALK).sure == 0
    assert read(LANGCHAIN, {"messages": TALK}).sure == 0
    for text in (
        f'"""A test."""\n\nTALK = {json.dumps(TALK)}\n',
        f"# Notes\n\n```json\n{json.dumps(TALK)}\n```\n",
        f"[tool]\nx = {json.dumps(TALK)}\n",
    ):
        assert [read(importer, text).sure for importer in (OPENAI, LANGCHAIN)] == [0, 0]
    claude = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "x"}}
    for importer in (OPENAI, LANGCHAIN):
        assert read(importer, lines(claude, claude)).sure == 0
        assert read(importer, "## User\nhello").sure == 0


def test_long_messages_without_an_answer_do_not_wait_for_one(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(lines(*[user(f"{number} " + "word " * 500_000) for number in range(5)]))
    source = Source(path)
    events = OPENAI.read(source, ImportOptions())
    assert isinstance(next(events), Header)
    assert source.done.line < 3
    assert sum(isinstance(event, Entry) for event in events) == 5
