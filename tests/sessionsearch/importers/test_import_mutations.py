"""Every format with odd values in odd places, thousands of times: nothing raises."""

from __future__ import annotations

import copy
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch.importers import (
    Entry,
    Header,
    ImportOptions,
    Problem,
    Skipped,
    Source,
    load_importers,
)

PAGES = Path(__file__).parents[3] / "docs" / "importing"
ROUNDS = 250
ODD: list[Any] = [
    None, True, False, 0, -1, 7, 0.5, 1e308, -(10**30), 10**400, "", " ", "x", "\x00\ud800", "a\nb",
    "\x1b]0;t\x07", "../../x", "y" * 5000, [], [[]], [None], ["x"], [1, "x"], [{}], [["x"], {}], {},
    {"": None}, {"type": "text", "text": None}, {"type": ["x"]}, {"x": {"y": []}}, "2026-01-05",
    {"role": "user", "content": "hi"}, {"id": "x"}, {"text": "x"}, "{}", "[1]", "\ud83d",
]  # fmt: skip

CLAUDE: list[Any] = [
    {"type": "summary", "summary": "The pump", "leafUuid": "a1"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "cwd": "/w",
     "gitBranch": "main", "timestamp": "2026-01-05T09:00:00Z", "isSidechain": False,
     "origin": {"kind": "human"}, "message": {"role": "user", "content": "<system-reminder>x"}},
    {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "s", "requestId": None,
     "message": {"id": "m1", "role": "assistant", "model": "m", "content": [
         {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes"},
         {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "/w"}}]}},
    {"type": "user", "uuid": "u2", "sessionId": "s", "toolUseResult": {"stdout": "a", "stderr": ""},
     "message": {"role": "user", "content": [
         {"type": "tool_result", "tool_use_id": "t", "content": [], "is_error": False}]}},
    {"type": "user", "uuid": "u3", "sessionId": "s", "isSidechain": True, "agentId": "q",
     "message": {"role": "user", "content": [{"type": "text", "text": "List them"}]}},
    {"type": "system", "uuid": "y", "sessionId": "s", "subtype": "local_command", "content": "x"},
    {"type": "attachment", "uuid": "z", "sessionId": "s", "attachment": {
        "type": "file", "filename": "a", "content": {"file": {"content": "words"}}}},
    {"type": "attachment", "uuid": "w", "sessionId": "s", "attachment": {
        "type": "queued_command", "prompt": "and then", "commandMode": "prompt"}},
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "and then",
     "timestamp": "2026-01-05T09:00:00Z"},
    {"type": "custom-title", "customTitle": "Pump", "sessionId": "s"},
    {"type": "tool_use", "name": "ls", "input": {}, "sessionId": "s"},
    {"type": "tool_result", "output": "a", "sessionId": "s"},
]  # fmt: skip
CODEX: list[Any] = [
    {"timestamp": "2026-01-05T09:00:00Z", "type": "session_meta", "payload": {
        "id": "s", "cwd": "/w", "originator": "cli", "git": {"branch": "main"},
        "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}},
        "forked_from_id": "f", "timestamp": "2026-01-05T09:00:00Z"}},
    {"type": "turn_context", "payload": {"cwd": "/w", "model": "m"}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Fix the gate"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "Fix the gate"}, {"type": "input_image"}]}},
    {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": [
        {"type": "input_text", "text": "Be brief"}]}},
    {"type": "response_item", "payload": {"type": "reasoning", "summary": [
        {"type": "summary_text", "text": "hm"}], "encrypted_content": "g"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "sh", "call_id": "c",
                                          "arguments": '{"command": ["ls"]}'}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c",
        "output": '{"output": "a", "metadata": {"exit_code": 1}}'}},
    {"type": "response_item", "payload": {"type": "custom_tool_call", "name": "p", "input": "x"}},
    {"type": "response_item", "payload": {"type": "web_search_call", "action": {"query": "x"}}},
    {"type": "compacted", "payload": {"message": "so far", "replacement_history": []}},
    {"type": "event_msg", "payload": {"type": "item_completed", "item": {
        "type": "UserMessage", "content": [{"type": "text", "text": "Oil it"}]}}},
    {"type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": "Gate"}},
    {"id": "s", "timestamp": "2026-01-05T09:00:00Z", "instructions": None},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ok"}]},
]  # fmt: skip
GEMINI: list[Any] = [
    {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-05T09:00:00Z", "kind": "main",
     "directories": ["/w"], "summary": "Gate"},
    {"id": "1", "type": "user", "timestamp": "2026-01-05T09:00:00Z", "content": "Fix it",
     "displayContent": [{"text": "Fix"}]},
    {"id": "2", "type": "gemini", "model": "m", "content": "Yes", "thoughts": [
        {"subject": "a", "description": "b", "timestamp": "2026-01-05T09:00:00Z"}], "toolCalls": [
        {"id": "c", "name": "ls", "args": {"p": 1}, "status": "error", "agentId": "q",
         "result": [{"functionResponse": {"response": {"output": "x"}}}], "resultDisplay": "x"}]},
    {"id": "3", "type": "info", "content": [{"text": "note"}]},
    {"$set": {"summary": "Gate", "messages": [{"id": "4", "type": "user", "content": "So"}]}},
    {"$rewindTo": "3"},
    {"id": "5", "type": "gemini", "content": "Done"},
]  # fmt: skip
TRACE: list[Any] = [
    {"atof_version": "1", "category": "llm", "scope_category": "start", "uuid": "1",
     "timestamp": 1767583930, "metadata": {"session_id": "s", "platform": "cli"},
     "data": {"content": [{"type": "text", "text": "Why?"}]}},
    {"atof_version": "1", "category": "llm", "scope_category": "end", "uuid": "1",
     "parent_uuid": "0", "metadata": {"session_id": "s"}, "data": {"assistant_message": "So"}},
]  # fmt: skip
CHAT: list[Any] = [
    {"messages": [
        {"role": "user", "content": "Why?", "timestamp": 1767583930},
        {"role": "assistant", "content": [{"type": "text", "text": "So"}], "tool_calls": [
            {"id": "t", "type": "function", "function": {"name": "w", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "t", "content": None},
        {"type": "function_call", "name": "w", "call_id": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t", "output": "a"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}]},
    {"request": {"body": {"messages": [{"role": "user", "content": "Q"}]}},
     "response": {"body": {"choices": [{"message": {"role": "assistant", "content": "A"}}]}}},
]  # fmt: skip
LINES = {
    "claude-code": CLAUDE,
    "codex": CODEX,
    "gemini-cli": GEMINI,
    "hermes": TRACE,
    "openai-chat": CHAT,
}


def sample(name: str) -> str:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    found = re.search(r"## Sample\n\n```\w+\n(.*?)```\n", page, re.DOTALL)
    assert found is not None
    return found[1]


def records(text: str) -> list[Any]:
    """The lines, or the one document."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in list(inner):
        found.append((value, key))
        if isinstance(each, dict | list):
            found += places(each)
    return found


def mutate(chance: random.Random, value: list[Any]) -> None:
    """Replace, remove, repeat or nest what stands somewhere."""
    holder, key = chance.choice(places(value))
    what = chance.random()
    if what < 0.7:
        holder[key] = copy.deepcopy(chance.choice(ODD))
    elif what < 0.8:
        del holder[key]
    elif what < 0.9 and isinstance(holder, dict):
        holder[chance.choice(["type", "id", "role", "content", "message", ""])] = holder[key]
    else:
        holder[key] = [holder[key], copy.deepcopy(holder[key])]


def read(name: str, text: str, options: ImportOptions) -> None:
    """What an importer makes of it is events; what is an entry can be kept."""
    data = text.encode("utf-8", "surrogatepass")
    source = Source(Path("odd.jsonl"), opener=lambda: io.BytesIO(data), size=len(data))
    importer = load_importers().named(name)
    for each in load_importers().working.values():
        assert 0 <= each.detect(source) <= 1, each.name
    for event in importer.read(source, options):
        assert isinstance(event, Entry | Header | Problem | Skipped), event
        if isinstance(event, Entry):
            assert "None" not in event.item.text
            json.dumps([dict(event.item.data), dict(event.item.metadata)])
        if isinstance(event, Entry | Header):
            assert event.conversation.isprintable()
            assert 0 < len(event.conversation) < 512
        if isinstance(event, Header):
            assert event.title is None or isinstance(event.title, str)


JSON_SAMPLES = [path.stem for path in sorted(PAGES.glob("*.md")) if "```json" in path.read_text()]


@pytest.mark.parametrize("name", sorted({*JSON_SAMPLES, *LINES}))
def test_odd_values_anywhere_raise_nothing(name: str) -> None:
    chance = random.Random(f"mutations of {name}")
    corpora = [LINES[name]] if name in LINES else []
    corpora += [records(sample(name))] if name in JSON_SAMPLES else []
    for _ in range(ROUNDS):
        value = copy.deepcopy(chance.choice(corpora))
        for _ in range(chance.randint(1, 4)):
            if places(value):
                mutate(chance, value)
        text = json.dumps(value[0]) if len(value) == 1 else "\n".join(map(json.dumps, value))
        branches = ImportOptions(branches="all", include_thinking=False)
        read(name, text, chance.choice([ImportOptions(), branches]))
