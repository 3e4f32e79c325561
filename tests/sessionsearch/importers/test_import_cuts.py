"""Random transcripts, imported in random parts: as if they had been there at once."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import import_paths
from memsheaf.stack import Scope

MIRA = Scope(user_id="mira")
Line = dict[str, Any] | str


def claude(rnd: random.Random, size: int) -> list[Line]:
    """Prompts, answers that grow, tools, queued words, titles, summaries, side chains, damage."""
    lines: list[Line] = []
    calls: list[str] = []
    queued: list[str] = []
    last = "none"
    for n in range(size):
        about = {
            "uuid": f"u{n}",
            "sessionId": "s",
            "cwd": rnd.choice(["/w", "/x"]),
            "timestamp": f"2026-03-02T09:{n // 60:02}:{n % 60:02}Z",
        }

        def said(role: str, content: object, about: Any = about, **more: Any) -> Line:
            return {"type": role, **about, "message": {"role": role, "content": content, **more}}

        kind = rnd.randrange(11)
        if kind < 2:
            words = [
                "yes",
                f"word {n}",
                "<system-reminder>x</system-reminder> so",
                "<tick>1</tick>",
            ]
            lines.append(said("user", rnd.choice(words)))
        elif kind < 5:
            text = rnd.choice(["the", "the lynx", "the lynx ran", f"answer {n}"])
            parts = [{"type": "text", "text": text}]
            lines.append(said("assistant", parts, id=f"m{n // 3}", model="m"))
        elif kind == 5:
            calls.append(f"t{n}")
            use = {"type": "tool_use", "id": f"t{n}", "name": "Grep", "input": {"n": n}}
            lines.append(said("assistant", [use], id=f"m{n // 3}"))
        elif kind == 6 and calls:
            call = calls.pop(rnd.randrange(len(calls)))
            result = {"type": "tool_result", "tool_use_id": call, "content": f"result {n}"}
            lines.append(said("user", [result]))
        elif kind == 7:
            queued.append(f"queued {n}")
            lines.append({"type": "queue-operation", "content": queued[-1], **about})
        elif kind == 8 and queued:
            lines.append(said("user", queued.pop(0)))
        elif kind == 9:
            title = {"type": "custom-title", "customTitle": f"T{n}", "sessionId": "s"}
            summary = {"type": "summary", "summary": f"S{n}", "leafUuid": last}
            lines.append(rnd.choice([title, summary]))
        else:
            side = said("user", "look", {**about, "isSidechain": True, "agentId": "a1"})
            lines.append(rnd.choice([side, "broken {", {"type": "file-history-snapshot"}]))
        if isinstance(lines[-1] if lines else "", dict):
            last = lines[-1].get("uuid", last)  # type: ignore[union-attr]
    return lines


def codex(rnd: random.Random, size: int) -> list[Line]:
    """Texts and their echoes, tools, turns, titles."""
    told: list[tuple[str, dict[str, Any]]] = [("session_meta", {"id": "s", "cwd": "/w"})]
    calls: list[str] = []
    for n in range(size):
        text = rnd.choice(["yes", f"say {n}", "<environment_context>x</environment_context>"])
        kind = rnd.randrange(6)
        if kind < 2:
            role, event = rnd.choice([("user", "user_message"), ("assistant", "agent_message")])
            content = [{"type": "input_text", "text": text}]
            pair: list[tuple[str, dict[str, Any]]] = [
                ("event_msg", {"type": event, "message": text}),
                ("response_item", {"type": "message", "role": role, "content": content}),
            ]
            rnd.shuffle(pair)
            told += pair
        elif kind == 2:
            calls.append(f"k{n}")
            call = {
                "type": "function_call",
                "name": "shell",
                "arguments": "{}",
                "call_id": calls[-1],
            }
            told.append(("response_item", call))
        elif kind == 3 and calls:
            output = {"type": "function_call_output", "call_id": calls.pop(), "output": "done"}
            told.append(("response_item", output))
        elif kind == 4:
            told.append(("turn_context", {"cwd": rnd.choice(["/w", "/v"]), "model": "m"}))
        else:
            told.append(("event_msg", {"type": "thread_name_updated", "thread_name": f"N{n}"}))
    return [
        {"timestamp": f"2026-03-02T09:{n // 60:02}:{n % 60:02}Z", "type": kind, "payload": payload}
        for n, (kind, payload) in enumerate(told)
    ]


def everything(log: ConversationLog) -> list[object]:
    """What the log shows, without the numbers, which deleted items make differ."""
    told: list[object] = []
    for one in sorted(log.conversations(MIRA), key=lambda one: one.id):
        told.append((one.id, one.title, sorted(one.metadata.items())))
        for i in log.items(one.id, MIRA, limit=None):
            told.append((i.type, i.role, i.origin, i.text, i.data, i.metadata, i.response_id))
    return told


@pytest.mark.parametrize("make", [claude, codex])
@pytest.mark.parametrize("seed", range(12))
def test_parts_make_the_whole(
    tmp_path: Path, seed: int, make: Callable[[random.Random, int], list[Line]]
) -> None:
    rnd = random.Random(seed)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in make(rnd, 40)]
    data = "".join(f"{line}\n" for line in lines).encode()
    for folder in ("whole", "parts"):
        (tmp_path / folder).mkdir()
    with ConversationLog(tmp_path / "1.db") as whole, ConversationLog(tmp_path / "2.db") as parts:
        (tmp_path / "whole" / "s.jsonl").write_bytes(data)
        import_paths(tmp_path / "whole", whole, MIRA)
        for cut in (*sorted(rnd.sample(range(1, len(data)), 5)), len(data)):
            (tmp_path / "parts" / "s.jsonl").write_bytes(data[:cut])
            import_paths(tmp_path / "parts", parts, MIRA)
        assert everything(parts) == everything(whole)
        shutil.rmtree(tmp_path / "2.db.imports")
        assert import_paths(tmp_path / "parts", parts, MIRA).added == 0
        assert everything(parts) == everything(whole)
