"""Codex: each text once, whose words, and every shape that rollouts had."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.stack import Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA = Scope(user_id="mira")
SESSION = "0198f3a2-7b1c-7d52-9a60-3c1f2e4d5b6a"


def meta(**more: Any) -> dict[str, Any]:
    payload = {"id": SESSION, "cwd": "/w", "git": {"branch": "main"}, **more}
    return wrapped("session_meta", payload)


def wrapped(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-08-20T08:00:00Z", "type": kind, "payload": payload}


def message(role: str, *texts: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    content = [{"type": part, "text": text} for text in texts]
    return wrapped("response_item", {"type": "message", "role": role, "content": content})


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return wrapped("event_msg", {"type": kind, **fields})


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return wrapped("response_item", {"type": kind, **fields})


def test_each_text_is_told_once_whichever_line_comes_first(desk: Desk) -> None:
    desk.file(
        "a.jsonl",
        [
            meta(),
            event("user_message", message="old style: fix the gate"),
            message("user", "<environment_context><cwd>/w</cwd></environment_context>"),
            message("user", "old style: fix the gate"),
            event(
                "item_completed",
                item={
                    "type": "UserMessage",
                    "content": [{"type": "text", "text": "new style: oil the hinge"}],
                },
            ),
            item("reasoning", summary=[], encrypted_content="gAAA"),
            wrapped("brand_new_kind", {}),
        ],
    )
    summary = desk.run()
    assert desk.said(SESSION) == [
        ("user", "old style: fix the gate"),
        ("user", "new style: oil the hinge"),
    ]
    held = desk.log.conversation(SESSION, MIRA)
    assert held.title == "old style: fix the gate"
    assert summary.files[0].skipped == {"reasoning without text": 1, "brand_new_kind": 1}
    assert not any("gAAA" in each.text for each in desk.items(SESSION))
    assert all(
        each.origin == "automation" for each in desk.items(SESSION) if "environment" in each.text
    )


def test_the_same_words_said_twice_stay_two(desk: Desk) -> None:
    turn = [message("user", "continue"), event("user_message", message="continue")]
    reply = [event("agent_message", message="Done."), message("assistant", "Done.")]
    path = desk.file("a.jsonl", [meta(), *turn, *reply, *turn])
    desk.run()
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in [*reply, *turn])
    desk.run()
    said = [("user", "continue"), ("assistant", "Done.")]
    assert desk.said(SESSION) == [*said, *said, ("user", "continue")]


def test_an_echo_in_the_next_import_is_still_an_echo(desk: Desk) -> None:
    path = desk.file("a.jsonl", [meta(), message("user", "hello")])
    desk.run()
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event("user_message", message="hello")) + "\n")
    summary = desk.run()
    assert summary.added == 0
    assert desk.said(SESSION) == [("user", "hello")]


def test_tools_reasoning_and_metadata(desk: Desk) -> None:
    shell = {"output": "pump.log\n", "metadata": {"exit_code": 2}}
    desk.file(
        "a.jsonl",
        [
            meta(originator="codex_cli_rs"),
            wrapped("turn_context", {"cwd": "/w", "model": "model-y"}),
            item("reasoning", summary=[{"type": "summary_text", "text": "The pump."}]),
            event("agent_reasoning", text="The pump."),
            item("function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
            item("function_call_output", call_id="c1", output=json.dumps(shell)),
            item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2"),
            item("custom_tool_call_output", call_id="c2", output="ok"),
            item("web_search_call", action={"type": "search", "query": "lime trees"}),
            item("local_shell_call", call_id="c3", action={"command": ["date"]}),
            wrapped("compacted", {"message": "So far.", "replacement_history": [{"x": 1}]}),
            event("token_count", info=None),
            event("thread_name_updated", thread_name="The dry well"),
        ],
    )
    summary = desk.run()
    items = desk.items(SESSION)
    assert [(i.type, i.role, i.text) for i in items] == [
        ("reasoning", "assistant", "The pump."),
        ("tool_call", "assistant", 'shell\ncommand: ["ls"]'),
        ("tool_result", "tool", "pump.log\n"),
        ("tool_call", "assistant", "apply_patch\n*** Begin"),
        ("tool_result", "tool", "ok"),
        ("tool_call", "assistant", "web_search\ntype: search\nquery: lime trees"),
        ("tool_call", "assistant", 'local_shell\ncommand: ["date"]'),
        ("summary", "system", "So far."),
    ]
    assert items[2].status == "failed"
    assert items[4].data == {"name": "apply_patch", "call_id": "c2"}
    assert items[0].metadata == {"model": "model-y", "project": "/w", "branch": "main"}
    held = desk.log.conversation(SESSION, MIRA)
    assert held.title == "The dry well"
    assert held.metadata["program"] == "codex_cli_rs"
    assert held.metadata["model"] == "model-y"
    assert summary.files[0].skipped == {"event token_count": 1}


def test_instructions_and_the_editors_context_are_not_the_users_words(desk: Desk) -> None:
    editor = "# Context from my IDE setup:\n## Open tabs\n- a.py\n## My request for Codex:\nOil it."
    desk.file(
        "a.jsonl",
        [
            meta(),
            message("developer", "<permissions instructions>none</permissions instructions>"),
            message("user", "# AGENTS.md instructions for /w\n<INSTRUCTIONS>x</INSTRUCTIONS>"),
            message("user", "<turn_aborted>by the user</turn_aborted>", "typed beside it"),
            message("user", editor),
            event("user_message", message=editor),
        ],
    )
    desk.run()
    assert desk.said(SESSION) == [("user", "typed beside it"), ("user", "Oil it.")]
    others = [each for each in desk.items(SESSION) if each.type != "message"]
    assert len(others) == 4
    assert {(each.type, each.role) for each in others} == {("event", "system")}


@pytest.mark.parametrize(
    "injected",
    [
        '<hook_prompt hook_run_id="stop:0">Run the checks.</hook_prompt>',
        '<codex_internal_context source="goal">\nContinue.\n</codex_internal_context>',
        "<goal_context>Continue.</goal_context>",
        "<external_editor>three files</external_editor>",
        "<recommended_plugins>none</recommended_plugins>",
        "<realtime_conversation>on</realtime_conversation>",
        "<multi_agent_mode>off</multi_agent_mode>",
        "The following is the Codex agent history whose request is to be judged.",
        "Warning: The maximum number of unified exec processes you can keep open is 60.",
    ],
)
def test_what_codex_sends_in_the_users_name_is_an_event(desk: Desk, injected: str) -> None:
    typed = "<hook_promptly> is no tag, nor is <external> one"
    desk.file("a.jsonl", [meta(), message("user", injected), message("user", typed)])
    desk.run()
    assert desk.said(SESSION) == [("user", typed)]
    first = desk.items(SESSION)[0]
    assert (first.type, first.role, first.text) == ("event", "system", injected)
    assert desk.log.conversation(SESSION, MIRA).title == typed


def test_a_fork_names_its_parent_and_repeats_its_line(desk: Desk) -> None:
    old = "0198f3a2-0000-7d52-9a60-3c1f2e4d5b6a"
    desk.file("a.jsonl", [meta(forked_from_id=old), meta(id=old), message("user", "go on")])
    desk.run()
    assert desk.conversations() == {SESSION}
    assert desk.log.conversation(SESSION, MIRA).metadata["parent"] == old


def test_the_prompts_of_a_sub_agent_are_not_the_users_words(desk: Desk) -> None:
    parent = "0198f3a2-1111-7d52-9a60-3c1f2e4d5b6a"
    source = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}}
    desk.file("a.jsonl", [meta(source=source), message("user", "List the moths.")])
    desk.run()
    assert [(i.type, i.role) for i in desk.items(SESSION)] == [("event", "system")]
    assert desk.log.conversation(SESSION, MIRA).metadata["parent"] == parent


def test_items_without_a_wrapper_and_single_documents(desk: Desk) -> None:
    bare = [
        {"id": SESSION, "timestamp": "2025-05-07T17:24:21.597Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
    ]
    desk.file("bare.jsonl", bare)
    document = {
        "session": {"id": "first-days", "timestamp": "2025-04-17T10:00:00Z", "instructions": ""},
        "items": bare[2:3],
    }
    desk.file("rollout.json", json.dumps(document, indent=2))
    summary = desk.run()
    assert {file.format for file in summary.files} == {"codex"}
    assert desk.said(SESSION) == [("user", "hello")]
    assert desk.said("codex:first-days") == [("user", "hello")]
    first = desk.items("codex:first-days")[0]
    assert first.created_at is not None
    assert first.created_at.isoformat() == "2025-04-17T10:00:00+00:00"
    assert first.metadata["time"] == "assumed"


def test_an_image_beside_the_words_does_not_make_them_two(desk: Desk) -> None:
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "What is this?"},
    ]
    desk.file(
        "a.jsonl",
        [
            meta(),
            item("message", role="user", content=content, id="msg-1"),
            event("user_message", message="What is this?", images=[]),
            item("message", role="user", content=content[1:2]),
        ],
    )
    desk.run()
    assert desk.said(SESSION) == [("user", "What is this?"), ("user", "[image]")]
    assert desk.items(SESSION)[0].metadata["id"] == "msg-1"


def test_the_same_session_in_two_files_is_one(desk: Desk) -> None:
    records = [meta(), message("user", "hello"), message("assistant", "hello")]
    desk.file("a.jsonl", records)
    desk.file("archived/a.jsonl", [*records, message("user", "more")])
    summary = desk.run()
    assert (summary.added, summary.known) == (3, 2)
