"""Hostile files: bad lines, odd encodings, times that cannot be, depth, size, random damage."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import (
    ImportOptions,
    Problem,
    Source,
    import_paths,
    load_importers,
)
from memsheaf.stack import Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA = Scope(user_id="mira")
ID = "claude-code:s"


def user(uuid: str, words: object, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": uuid, "sessionId": "s", "message": message, **more}


def words(desk: Desk) -> list[str]:
    return [text for _, text in desk.said(ID)]


def test_bad_lines_are_counted_with_their_numbers_and_the_rest_is_read(desk: Desk) -> None:
    desk.file(
        "a.jsonl",
        [
            user("u1", "the well is dry"),
            '{"type":"attachment","attachment":{"type":"queued_com',
            "",
            "null",
            "[1,2]",
            '"text"',
            user("u2", "the pump is back"),
        ],
    )
    summary = desk.run()
    assert words(desk) == ["the well is dry", "the pump is back"]
    assert summary.files[0].problems == (
        Problem(2, "not JSON"),
        Problem(4, "not a JSON object"),
        Problem(5, "not a JSON object"),
        Problem(6, "not a JSON object"),
    )
    assert summary.warnings


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_only_a_newline_ends_a_line_and_a_mark_costs_nothing(
    desk: Desk, end: str, mark: str
) -> None:
    said = ["error above\u2028lanternfish below", "nel\u0085inside, vt is escaped \u000b"]
    lines = [json.dumps(user(str(n), text), ensure_ascii=False) for n, text in enumerate(said)]
    desk.file("a.jsonl", mark + "".join(line + end for line in lines))
    summary = desk.run()
    assert (summary.added, summary.problem_count) == (2, 0)
    assert words(desk) == said


def test_padding_before_a_line_costs_nothing(desk: Desk) -> None:
    lines = [json.dumps(user(str(n), f"word {n}")) for n in range(3)]
    desk.file("a.jsonl", f"{lines[0]}\n\x00\x00\x00{lines[1]}\n\ufeff{lines[2]}\n")
    assert desk.run().problem_count == 0
    assert words(desk) == ["word 0", "word 1", "word 2"]


def test_utf_16_is_refused_by_name(desk: Desk) -> None:
    path = desk.file("a.jsonl", json.dumps(user("1", "one")).encode("utf-16"))
    report = desk.run().files[0]
    assert (report.path, report.status) == (str(path), "failed")
    assert report.problems == (Problem(None, "it is UTF-16; save it as UTF-8"),)


def test_bytes_that_are_no_text_cost_at_most_their_line(desk: Desk) -> None:
    good = json.dumps(user("1", "gear ⚙ and a ”quote”, naïve café"), ensure_ascii=False).encode()
    inside = json.dumps(user("2", "before XX after")).encode().replace(b"XX", b"\xff\xfe")
    desk.file("a.jsonl", b"\n".join([good, b"\xff\xfe", inside, b"\x00\x00\x00", b""]))
    summary = desk.run()
    assert words(desk) == [
        "gear ⚙ and a ”quote”, naïve café",
        "before \ufffd\ufffd after",
    ]
    assert [problem.line for problem in summary.files[0].problems] == [2, 4]


def test_nul_and_lone_surrogates_are_replaced(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "a\x00b \ud800 c", cwd="/w/\udcff"), user("\ud834", "two")])
    assert desk.run().problem_count == 0
    assert words(desk) == ["a\ufffdb \ufffd c", "two"]


def test_times_in_every_shape_and_times_that_cannot_be(desk: Desk) -> None:
    good = [1767583930, 1767583930.285, 1767583930285, "1767583930"]
    good += ["2026-01-05T03:32:10.285Z", 1767583930285031, 1767583930285031000]
    bad: list[object] = [
        None,
        "yesterday",
        0,
        -1,
        -(10**30),
        10**40,
        "99999-01-01",
        True,
        [],
        {"a": 1},
        1e300,
    ]
    bad.append((datetime.now(UTC) + timedelta(days=400)).isoformat())
    desk.file(
        "a.jsonl",
        [user(f"g{n}", "w", timestamp=time) for n, time in enumerate(good)]
        + [user(f"b{n}", "w", timestamp=time) for n, time in enumerate(bad)],
    )
    summary = desk.run()
    assert (summary.added, summary.problem_count) == (len(good) + len(bad), 0)
    items = desk.items(ID)
    for item in items:
        assert item.created_at is not None
        assert item.created_at.date().isoformat() == "2026-01-05"
    assert [item.metadata.get("time") for item in items] == [None] * len(good) + (
        ["assumed"] * len(bad)
    )


def test_without_any_time_the_file_tells_one(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one")])
    desk.run()
    found = desk.items(ID)[0].created_at
    assert found is not None
    assert abs(found.timestamp() - path.stat().st_mtime) < 1


ODD: list[object] = [
    {},
    {"type": None},
    {"type": 7, "message": 3},
    {"type": "user"},
    {"type": "user", "message": None},
    {"type": "user", "message": {"content": None}},
    {"type": "user", "message": {"content": {"type": "text"}}},
    {"type": "user", "message": {"content": [None, 7, [], {"type": "text", "text": 9}]}},
    {"type": "assistant", "message": {"content": [{"type": ["x"]}, {"type": "tool_use"}, {}]}},
    {"type": "assistant", "message": {"id": [], "model": {}, "content": [{"type": "thinking"}]}},
    {"type": "assistant", "uuid": {}, "parentUuid": [], "message": {"content": "odd ids"}},
    {"type": "system", "subtype": [], "content": {}},
    {"type": "summary", "summary": 1, "leafUuid": None},
    {"type": "attachment", "attachment": "x"},
    {"type": "attachment", "attachment": {"type": "file", "content": {"file": 1}}},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": None}},
    {"type": "queue-operation", "operation": {}, "content": []},
    {"type": "custom-title", "customTitle": 9},
    {"type": "response_item", "payload": None},
    {"type": "response_item", "payload": {}},
    {"type": "response_item", "payload": {"type": "message", "role": [], "content": {}}},
    {"type": "response_item", "payload": {"type": "function_call", "arguments": 1e308}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": {"x": None}}},
    {"type": "response_item", "payload": {"type": "reasoning", "summary": {}, "content": 1}},
    {"type": "event_msg", "payload": {"type": "user_message"}},
    {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "UserMessage"}}},
    {"type": "session_meta", "payload": {"id": 7, "git": [], "source": {"subagent": 3}}},
    {"type": "turn_context", "payload": {"cwd": 1}},
    {"type": "gemini", "thoughts": 1, "toolCalls": [1, {"result": {}, "args": []}]},
    {"$set": 1},
    {"$set": {"messages": {"id": 1}}},
    {"$rewindTo": ["x"]},
    {"sessionId": [], "projectHash": {}},
    {"session_id": 1, "messages": [1, {"role": "user", "content": 5}]},
    {"atof_version": 1, "category": "llm", "scope_category": "start", "data": {"content": "x"}},
]
FORMATS = ("claude-code", "codex", "gemini-cli", "hermes")


@pytest.mark.parametrize("format", FORMATS)
def test_odd_values_raise_nothing_in_any_format(desk: Desk, format: str) -> None:
    for number, each in enumerate(ODD):
        desk.file(f"{number}.jsonl", [each, {"sessionId": "s", "projectHash": "p"}, each])
        desk.file(f"{number}.json", json.dumps(each))
    for report in desk.run(format=format).files:
        assert report.status == "imported", report
    for item in desk.everything():
        assert "None" not in item.text


@pytest.mark.parametrize("format", FORMATS)
def test_depth_and_huge_numbers_are_problems_of_their_line(desk: Desk, format: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    nested = '{"a":' * 900 + "1" + "}" * 900
    bad = [
        f'{{"type": "user", "message": {{"content": {deep}}}}}',
        f'{{"type": "user", "uuid": "n", "message": {{"content": [{nested}]}}}}',
        '{"type": "user", "x": ' + "9" * 10_000 + "}",
        '{"type": "user", "uuid": "f", "message": {"content": [1e999, NaN, -Infinity]}}',
    ]
    desk.file("a.jsonl", [*bad, user("1", "after it")])
    report = desk.run(format=format).files[0]
    assert report.status == "imported"
    if format == "claude-code":
        assert words(desk) == ["after it"]
        assert {1, 3} <= {problem.line for problem in report.problems}


def test_a_number_that_is_no_json_costs_only_its_item(desk: Desk) -> None:
    call = {"type": "tool_use", "name": "x", "id": "t", "input": {"n": 1}}
    line = json.dumps({**user("1", [call]), "type": "assistant"}).replace('"n": 1', '"n": 1e999')
    desk.file("a.jsonl", [line, user("2", "after it")])
    desk.run()
    assert words(desk) == ["after it"]


def test_names_that_cannot_be_ids_become_hashes(desk: Desk) -> None:
    records = [
        {**user(str(n), "w"), "sessionId": name}
        for n, name in enumerate(["a\nb", "x" * 900, "   ", "ok", "\ud800", "../../etc"])
    ]
    desk.file("a.jsonl", records)
    assert desk.run().added == 6
    names = desk.conversations()
    assert {"claude-code:ok", "claude-code:../../etc"} <= names
    assert all(name.isprintable() and len(name) < 500 for name in names)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_damage_anywhere_raises_nothing(
    data: st.DataObject, format: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    good = "\n".join(json.dumps(each) for each in [*ODD, user("1", "x")]).encode()
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.mktemp("damaged") / "a.jsonl"
    path.write_bytes(bytes(damaged))
    importer = load_importers().named(format)
    source = Source(path)
    assert 0 <= importer.detect(source) <= 1
    list(importer.read(source, ImportOptions()))


def test_a_very_long_message_is_kept_whole_and_a_longer_line_is_told(desk: Desk) -> None:
    marzipan = "word " * 800_000 + "marzipan"
    image = json.dumps(user("img", [{"type": "tool_result", "content": "A" * 9_000_000}]))
    records: list[object] = [user(str(n), f"short {n}") for n in range(10)]
    records.insert(4, user("long", marzipan))
    records.insert(7, image)
    desk.file("a.jsonl", records)
    summary = desk.run(max_record=8_000_000)
    assert summary.files[0].problems == (Problem(8, "longer than 8000000 bytes"),)
    said = words(desk)
    assert said[4] == marzipan
    assert [text for text in said if text.startswith("short")] == [f"short {n}" for n in range(10)]


def test_a_first_line_longer_than_the_head_is_recognised(desk: Desk) -> None:
    payload = {"id": "s", "base_instructions": {"text": "x" * 300_000}}
    desk.file("a.jsonl", [{"type": "session_meta", "payload": payload}])
    desk.file("b.jsonl", [user("1", "y" * 300_000)])
    assert [file.format for file in desk.run().files] == ["codex", "claude-code"]


_MEASURED = """
import resource, sys
from pathlib import Path
from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import import_paths
from memsheaf.stack import Scope
folder = Path(sys.argv[1])
with ConversationLog(folder / "log.db") as log:
    summary = import_paths(folder / "a.jsonl", log, Scope(user_id="mira"))
status = Path("/proc/self/status")
if status.exists():  # ru_maxrss would count what the parent had when it forked
    peak = int(status.read_text().split("VmHWM:")[1].split()[0]) // 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak //= 1_000_000 if sys.platform == "darwin" else 1024
print(summary.added, summary.problem_count, peak)
"""


def test_a_big_file_and_a_huge_line_take_little_memory(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("w", encoding="utf-8") as file:
        for number in range(30):
            file.write(json.dumps(user(f"a{number}", f"{number} " + "word " * 200_000)) + "\n")
        file.write('{"type": "user", "message": {"content": "')
        for _ in range(200):
            file.write("A" * 1_000_000)
        file.write('"}}\n')
        file.write(json.dumps(user("last", "after it")) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    added, problems, megabytes = map(int, done.stdout.split())
    assert (added, problems) == (31, 1)
    assert megabytes < 300


def test_the_locale_plays_no_part(tmp_path: Path) -> None:
    record = json.dumps(user("1", "gear ⚙ naïve café"), ensure_ascii=False)
    (tmp_path / "a.jsonl").write_bytes(record.encode() + b"\r\n")
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", _MEASURED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PATH": "", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    with ConversationLog(tmp_path / "log.db") as log:
        assert [i.text for i in log.items(ID, MIRA)] == ["gear ⚙ naïve café"]
        assert import_paths(tmp_path / "a.jsonl", log, MIRA).added == 0
