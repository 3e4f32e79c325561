"""Files that somebody made to do harm: archives, names, links, ids of others."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.sessionsearch import NewItem
from memsheaf.sessionsearch.importers import Problem
from memsheaf.stack import Scope

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA, NOAH = Scope(user_id="mira"), Scope(user_id="noah")
BEYOND = "a member of the archive would grow beyond all measure"


def user(uuid: str, words: object, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": uuid, "sessionId": "s", "message": message, **more}


def chat(name: str) -> str:
    content = {"content_type": "text", "parts": [f"tides of {name}"]}
    node = {"id": "n", "parent": None, "message": {"author": {"role": "user"}, "content": content}}
    return json.dumps(
        [{"id": name, "title": "T", "create_time": 1767583930, "mapping": {"n": node}}]
    )


def archive(members: dict[str, str | bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return held.getvalue()


def test_an_archive_that_grows_beyond_measure_is_refused_and_told(desk: Desk) -> None:
    desk.file("one.zip", archive({"conversations.json": chat("a")[:-1] + " " * (70 << 20) + "]"}))
    part = chat("b")[:-1] + " " * (30 << 20) + "]"
    desk.file("sum.zip", archive({f"conversations-{n}.json": part for n in range(4)}))
    one, total = desk.run().files
    assert (one.status, one.problems) == ("failed", (Problem(None, BEYOND),))
    assert total.added == 1
    assert set(total.problems) == {Problem(None, BEYOND)}


def test_an_archive_of_very_many_documents_is_refused_at_once(desk: Desk) -> None:
    desk.file("many.zip", archive({f"{n}.json": "x" for n in range(501)}))
    (report,) = desk.run().files
    told = Problem(None, "the archive has more than 500 documents; unpack it")
    assert (report.status, report.problems) == ("failed", (told,))


def test_a_truncated_archive_is_told(desk: Desk) -> None:
    desk.file("cut.zip", archive({"conversations.json": chat("a")})[:-30])
    (report,) = desk.run().files
    assert report.status == "failed"
    assert report.problems[0].reason.startswith("the archive cannot be read")


def test_archives_in_archives_and_names_that_lead_out_make_no_file(
    desk: Desk, tmp_path: Path
) -> None:
    inner = archive({"conversations.json": chat("deep")})
    desk.file("nested.zip", archive({"inner.zip": inner, "inner.json": inner}))
    names = ("../../evil/a.json", "/evil/conversations.json", "\x1b[31m\n.json", "B.JSON")
    desk.file("out.zip", archive({name: chat(str(n)) for n, name in enumerate(names)}))
    before = {path for path in tmp_path.rglob("*") if ".imports" not in str(path)}
    assert desk.run().added == 4
    after = {path for path in tmp_path.rglob("*") if ".imports" not in str(path)}
    assert {path for path in after - before if not path.name.startswith("log.db")} == set()
    assert desk.conversations() == {f"chatgpt:{n}" for n in range(4)}


def test_pipes_devices_and_loops_are_passed_over(desk: Desk) -> None:
    os.mkfifo(desk.folder / "fifo")
    (desk.folder / "zero").symlink_to("/dev/zero")
    (desk.folder / "loop").symlink_to(".")
    (desk.folder / "a").symlink_to("b")
    (desk.folder / "b").symlink_to("a")
    desk.file("good.jsonl", [user("1", "kept")])
    summary = desk.run()
    assert summary.added == 1
    failed = [Path(file.path).name for file in summary.files if file.status == "failed"]
    assert failed == ["a", "b"]


def test_names_of_files_that_are_no_text(desk: Desk) -> None:
    folder = os.fsencode(desk.folder) + b"/\xff\x1b[31m"
    os.mkdir(folder)
    Path(os.fsdecode(folder), "n.jsonl").write_text(json.dumps(user("1", "kept")) + "\nbad\n")
    summary = desk.run()
    assert (summary.added, summary.problem_count) == (1, 1)
    json.dumps(summary.to_dict()).encode()
    assert desk.run().count("unchanged") == 1


def test_padding_or_a_line_too_deep_at_the_start_hides_no_session(desk: Desk) -> None:
    desk.file("nul.jsonl", "\x00" * 4096 + json.dumps(user("1", "after NUL")) + "\n")
    deep = '{"type": "user", "message": ' + "[" * 70_000 + "]" * 70_000 + "}\n"
    desk.file("z.jsonl", deep + json.dumps(user("2", "after depth")) + "\n")
    summary = desk.run()
    assert (summary.added, summary.problem_count) == (2, 1)


@pytest.mark.parametrize("first", [MIRA, NOAH])
def test_a_session_id_of_another_owner_is_left_alone_and_told(desk: Desk, first: Scope) -> None:
    """Whoever had the id first keeps it; nothing is added, and the import says so."""
    second = NOAH if first is MIRA else MIRA
    desk.log.append("claude-code:s", NewItem("message", "mine", role="user"), first)
    desk.file("hostile.jsonl", [user("1", "planted"), user("2", "planted too")])
    summary = desk.run(scope=second)
    assert (summary.added, summary.known, summary.refused) == (0, 0, 2)
    assert desk.log.conversations(second) == []
    assert [item.text for item in desk.log.items("claude-code:s", first)] == ["mine"]
    assert desk.log.conversation("claude-code:s", first).title == ""


def test_the_same_id_within_and_across_files_is_told_once(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "first words"), user("1", "first words"), user("1", "other")])
    desk.file("b.jsonl", [user("1", "first words"), user("2", "more")])
    summary = desk.run()
    assert (summary.added, summary.known) == (2, 3)
    assert [text for _, text in desk.said("claude-code:s")] == ["first words", "more"]
