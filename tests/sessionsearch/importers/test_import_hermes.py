"""Hermes: the database, older documents, and the same session in both."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.sessionsearch.importers import Progress, writer
from memsheaf.stack import Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA = Scope(user_id="mira")
ID = "hermes:20260501_well"


COLUMNS = (
    *("session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name"),
    *("timestamp", "reasoning", "observed", "active", "compacted"),
)


def database(path: Path, messages: Iterable[dict[str, Any]], *, wal: bool = False) -> Path:
    with closing(sqlite3.connect(path)) as made:
        if wal:
            made.execute("PRAGMA journal_mode = WAL")
        made.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, user_id TEXT, model TEXT, "
            "parent_session_id TEXT, started_at REAL, title TEXT, cwd TEXT, git_branch TEXT)"
        )
        made.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, "
            "role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, "
            "timestamp REAL, reasoning TEXT, observed INTEGER, active INTEGER DEFAULT 1, "
            "compacted INTEGER DEFAULT 0)"
        )
        made.execute(
            "INSERT INTO sessions VALUES ('20260501_well', 'telegram', 'u7', 'model-z', "
            "'20260430_before', 1777600000.0, 'The well', '/garden', 'main')"
        )
        for message in messages:
            row = {
                "session_id": "20260501_well",
                "active": 1,
                "compacted": 0,
                "timestamp": 1777600001.5,
                **message,
            }
            made.execute(
                "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, "
                "tool_name, timestamp, reasoning, observed, active, compacted) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [row.get(name) for name in COLUMNS],
            )
        made.commit()
    return path


def test_a_database_with_all_that_it_says(desk: Desk) -> None:
    calls = [{"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "well.md"}'}}]
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {}}]
    path = database(
        desk.folder / "state.db",
        [
            {"role": "user", "content": "Why is the well dry?"},
            {"role": "assistant", "reasoning": "The pump.", "tool_calls": json.dumps(calls)},
            {"role": "tool", "content": "dry", "tool_call_id": "c1", "tool_name": "read_file"},
            {"role": "assistant", "content": "It has not rained."},
            {"role": "user", "content": "\x01json:" + json.dumps(parts)},
            {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns"},
            {"role": "user", "content": "others talk", "observed": 1},
        ],
    )
    before = path.read_bytes()
    assert desk.run().files[0].format == "hermes"
    items = desk.items(ID)
    assert [(i.type, i.role, i.text) for i in items] == [
        ("message", "user", "Why is the well dry?"),
        ("reasoning", "assistant", "The pump."),
        ("tool_call", "assistant", "read_file\npath: well.md"),
        ("tool_result", "tool", "dry"),
        ("message", "assistant", "It has not rained."),
        ("message", "user", "What is this?\n[image]"),
        ("summary", "system", "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns"),
        ("event", "system", "others talk"),
    ]
    assert items[3].data == {"name": "read_file", "call_id": "c1"}
    assert items[0].created_at is not None
    assert items[0].created_at.timestamp() == 1777600001.5
    held = desk.log.conversation(ID, MIRA)
    assert held.title == "The well"
    assert held.metadata == {
        "format": "hermes",
        "source_id": "20260501_well",
        "project": "/garden",
        "branch": "main",
        "model": "model-z",
        "parent": "hermes:20260430_before",
        "platform": "telegram",
        "source_user": "u7",
    }
    assert path.read_bytes() == before
    assert os.listdir(desk.folder) == ["state.db"]


def test_compacted_rows_stay_and_rewound_ones_go(desk: Desk) -> None:
    database(
        desk.folder / "state.db",
        [
            {"role": "user", "content": "compacted away", "active": 0, "compacted": 1},
            {"role": "user", "content": "taken back", "active": 0},
            {"role": "user", "content": "here"},
        ],
    )
    summary = desk.run()
    assert [words for _, words in desk.said(ID)] == ["compacted away", "here"]
    assert summary.files[0].skipped == {"rewound message": 1}
    assert desk.run(branches="all").added == 1


def test_progress_within_a_database(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BATCH", 10)
    said = [{"role": "user", "content": f"word {n}"} for n in range(40)]
    path = database(desk.folder / "state.db", said)
    seen: list[Progress] = []
    summary = desk.run(progress=seen.append)
    shares = [round(progress.bytes / progress.total_bytes, 2) for progress in seen]
    assert shares == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert summary.bytes == path.stat().st_size


def test_a_database_that_is_being_written_is_read_up_to_its_last_commit(desk: Desk) -> None:
    path = database(desk.folder / "state.db", [{"role": "user", "content": "one"}], wal=True)
    with closing(sqlite3.connect(path)) as writer:
        statement = "INSERT INTO messages (session_id, role, content) VALUES (?, 'user', ?)"
        writer.execute(statement, ("20260501_well", "two"))
        writer.commit()
        writer.execute(statement, ("20260501_well", "not yet"))
        assert desk.run().added == 2
        writer.commit()
        assert desk.run().added == 1  # only the write-ahead log has grown
    assert [words for _, words in desk.said(ID)] == ["one", "two", "not yet"]


def test_the_same_session_as_a_document_and_in_the_database_is_one(desk: Desk) -> None:
    said = [
        {"role": "user", "content": "yes"},
        {"role": "assistant", "content": "Shall I go on?"},
        {"role": "user", "content": "yes"},
    ]
    database(desk.folder / "state.db", said)
    document = {
        "session_id": "20260501_well",
        "platform": "cli",
        "session_start": "2026-05-01T01:00:00Z",
        "messages": said,
    }
    desk.file("session.json", json.dumps(document, indent=1))
    summary = desk.run()
    assert {file.format for file in summary.files} == {"hermes"}
    assert (summary.added, summary.known) == (3, 3)


def test_items_of_a_document_begin_with_its_session(desk: Desk) -> None:
    document = {
        "messages": [{"role": "user", "content": "hello"}],
        "session_id": "s",
        "session_start": "2026-05-01T01:00:00Z",
    }
    desk.file("session.json", json.dumps(document))
    desk.run()
    item = desk.items("hermes:s")[0]
    assert item.created_at is not None
    assert item.created_at.isoformat() == "2026-05-01T01:00:00+00:00"


def test_lines_of_a_trace(desk: Desk) -> None:
    def scope(stage: str, category: str = "llm", **data: str) -> dict[str, Any]:
        return {
            "atof_version": "0.1",
            "category": category,
            "scope_category": stage,
            "uuid": "x",
            "timestamp": "2026-08-01T10:00:00Z",
            "metadata": {"session_id": "t", "platform": "hermes"},
            "data": data,
        }

    asked, told = scope("start", content="Prove it."), scope("end", assistant_message="Proved.")
    desk.file("t.jsonl", [scope("start", "agent"), asked, told])
    desk.run()
    assert desk.said("hermes:t") == [("user", "Prove it."), ("assistant", "Proved.")]


def test_other_databases_and_damaged_ones(desk: Desk) -> None:
    with closing(sqlite3.connect(desk.folder / "other.db")) as other:
        other.execute("CREATE TABLE messages (text)")
    damaged = database(
        desk.folder / "state.db",
        [{"role": "user", "content": f"{n} " + "x" * 3000} for n in range(40)],
    )
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 9000] = os.urandom(9000)
    damaged.write_bytes(data)
    summary = desk.run()
    assert summary.files[0].status == "unknown"
    assert summary.files[1].status in ("failed", "imported")
    assert summary.warnings or summary.added == 40


def test_a_row_above_the_limit_is_a_problem(desk: Desk) -> None:
    rows = [{"role": "user", "content": "x" * 3_000_000}, {"role": "user", "content": "short"}]
    database(desk.folder / "state.db", rows)
    summary = desk.run(max_record=1_000_000)
    assert summary.problem_count == 1
    assert desk.said(ID) == [("user", "short")]
