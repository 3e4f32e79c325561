"""An export, imported: the same conversations, once, whoever and wherever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from memsheaf.interfaces.commands.sessions_keep import COMMANDS
from memsheaf.sessionsearch import Conversation, ConversationLog, Item, NewItem, open_sessions
from memsheaf.sessionsearch.importers import ImportOptions, import_paths
from memsheaf.stack import Scope

MIRA, OTTO = Scope(user_id="mira"), Scope(user_id="otto")


def filled(log: ConversationLog) -> None:
    log.append(
        "claude-code:s1",
        [
            NewItem(
                "message",
                "Where is the cello?\u2028\x1b[31m \U0001f41a",
                role="user",
                origin="user",  # type: ignore[arg-type]
                created_at="2026-02-03T21:10:00.123456Z",
                metadata={"id": "u1", "parent": None, "branch": "main"},
                key="u1:0",
            ),
            NewItem("tool_call", "find\nwhat: cello", role="assistant", created_at=1770153001,
                    data={"name": "find", "call_id": "t1"}, response_id="m1", key="a1:0"),
            NewItem("tool_result", "", role="tool", origin="tool",  # type: ignore[arg-type]
                    created_at=1770153002, status="failed", key="u2:0"),
            NewItem("message", "yes", role="user", created_at=1770153003, key="u3:0"),
            NewItem("message", "yes", role="user", created_at=1770153003, key="u4:0"),
        ],
        MIRA,
        title="The cello",
        metadata={"format": "claude-code", "project": "/home/mira/музыка", "parent": "p"},
    )  # fmt: skip
    log.append("plain", NewItem("message", "No title", created_at=1770153009), MIRA)
    times = ("0001-01-01T00:00:00Z", "1969-07-20T20:17:40Z", "9999-12-31T23:59:59.999999Z")
    odd = [NewItem("message", "\u2028\r\n \ufeff", created_at=time) for time in times]
    log.append("odd times", odd, MIRA, metadata={"nothing": None, "empty": "", "deep": {"a": [1]}})


def exported(folder: Path, monkeypatch: pytest.MonkeyPatch, user: str = "mira") -> Path:
    monkeypatch.setenv("MEMSHEAF_SESSIONS", str(folder))
    file = folder.parent / f"{folder.name}.jsonl"
    told = CliRunner().invoke(
        COMMANDS["export"], ["-o", str(file), "--force", "--user", user], standalone_mode=False
    )
    assert told.exception is None, told.output
    return file


def everything(log: ConversationLog, scope: Scope) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for one in log.conversations(scope, limit=None, order="asc"):
        found.append(facts(one))
        found += [facts(item) for item in log.items(one.id, scope, limit=None)]
    return found


def facts(value: Conversation | Item) -> tuple[object, ...]:
    left_out = {"recorded_at", "scope"}
    names = [name for name in type(value).__dataclass_fields__ if name not in left_out]
    return tuple(getattr(value, name) for name in names)


def test_an_export_comes_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_sessions(tmp_path / "one") as one, open_sessions(tmp_path / "two") as two:
        filled(one.log)
        file = exported(tmp_path / "one", monkeypatch)
        (report,) = import_paths(file, two.log, OTTO).files
        assert (report.format, report.added, report.problem_count) == ("memsheaf", 9, 0)
        assert everything(two.log, OTTO) == everything(one.log, MIRA)
        assert two.log.conversations(MIRA) == []  # whose it was plays no part
        again = import_paths(exported(tmp_path / "two", monkeypatch, "otto"), two.log, OTTO)
        assert (again.added, again.known, again.refused) == (0, 9, 0)


def test_an_export_of_the_same_log_adds_nothing_and_brings_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_sessions(tmp_path / "one") as one:
        filled(one.log)
        file = exported(tmp_path / "one", monkeypatch)
        before = everything(one.log, MIRA)
        same = import_paths(file, one.log, MIRA)
        assert (same.added, same.known, same.refused) == (0, 9, 0)
        assert everything(one.log, MIRA) == before
        one.log.erase("claude-code:s1", MIRA, 1)
        one.log.erase("plain", MIRA)
        file.write_text(file.read_text() + "\n")
        after = import_paths(file, one.log, MIRA)
        assert (after.added, after.known, after.refused) == (0, 8, 1)
        assert [item.seq for item in one.log.items("claude-code:s1", MIRA)] == [0, 2, 3, 4]


def test_a_later_export_adds_what_is_new_and_gaps_move_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_sessions(tmp_path / "one") as one, open_sessions(tmp_path / "two") as two:
        filled(one.log)
        one.log.erase("claude-code:s1", MIRA, 1)
        import_paths(exported(tmp_path / "one", monkeypatch), two.log, MIRA)
        words = [item.text for item in one.log.items("claude-code:s1", MIRA)]
        assert [item.text for item in two.log.items("claude-code:s1", MIRA)] == words
        one.log.append("claude-code:s1", NewItem("message", "later", role="user"), MIRA)
        second = import_paths(exported(tmp_path / "one", monkeypatch), two.log, MIRA)
        assert (second.added, second.known, second.refused) == (1, 8, 0)
        found = [item.text for item in two.log.items("claude-code:s1", MIRA)]
        assert found == [*words, "later"]


def test_lines_that_are_no_export_are_problems(tmp_path: Path) -> None:
    about = {"id": "c", "title": 7, "items": 1, "scope": {"user_id": "mira"}, "metadata": ["x"]}
    item = {"conversation": "c", "seq": 0, "type": "message", "text": "kept", "origin": "user"}
    wrong: list[object] = [
        {"item": {**item, "seq": -1}},
        {"item": {**item, "seq": True}},
        {"item": {**item, "seq": 1, "type": ""}},
        {"item": {**item, "seq": 2, "origin": "root"}},
        {"item": {**item, "seq": 3, "text": ["x"]}},
        {"item": {**item, "seq": 4, "conversation": "a\nb"}},
        {"item": {**item, "seq": 5, "conversation": "y" * 600}},
        {"item": {**item, "seq": 6, "key": 7}},
        {"item": {**item, "seq": 7, "key": "u1:0"}},
        {"item": {**item, "seq": 8, "key": f"key of another log: {'0' * 31}"}},
        {"item": {**item, "seq": 9, "key": f"key of another log: {'0' * 31}g"}},
        {"item": {**item, "seq": 10, "key": f"key of another log: {'0' * 32}\n"}},
        {"other": 1},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f"{json.dumps(x)}\n" for x in [{"conversation": about}, *wrong,
                                                          {"item": item}]))  # fmt: skip
    with ConversationLog(tmp_path / "log.db") as log:
        (report,) = import_paths(file, log, OTTO).files
        assert [problem.line for problem in report.problems] == list(range(2, 15))
        assert [i.text for i in log.items("c", OTTO)] == ["kept"]
        assert log.conversation("c", OTTO).scope == OTTO


def test_an_export_into_anothers_conversation_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_sessions(tmp_path / "one") as one:
        filled(one.log)
        file = exported(tmp_path / "one", monkeypatch)
        before = everything(one.log, MIRA)
        summary = import_paths(file, one.log, OTTO)
        assert (summary.added, summary.known, summary.refused) == (0, 0, 9)
        assert everything(one.log, MIRA) == before
        assert one.log.conversations(OTTO) == []


def thought(folder: Path) -> Path:
    """A transcript with a secret, behind a thought that an import may leave out."""
    parts = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "It is in the hall."},
    ]
    path = folder / "transcript.jsonl"
    lines = [
        {"type": "user", "uuid": "u1", "message": {"content": "Where is the cello?"}},
        {"type": "assistant", "uuid": "a1", "message": {"id": "m1", "content": parts}},
        {"type": "user", "uuid": "u2", "message": {"content": "Keep it secret"}},
    ]
    path.write_text("".join(json.dumps({**line, "sessionId": "s"}) + "\n" for line in lines))
    return path


def test_an_export_and_its_transcript_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = thought(tmp_path)
    with open_sessions(tmp_path / "one") as one, open_sessions(tmp_path / "two") as two:
        assert import_paths(transcript, one.log, MIRA).added == 4
        import_paths(exported(tmp_path / "one", monkeypatch), two.log, MIRA)
        after = import_paths(transcript, two.log, MIRA)
        assert (after.added, after.known) == (0, 4)
        assert everything(two.log, MIRA) == everything(one.log, MIRA)


def test_what_was_forgotten_here_does_not_come_back_with_an_export_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = thought(tmp_path)
    with open_sessions(tmp_path / "one") as one, open_sessions(tmp_path / "two") as two:
        import_paths(transcript, one.log, MIRA)
        few = ImportOptions(include_thinking=False)
        assert import_paths(transcript, two.log, MIRA, options=few).added == 3
        two.log.erase("claude-code:s", MIRA, 2)
        import_paths(exported(tmp_path / "one", monkeypatch), two.log, MIRA)
        said = [item.text for item in two.log.items("claude-code:s", MIRA)]
        assert said == ["Where is the cello?", "It is in the hall.", "Hm."]


def test_items_without_keys_come_back_from_another_log_once_and_stay_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_sessions(tmp_path / "one") as one, open_sessions(tmp_path / "two") as two:
        said = [NewItem("message", text, role="user", created_at=9) for text in ("a", "b", "c")]
        one.log.append("own", said, MIRA)
        import_paths(exported(tmp_path / "one", monkeypatch), two.log, MIRA)
        two.log.append("own", NewItem("message", "d", role="user", key="d"), MIRA)
        one.log.erase("own", MIRA, 1)
        back = exported(tmp_path / "two", monkeypatch)
        after = import_paths(back, one.log, MIRA)
        assert (after.added, after.known, after.refused) == (1, 2, 1)
        assert [item.text for item in one.log.items("own", MIRA)] == ["a", "c", "d"]


def test_a_key_that_an_export_claims_touches_no_other_conversation_or_owner(tmp_path: Path) -> None:
    with ConversationLog(tmp_path / "log.db") as log:
        for owner, name in ((MIRA, "a"), (MIRA, "b"), (OTTO, "c")):
            log.append(name, NewItem("message", f"of {name}", role="user", key="k"), owner)
        claimed = log.keys("a", MIRA)[0]
        assert (log.keys("c", MIRA), log.keys("a", MIRA, after=0)) == ({}, {})
        about = {"items": 1, "scope": {}}
        item = {"seq": 0, "type": "message", "role": "user", "text": "forged", "key": claimed}
        lines = [
            line
            for name in ("a", "c", "d")
            for line in (
                {"conversation": {**about, "id": name}},
                {"item": {**item, "conversation": name}},
            )
        ]
        file = tmp_path / "a.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        told = import_paths(file, log, MIRA)
        assert (told.added, told.known, told.refused) == (1, 1, 1)  # as a plain key `k` would
        assert [item.text for item in log.items("a", MIRA)] == ["of a"]
        assert [item.text for item in log.items("c", OTTO)] == ["of c"]
        assert log.append("d", NewItem("message", "x", key="k"), MIRA) == ()
