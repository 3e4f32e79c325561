"""Gemini CLI: documents, and lines where later ones replace or take back earlier ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.stack import Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA = Scope(user_id="mira")
ID = "gemini-cli:s1"
HEADER = {"sessionId": "s1", "projectHash": "ab12", "startTime": "2026-01-05T10:00:00Z"}


def message(id: str, kind: str, content: object, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-01-05T10:00:01Z", "type": kind, "content": content, **more}


CALL = {
    "id": "c1",
    "name": "read_file",
    "args": {"path": "well.md"},
    "status": "success",
    "timestamp": "2026-01-05T10:00:03Z",
    "result": [{"functionResponse": {"id": "c1", "response": {"output": "The well is dry."}}}],
    "resultDisplay": "shown",
}


@pytest.mark.parametrize("last", [False, True])
def test_a_document_with_its_id_before_or_behind_the_messages(desk: Desk, last: bool) -> None:
    messages = {
        "messages": [
            message("u1", "user", [{"text": "Read this."}]),
            message(
                "g1",
                "gemini",
                "I read.",
                model="gemini-x",
                thoughts=[{"subject": "Plan", "description": "Read it."}],
                toolCalls=[CALL],
            ),
            message("e1", "error", "quota"),
        ]
    }
    rest = {**HEADER, "summary": "The well", "directories": ["/home/mira/added"]}
    desk.file("garden/.project_root", "/home/mira/garden\n")
    desk.file(
        "garden/chats/session.json",
        json.dumps({**messages, **rest} if last else {**rest, **messages}),
    )
    assert desk.run().formats() == {"gemini-cli": 1}
    items = desk.items(ID)
    assert [(i.type, i.role, i.text) for i in items] == [
        ("message", "user", "Read this."),
        ("reasoning", "assistant", "Plan\nRead it."),
        ("message", "assistant", "I read."),
        ("tool_call", "assistant", "read_file\npath: well.md"),
        ("tool_result", "tool", "The well is dry."),
        ("event", "system", "quota"),
    ]
    assert items[2].metadata == {"id": "g1", "model": "gemini-x"}
    held = desk.log.conversation(ID, MIRA)
    assert held.title == "The well"
    assert held.metadata == {
        "format": "gemini-cli",
        "source_id": "s1",
        "project": "/home/mira/garden",
        "project_hash": "ab12",
        "model": "gemini-x",
    }


def test_a_later_line_replaces_an_earlier_one_with_its_id(desk: Desk) -> None:
    desk.file(
        "session.jsonl",
        [
            HEADER,
            message("u1", "user", "hello"),
            message("g1", "gemini", "", model="gemini-x"),
            {"$set": {"summary": "A greeting"}},
            message("g1", "gemini", "hello to you", model="gemini-x"),
        ],
    )
    desk.run()
    assert desk.said(ID) == [("user", "hello"), ("assistant", "hello to you")]
    assert desk.log.conversation(ID, MIRA).title == "A greeting"


REWOUND = [
    HEADER,
    message("u1", "user", "one"),
    message("u2", "user", "two"),
    message("g2", "gemini", "answer to two"),
]


@pytest.mark.parametrize(
    ("back", "branches", "left"),
    [
        ("u2", "active", ["one", "three"]),
        ("unknown", "active", ["three"]),
        ("u2", "all", ["one", "two", "answer to two", "three"]),
    ],
)
def test_rewinding_takes_back_what_follows(
    desk: Desk, back: str, branches: str, left: list[str]
) -> None:
    desk.file("s.jsonl", [*REWOUND, {"$rewindTo": back}, message("u3", "user", "three")])
    desk.run(branches=branches)
    assert [words for _, words in desk.said(ID)] == left


def test_all_messages_may_be_set_anew(desk: Desk) -> None:
    desk.file("s.jsonl", [*REWOUND, {"$set": {"messages": [message("u9", "user", "nine")]}}])
    desk.run()
    assert desk.said(ID) == [("user", "nine")]


def test_a_session_that_grows_adds_its_new_parts(desk: Desk) -> None:
    desk.file("s.jsonl", [HEADER, message("u1", "user", "hi"), message("g1", "gemini", "Wait.")])
    assert desk.run().added == 2
    desk.file(
        "s.jsonl",
        [
            HEADER,
            message("u1", "user", "hi"),
            message("g1", "gemini", "Wait."),
            message("g1", "gemini", "Wait.", toolCalls=[CALL]),
        ],
    )
    assert desk.run().added == 2
    assert [item.type for item in desk.items(ID)][2:] == ["tool_call", "tool_result"]


def test_what_the_program_sends_in_the_users_name_is_an_event(desk: Desk) -> None:
    setup = "<session_context>\nThis is the Gemini CLI. We are setting up the context.\n"
    hook = "<hook_context>The pump is old.</hook_context>"
    records = [
        message("u1", "user", setup),
        message("u2", "user", [{"text": "Is the well dry?"}, {"text": hook}]),
        message("u3", "user", "System: Please continue."),
        message("u4", "user", "What does <hook_context> mean?"),
    ]
    desk.file("a.jsonl", [HEADER, *records])
    desk.run()
    assert desk.words(ID) == ["Is the well dry?", "What does <hook_context> mean?"]
    events = [(each.role, each.text) for each in desk.items(ID) if each.type == "event"]
    texts = (setup, hook, "System: Please continue.")
    assert events == [("system", text) for text in texts]
    assert desk.log.conversation(ID, MIRA).title == "Is the well dry?"


def test_files_that_were_put_in_and_sub_agents_are_not_the_users_words(desk: Desk) -> None:
    sent = [{"text": "Look at @well.md"}, {"text": "--- Content of well.md ---\ndry"}]
    shown = message("u1", "user", sent, displayContent="Look at @well.md")
    setup = "This is the Gemini CLI. We are setting up the context for our chat."
    desk.file("a.jsonl", [HEADER, shown, message("u2", "user", setup)])
    child = {**HEADER, "sessionId": "s2", "kind": "subagent", "directories": ["/home/mira/garden"]}
    desk.file("chats/s1/s2.jsonl", [child, message("u1", "user", "List the moths.")])
    desk.run()
    assert desk.said(ID) == [("user", "Look at @well.md")]
    assert [item.type for item in desk.items(ID)] == ["message", "event", "event"]
    assert [item.role for item in desk.items("gemini-cli:s2")] == ["system"]
    about = desk.log.conversation("gemini-cli:s2", MIRA).metadata
    assert (about["project"], about["parent"]) == ("/home/mira/garden", ID)
