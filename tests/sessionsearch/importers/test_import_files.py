"""Which files are read, as what, and what is told of them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memsheaf.sessionsearch.importers import (
    Problem,
    Progress,
    writer,
)
from memsheaf.stack import RegistrationError, Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA = Scope(user_id="mira")


def test_folders_are_walked_once_whatever_links_say(desk: Desk) -> None:
    desk.file("deep/er/a.jsonl", [desk.user("1", "one")])
    desk.file("node_modules/b.jsonl", [desk.user("2", "two")])
    (desk.folder / "loop").symlink_to(desk.folder, target_is_directory=True)
    (desk.folder / "deep" / "same.jsonl").symlink_to(desk.folder / "deep/er/a.jsonl")
    (desk.folder / "gone.jsonl").symlink_to(desk.folder / "nowhere")
    summary = desk.run(desk.folder, desk.folder / "deep")
    assert summary.added == 1
    assert [Path(file.path).name for file in summary.files] == ["a.jsonl", "gone.jsonl"]
    assert summary.files[1].status == "failed"


def test_what_cannot_be_read_is_told_and_the_rest_is_read(desk: Desk) -> None:
    desk.file("a.jsonl", [desk.user("1", "one")])
    os.mkfifo(desk.folder / "pipe.jsonl")
    missing = desk.folder / "no-such-folder"
    summary = desk.run(desk.folder, missing)
    assert summary.added == 1
    assert [(f.path, f.status) for f in summary.files[1:]] == [(str(missing), "failed")]
    assert summary.warnings
    pipe = desk.run(desk.folder / "pipe.jsonl")
    assert pipe.files[0].problems == (Problem(None, "neither a file nor a folder"),)


def test_a_draft_that_goes_while_the_folder_is_read_is_no_failure(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.file("a.jsonl", [desk.user("1", "one")])
    (desk.folder / "dangling").symlink_to("nowhere")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listed(path), ".a.jsonl.tmp"])
    summary = desk.run()
    assert summary.added == 1
    assert [Path(f.path).name for f in summary.files if f.status == "failed"] == ["dangling"]
    assert desk.run(desk.folder / "gone").files[0].status == "failed"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_rights_is_told(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    path.chmod(0)
    assert desk.run().files[0].problems == (Problem(None, "Permission denied"),)


def test_unknown_and_empty_files_are_counted_and_cost_nothing(desk: Desk) -> None:
    desk.file("notes.txt", "a shopping list")
    desk.file("empty.jsonl", "")
    desk.file("picture.png", bytes(range(256)) * 40)
    desk.file("package.json", '{"name": "x", "type": "module"}')
    summary = desk.run()
    assert summary.count("unknown") == 4
    assert not summary.warnings


def test_the_format_comes_from_the_content_whatever_the_name(desk: Desk) -> None:
    desk.file("notes.txt", [desk.user("1", "one")])
    assert desk.run().files[0].format == "claude-code"


@pytest.mark.parametrize("fence", ["```json", "~~~", "    "])
@pytest.mark.parametrize("before", ["# How sessions look\n\nLines are:\n\n", ""])
def test_a_page_with_lines_of_a_transcript_in_it_is_none(
    desk: Desk, fence: str, before: str
) -> None:
    meta = {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}
    shown = [json.dumps(each) for each in (desk.user("1", "sample"), meta)]
    if not fence.strip():
        shown, fence = [f"    {each}" for each in shown], before and "Like this:"
        before = before or "As follows:\n\n"
    desk.file("page.md", before + "\n".join([fence, *shown, fence.strip("json"), ""]))
    assert [file.status for file in desk.run().files] == ["unknown"]


def test_a_named_format_is_used_as_it_is(desk: Desk) -> None:
    desk.file("a.jsonl", [desk.user("1", "one")])
    assert desk.run(format="codex").added == 0
    assert desk.run(format="claude-code").added == 1
    with pytest.raises(RegistrationError, match=r"known: .*codex"):
        desk.run(format="codeks")


def test_many_conversations_in_one_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BATCH", 7)
    monkeypatch.setattr(writer, "_REMEMBERED", 5)
    said = [desk.user(f"{n}", f"word {n}", f"s{n % 30}") for n in range(90)]
    titles = [{"type": "ai-title", "aiTitle": f"T{n}", "sessionId": f"s{n}"} for n in range(30)]
    desk.file("a.jsonl", [*titles[:15], *said, *titles[15:]])
    assert desk.run().added == 90
    found = {one.id: one for one in desk.log.conversations(MIRA)}
    assert {one.title for one in found.values()} == {f"T{n}" for n in range(30)}
    assert desk.words("claude-code:s3") == ["word 3", "word 33", "word 63"]


def test_progress_ends_at_the_end(desk: Desk) -> None:
    for name in ("a", "b"):
        desk.file(f"{name}.jsonl", [desk.user(name, "one")])
    seen: list[Progress] = []
    desk.run(progress=seen.append)
    last = seen[-1]
    assert (last.bytes, last.files, last.added) == (last.total_bytes, last.total_files, 2)
    assert [p.bytes for p in seen] == sorted(p.bytes for p in seen)


def test_the_summary_as_json(desk: Desk) -> None:
    desk.file("a.jsonl", [desk.user("1", "one"), "broken"])
    desk.file("b.txt", "nothing")
    told = json.loads(json.dumps(desk.run().to_dict()))
    assert (told["added"], told["unknown"], told["problems"]) == (1, 1, 1)
    assert told["files"][0]["problems"] == [{"line": 2, "reason": "not JSON"}]


def test_the_state_is_private_and_holds_no_path_and_no_text(desk: Desk, log_path: Path) -> None:
    desk.file("very-private-name.jsonl", [desk.user("1", "very private words")])
    desk.run()
    folder = Path(f"{log_path}.imports")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert b"private" not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (folder / "cache.db").chmod(0o644)  # as earlier versions left it
    desk.run()
    assert stat.S_IMODE((folder / "cache.db").stat().st_mode) == 0o600


def test_problems_hold_no_text_of_the_file(desk: Desk) -> None:
    broken = '{"type": "user", "message": {"content": "my secret'
    desk.file("a.jsonl", [desk.user("1", "one"), broken, '"my secret"', "my secret"])
    summary = desk.run()
    assert summary.problem_count == 3
    assert "secret" not in json.dumps(summary.to_dict())
