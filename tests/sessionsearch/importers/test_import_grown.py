"""A file that is read as it grows gives what it gives when it is read at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.sessionsearch import Item, NewItem
from memsheaf.sessionsearch.importers.claude_later import Summaries
from memsheaf.stack import Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk


MIRA = Scope(user_id="mira")


def claude(role: str, uuid: str, content: object, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, "id": "m1" if role == "assistant" else None}
    return {"type": role, "uuid": uuid, "sessionId": "s", "message": message, **more}


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:01Z", "type": kind, "payload": payload}


TRANSCRIPTS: dict[str, list[dict[str, Any]]] = {
    "claude-code, the name of a tool": [
        claude("user", "1", "Where is the pump?"),
        claude("assistant", "2", [{"type": "tool_use", "id": "t1", "name": "Grep", "input": {}}]),
        claude("assistant", "3", [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}]),
        claude("user", "4", [{"type": "tool_result", "tool_use_id": "t2", "content": "valve"}]),
        claude("user", "5", [{"type": "tool_result", "tool_use_id": "t1", "content": "cellar"}]),
        claude("user", "6", [{"type": "tool_result", "tool_use_id": "t9", "content": "stray"}]),
    ],
    "claude-code, an answer that is written again": [
        claude("user", "1", "Which cat?"),
        claude("assistant", "2", [{"type": "text", "text": "the"}]),
        claude("assistant", "3", [{"type": "text", "text": "the lynx"}]),
        claude("assistant", "3b", [{"type": "text", "text": "the lynx"}]),
        claude("assistant", "4", [{"type": "text", "text": "the lynx of the moor"}]),
        claude("assistant", "5", [{"type": "tool_use", "id": "t1", "name": "Look", "input": {}}]),
        claude("assistant", "6", [{"type": "text", "text": "the lynx of the moor, I say"}]),
    ],
    "claude-code, a summary of what was before": [
        claude("user", "1", "Is the well dry?"),
        claude("assistant", "2", [{"type": "text", "text": "It is."}]),
        {"type": "summary", "summary": "The dry well", "leafUuid": "2"},
    ],
    "claude-code, a title and a summary before what they tell of": [
        {"type": "custom-title", "customTitle": "The well", "sessionId": "s"},
        {"type": "summary", "summary": "All of the well", "leafUuid": "1"},
        claude("user", "1", "Is the well dry?", cwd="/home/mira/well", gitBranch="main"),
        claude("assistant", "2", [{"type": "text", "text": "It is."}]),
    ],
    "codex, the name of a tool, and what stands first": [
        codex("session_meta", id="s", cwd="/home/mira/well", git={"branch": "main"}),
        codex("turn_context", model="gpt-x"),
        codex("response_item", type="function_call", name="shell", arguments="{}", call_id="k"),
        codex("response_item", type="function_call_output", call_id="k", output="done"),
    ],
}


def test_a_title_waits_for_its_session_while_others_come(desk: Desk) -> None:
    title = {"type": "custom-title", "customTitle": "The well", "sessionId": "s"}
    path = desk.file("a.jsonl", [claude("user", "1", "Another", sessionId="t"), title])
    desk.run()
    for number in range(2):
        desk.append(path, json.dumps(claude("user", f"t{number}", "More", sessionId="t")) + "\n")
        desk.run()
    desk.append(path, json.dumps(claude("user", "2", "Is the well dry?")) + "\n")
    assert desk.run().added == 1
    assert desk.log.conversation("claude-code:s", MIRA).title == "The well"
    assert desk.words("claude-code:t") == ["Another", "More", "More"]
    size = path.stat().st_size
    desk.append(path, json.dumps(claude("user", "3", "It is.")) + "\n")
    assert desk.run().bytes == path.stat().st_size - size  # nothing is read again


def facts(item: Item) -> tuple[object, ...]:
    return item.type, item.role, item.text, dict(item.data), item.response_id, dict(item.metadata)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_line_by_line_and_at_once_are_the_same(desk: Desk, name: str) -> None:
    records = [json.dumps(record) + "\n" for record in TRANSCRIPTS[name]]
    growing = desk.file("growing.jsonl", "")
    for record in records:
        desk.append(growing, record)
        desk.run(growing)
    (one,) = desk.log.conversations(MIRA)
    grown = [facts(item) for item in desk.items(one.id)]

    whole = desk.file("whole.jsonl", "".join(records).replace('"s"', '"t"'))
    desk.run(whole)
    (other,) = (each for each in desk.conversations() if each != one.id)
    assert grown == [facts(item) for item in desk.items(other)]
    about = desk.log.conversation(other, MIRA)
    assert about.title == one.title
    assert {**about.metadata, "source_id": "s"} == one.metadata
    assert desk.run(growing).added == desk.run(whole).added == 0


def test_an_answer_is_replaced_only_by_its_own_end(desk: Desk) -> None:
    path = desk.file("a.jsonl", [claude("assistant", "1", "Yes")])
    desk.run()
    other = claude("assistant", "2", "Yes, and no")
    other["message"]["id"] = "m2"
    desk.append(path, json.dumps(other) + "\n")
    desk.run()
    assert desk.words() == ["Yes", "Yes, and no"]


AIDER = """# aider chat started at 2024-05-01 10:00:00

> Aider v0.50.1

#### fix the pump

Yes.

> Applied edit to pump.py
> Applied edit to valve.py

#### yes

Yes. It holds.
"""
MARKDOWN = """## User
Is the pump dry?

## Assistant
Yes.

## User
Yes

## Assistant
Yes. It is dry.
It was dry before.
"""


@pytest.mark.parametrize(("name", "text", "known"), [("a.md", AIDER, 0), ("b.md", MARKDOWN, 5)])
def test_a_page_that_grows_line_by_line_is_the_whole_page(
    desk: Desk, name: str, text: str, known: int
) -> None:
    """The first lines of a page in Markdown tell which one it is: up to the first answer."""
    whole = desk.file(name, text)
    desk.run(whole)
    (one,) = desk.conversations()
    told = [(item.type, item.role, item.text) for item in desk.items(one)]
    desk.log.erase(one, MIRA)

    lines = text.replace("pump", "well").splitlines(keepends=True)
    growing = desk.file(f"2/{name}", "".join(lines[:known]))
    for line in lines[known:]:
        desk.append(growing, line)
        desk.run(growing)
    (other,) = desk.conversations()
    grown = [(item.type, item.role, item.text) for item in desk.items(other)]
    assert grown == [(kind, role, words.replace("pump", "well")) for kind, role, words in told]
    assert desk.run(growing).added == 0


def test_a_message_that_begins_as_the_one_before_is_another(desk: Desk) -> None:
    turns = ["## User\nyes\n", "## Assistant\nno\n", "## User\nyes\n", "## User\nyes, now\n"]
    for number in range(2, 5):
        desk.file("a.md", "\n".join(turns[:number]))
        desk.run()
    (one,) = desk.conversations()
    assert desk.words(one) == ["yes", "no", "yes", "yes, now"]


def test_two_ends_of_one_session_in_two_files_are_both_kept(desk: Desk) -> None:
    start = [claude("user", "1", "Is the well dry?"), claude("assistant", "2", "It is.")]
    desk.file("a.jsonl", [*start, claude("user", "3", "Good")])
    desk.run()
    desk.file("b.jsonl", [*start, claude("user", "4", "Good, then fill it")])
    desk.run()
    assert desk.words() == ["Is the well dry?", "It is.", "Good", "Good, then fill it"]


def test_what_was_forgotten_names_no_tool_and_does_not_come_back(desk: Desk) -> None:
    call, _, _, result = TRANSCRIPTS["claude-code, the name of a tool"][1:5]
    path = desk.file("a.jsonl", [call, claude("assistant", "9", "the")])
    desk.run()
    desk.log.erase("claude-code:s", MIRA, 0)
    desk.log.erase("claude-code:s", MIRA, 1)
    desk.append(path, json.dumps(claude("assistant", "10", "the lynx")) + "\n")
    desk.append(path, json.dumps(result) + "\n")
    desk.run()
    assert [facts(item)[2:4] for item in desk.items("claude-code:s")] == [
        ("the lynx", {}),
        ("cellar", {"call_id": "t1"}),
    ]


def test_summaries_that_wait_are_bounded_and_counted() -> None:
    state: dict[str, Any] = {}
    summaries = Summaries(state)
    for number in range(40):
        assert summaries.put(f"leaf{number}", number, "x" * 1_000_000) is None
    assert summaries.message("leaf0", "c") is None  # there was no room for it
    assert summaries.message("leaf39", "c") == (39, "x" * 1_000_000)
    assert summaries.left == 39
    assert summaries.put("leaf0", 50, "of what is there") == "c"
    assert Summaries(json.loads(json.dumps(state))).put("leaf0", 1, "and later") == "c"


NAMELESS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"role": "user", "content": "Where is the pump?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "locate", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "cellar"},
        {"role": "tool", "tool_call_id": "t2", "content": "stray"},
    ],
    "langchain": [
        {"type": "human", "data": {"content": "Where is the pump?"}},
        {
            "type": "ai",
            "data": {"content": "", "tool_calls": [{"id": "t1", "name": "locate", "args": {}}]},
        },
        {"type": "tool", "data": {"content": "cellar", "tool_call_id": "t1"}},
        {"type": "tool", "data": {"content": "stray", "tool_call_id": "t2"}},
    ],
}


@pytest.mark.parametrize("format", NAMELESS)
def test_a_result_has_the_name_of_its_tool_in_every_format(desk: Desk, format: str) -> None:
    desk.file("a.json", json.dumps(NAMELESS[format]))
    assert desk.run().files[0].format == format
    results = [item for item in desk.everything() if item.type == "tool_result"]
    assert [dict(item.data) for item in results] == [
        {"name": "locate", "call_id": "t1"},
        {"call_id": "t2"},
    ]


def test_odd_data_of_earlier_items_name_no_tool(desk: Desk) -> None:
    odd = [NewItem("tool_call", data=data) for data in ({"call_id": [1], "name": "x"}, {"a": 1})]
    desk.log.append("claude-code:s", odd, MIRA)
    desk.file("a.jsonl", TRANSCRIPTS["claude-code, the name of a tool"][-1:])
    assert desk.run().added == 1
