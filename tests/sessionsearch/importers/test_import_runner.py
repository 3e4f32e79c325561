"""Importing: once, again, as files grow, are cut, are written anew, and are forgotten."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.sessionsearch import ConversationLog, NewItem
from memsheaf.sessionsearch.importers import (
    Entry,
    Event,
    Header,
    Importers,
    ImportOptions,
    Problem,
    Progress,
    Source,
    discover,
    follow,
    import_paths,
    load_importers,
    runner,
    writer,
)
from memsheaf.stack import RegistrationError, Scope, ScopeError

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA, NOAH = Scope(user_id="mira"), Scope(user_id="noah")
ID = "claude-code:s"


def user(uuid: str, words: str, session: str = "s") -> str:
    message = {"role": "user", "content": words}
    return json.dumps({"type": "user", "uuid": uuid, "sessionId": session, "message": message})


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)


def words(desk: Desk, conversation: str = ID) -> list[str]:
    return [text for _, text in desk.said(conversation)]


def test_importing_twice_changes_nothing_and_reads_nothing(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "one"), user("2", "two")])
    first = desk.run()
    before = desk.everything()
    second = desk.run()
    assert (first.added, second.added) == (2, 0)
    assert [file.status for file in second.files] == ["unchanged"]
    assert (second.bytes, desk.everything()) == (0, before)


def test_a_lost_state_costs_time_and_changes_nothing(desk: Desk, log_path: Path) -> None:
    desk.file("a.jsonl", [user("1", "one"), user("2", "two")])
    desk.run()
    shutil.rmtree(f"{log_path}.imports")
    again = desk.run()
    assert (again.added, again.known) == (0, 2)


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b""])
def test_a_damaged_state_is_made_anew(desk: Desk, log_path: Path, damage: bytes) -> None:
    path = desk.file("a.jsonl", [user("1", "one")])
    desk.run()
    for file in Path(f"{log_path}.imports").iterdir():
        file.write_bytes(damage)
    assert (desk.run().added, desk.run().count("unchanged")) == (0, 1)
    append(path, user("2", "two") + "\n")
    assert desk.run().added == 1


def test_a_lost_log_is_filled_again(desk: Desk, tmp_path: Path) -> None:
    desk.file("a.jsonl", [user("1", "one")])
    desk.run()
    with ConversationLog(tmp_path / "new.db") as fresh:
        state = desk.log.path.with_name(f"{desk.log.path.name}.imports")
        assert import_paths(desk.folder, fresh, MIRA, state=state).added == 1


def test_a_tail_without_words_does_not_hide_that_the_log_was_lost(
    desk: Desk, tmp_path: Path
) -> None:
    path = desk.file("a.jsonl", [user("1", "one")])
    desk.run()
    append(path, '{"type": "progress", "sessionId": "s"}\n')
    assert desk.run().files[0].skipped == {"progress": 1}
    with ConversationLog(tmp_path / "new.db") as fresh:
        state = desk.log.path.with_name(f"{desk.log.path.name}.imports")
        assert import_paths(desk.folder, fresh, MIRA, state=state).added == 1


def test_a_grown_file_reads_only_its_tail(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one"), user("2", "two")])
    desk.run()
    tail = user("3", "three") + "\n"
    append(path, tail)
    grown = desk.run()
    assert (grown.added, grown.known, grown.bytes) == (1, 0, len(tail))
    assert words(desk) == ["one", "two", "three"]


def test_half_a_last_line_waits_for_the_rest(desk: Desk) -> None:
    half, rest = user("2", "two")[:40], user("2", "two")[40:]
    path = desk.file("a.jsonl", user("1", "one") + "\n" + half)
    waiting = desk.run()
    assert (waiting.added, waiting.problem_count) == (1, 0)
    append(path, rest + "\n" + user("3", "three"))
    assert desk.run().added == 2  # the last line is whole, though it has no end
    append(path, "\n")
    assert desk.run().added == 0
    assert words(desk) == ["one", "two", "three"]


def test_a_last_line_without_an_end_counts_once(desk: Desk) -> None:
    path = desk.file("a.jsonl", user("1", "one") + "\n" + user("2", "two"))
    assert desk.run().added == 2
    append(path, "\nbroken\n")
    assert desk.run().files[0].problems == (Problem(3, "not JSON"),)


def test_line_numbers_go_on_behind_the_place_of_the_last_import(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one"), "broken {"])
    assert desk.run().files[0].problems == (Problem(2, "not JSON"),)
    append(path, user("2", "two") + "\nnot this either\n")
    again = desk.run()
    assert again.files[0].problems == (Problem(4, "not JSON"),)


@pytest.mark.parametrize("shorter", [True, False])
def test_a_file_that_was_written_anew_is_read_anew(desk: Desk, shorter: bool) -> None:
    path = desk.file("a.jsonl", [user("1", "one " * 50), user("2", "two " * 50)])
    desk.run()
    new = [user(str(n), f"new {n}", "t") for n in range(2 if shorter else 40)]
    desk.file("a.jsonl", new)
    assert desk.run().added == len(new)
    assert path.stat().st_size > 0


def test_a_rotated_file_is_read_under_its_new_name_and_adds_nothing(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one"), user("2", "two")])
    desk.run()
    path.rename(desk.folder / "a.1.jsonl")
    desk.file("a.jsonl", [user("3", "three")])
    again = desk.run()
    assert (again.added, again.known) == (1, 2)


THOUGHTS: dict[str, list[object]] = {
    "claude-code": [
        {
            "type": "assistant",
            "uuid": "1",
            "sessionId": "s",
            "message": {
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "Yes."},
                ]
            },
        },
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "event_msg", "payload": {"type": "agent_reasoning", "text": "hm"}},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "Yes."}},
    ],
    "gemini-cli": [
        {"sessionId": "s", "projectHash": "p"},
        {"type": "gemini", "content": "Yes.", "thoughts": [{"description": "hm"}]},
    ],
    "hermes": [
        {
            "session_id": "s",
            "platform": "cli",
            "messages": [{"role": "assistant", "content": "Yes.", "reasoning": "hm"}],
        }
    ],
}


@pytest.mark.parametrize("format", THOUGHTS)
def test_other_options_read_the_file_once_more_and_double_nothing(desk: Desk, format: str) -> None:
    desk.file("a.jsonl", THOUGHTS[format])
    assert desk.run(include_thinking=False).added == 1
    assert desk.run().added == 1
    assert sorted(item.text for item in desk.everything()) == ["Yes.", "hm"]


@pytest.mark.parametrize("how", ["delete", "erase"])
def test_what_was_forgotten_stays_forgotten(desk: Desk, log_path: Path, how: str) -> None:
    path = desk.file("a.jsonl", [user("1", "one"), user("2", "two", "kept")])
    desk.run()
    assert getattr(desk.log, how)(ID, MIRA)
    for _ in range(2):
        append(path, user(os.urandom(4).hex(), "later") + "\n")
        assert desk.run().added == 0
        shutil.rmtree(f"{log_path}.imports")
    again = desk.run()
    assert (again.added, again.refused) == (0, 3)
    assert desk.conversations() == {"claude-code:kept"}


def test_a_restored_conversation_gets_what_it_missed(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one")])
    desk.run()
    desk.log.delete(ID, MIRA)
    append(path, user("2", "two") + "\n")
    assert desk.run().refused == 2
    desk.log.restore(ID, MIRA)
    assert desk.run().added == 1
    assert words(desk) == ["one", "two"]


def test_an_erased_item_does_not_come_back(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "secret"), user("2", "two")])
    desk.run()
    desk.log.erase(ID, MIRA, 0)
    path.touch()
    os.utime(path, (1, 1))
    desk.run()
    assert words(desk) == ["two"]


def test_two_scopes_have_their_own_imports(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "one")])
    assert desk.run().added == 1
    other = desk.run(scope=NOAH)
    assert (other.added, other.refused) == (0, 1)
    assert desk.log.conversations(NOAH) == []
    with pytest.raises(ScopeError):
        desk.run(scope=Scope())


def test_a_stop_in_the_middle_loses_and_doubles_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_BATCH", 10)
    monkeypatch.setattr(runner, "_CHECKPOINT", 500)
    said = [f"word {n}" for n in range(200)]
    path = desk.file("a.jsonl", [user(str(n), text) for n, text in enumerate(said)])

    def stop(progress: Progress) -> None:
        if progress.added >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.run(progress=stop)
    kept = words(desk)
    assert 100 <= len(kept) < 200
    assert kept == said[: len(kept)]
    rest = desk.run()
    assert words(desk) == said
    assert rest.added == 200 - len(kept)
    assert rest.known <= 40  # it went on from a place that it had noted
    assert 0 < rest.bytes < path.stat().st_size


_KILLED = """
import os, signal, sys
from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import import_paths, runner, writer
from memsheaf.stack import Scope
writer._BATCH, runner._CHECKPOINT = 20, 1000
def die(progress):
    if progress.added >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
with ConversationLog(sys.argv[1]) as log:
    import_paths(sys.argv[2], log, Scope(user_id="mira"), progress=die)
"""


@pytest.mark.parametrize("after", [20, 160, 400])
def test_a_kill_at_any_moment_loses_and_doubles_nothing(desk: Desk, after: int) -> None:
    said = [f"word {n}" for n in range(400)]
    path = desk.file("a.jsonl", [user(str(n), text) for n, text in enumerate(said)])
    arguments = [str(desk.log.path), str(path), str(after)]
    done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], timeout=60)
    assert done.returncode == -signal.SIGKILL
    kept = words(desk)
    assert len(kept) >= after
    assert kept == said[: len(kept)]
    assert desk.run().added == 400 - len(kept)
    assert words(desk) == said


def test_folders_are_walked_once_whatever_links_say(desk: Desk) -> None:
    desk.file("deep/er/a.jsonl", [user("1", "one")])
    desk.file("node_modules/b.jsonl", [user("2", "two")])
    (desk.folder / "loop").symlink_to(desk.folder, target_is_directory=True)
    (desk.folder / "deep" / "same.jsonl").symlink_to(desk.folder / "deep/er/a.jsonl")
    (desk.folder / "gone.jsonl").symlink_to(desk.folder / "nowhere")
    summary = desk.run(desk.folder, desk.folder / "deep")
    assert summary.added == 1
    assert [Path(file.path).name for file in summary.files] == ["a.jsonl", "gone.jsonl"]
    assert summary.files[1].status == "failed"


def test_what_cannot_be_read_is_told_and_the_rest_is_read(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "one")])
    os.mkfifo(desk.folder / "pipe.jsonl")
    missing = desk.folder / "no-such-folder"
    summary = desk.run(desk.folder, missing)
    assert summary.added == 1
    assert [(f.path, f.status) for f in summary.files[1:]] == [(str(missing), "failed")]
    assert summary.warnings
    pipe = desk.run(desk.folder / "pipe.jsonl")
    assert pipe.files[0].problems == (Problem(None, "neither a file nor a folder"),)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_rights_is_told(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one")])
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
    desk.file("notes.txt", [user("1", "one")])
    assert desk.run().files[0].format == "claude-code"


@pytest.mark.parametrize("fence", ["```json", "~~~", "    "])
@pytest.mark.parametrize("before", ["# How sessions look\n\nLines are:\n\n", ""])
def test_a_page_with_lines_of_a_transcript_in_it_is_none(
    desk: Desk, fence: str, before: str
) -> None:
    meta = {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}
    shown = [json.dumps(each) for each in (user("1", "sample"), meta)]
    if not fence.strip():
        shown, fence = [f"    {each}" for each in shown], before and "Like this:"
        before = before or "As follows:\n\n"
    desk.file("page.md", before + "\n".join([fence, *shown, fence.strip("json"), ""]))
    assert [file.status for file in desk.run().files] == ["unknown"]


def test_a_named_format_is_used_as_it_is(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "one")])
    assert desk.run(format="codex").added == 0
    assert desk.run(format="claude-code").added == 1
    with pytest.raises(RegistrationError, match=r"known: .*codex"):
        desk.run(format="codeks")


def test_many_conversations_in_one_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BATCH", 7)
    monkeypatch.setattr(writer, "_REMEMBERED", 5)
    said = [user(f"{n}", f"word {n}", f"s{n % 30}") for n in range(90)]
    titles = [{"type": "ai-title", "aiTitle": f"T{n}", "sessionId": f"s{n}"} for n in range(30)]
    desk.file("a.jsonl", [*titles[:15], *said, *titles[15:]])
    assert desk.run().added == 90
    found = {one.id: one for one in desk.log.conversations(MIRA)}
    assert {one.title for one in found.values()} == {f"T{n}" for n in range(30)}
    assert words(desk, "claude-code:s3") == ["word 3", "word 33", "word 63"]


def test_progress_ends_at_the_end(desk: Desk) -> None:
    for name in ("a", "b"):
        desk.file(f"{name}.jsonl", [user(name, "one")])
    seen: list[Progress] = []
    desk.run(progress=seen.append)
    last = seen[-1]
    assert (last.bytes, last.files, last.added) == (last.total_bytes, last.total_files, 2)
    assert [p.bytes for p in seen] == sorted(p.bytes for p in seen)


def test_the_summary_as_json(desk: Desk) -> None:
    desk.file("a.jsonl", [user("1", "one"), "broken"])
    desk.file("b.txt", "nothing")
    told = json.loads(json.dumps(desk.run().to_dict()))
    assert (told["added"], told["unknown"], told["problems"]) == (1, 1, 1)
    assert told["files"][0]["problems"] == [{"line": 2, "reason": "not JSON"}]


def test_the_state_is_private_and_holds_no_path_and_no_text(desk: Desk, log_path: Path) -> None:
    desk.file("very-private-name.jsonl", [user("1", "very private words")])
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
    desk.file("a.jsonl", [user("1", "one"), broken, '"my secret"', "my secret"])
    summary = desk.run()
    assert summary.problem_count == 3
    assert "secret" not in json.dumps(summary.to_dict())


class Wild:
    """An importer that breaks in the middle."""

    name = "wild"
    incremental = False

    def detect(self, source: Source) -> float:
        if b"explode" in source.head:
            raise ZeroDivisionError
        return 0.99 if source.head.startswith(b"wild") else 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        yield Entry("wild:1", NewItem("message", "kept", role="user", key="1"))
        yield Entry("wild:1", NewItem("message", "no", role="user", metadata={"f": {1, 2}}))
        for number in range(40):
            key = str(number)
            yield Entry("wild:1", NewItem("message", f"kept {key}", role="user", key=f"k{key}"))
        yield Header("wild:1", title="Wild\n things", metadata={"bad": {1}, "good": 1})
        odd: Any = "not an event"
        yield odd
        raise KeyError("secret")


def test_a_broken_importer_costs_only_its_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    working = {"wild": Wild(), **load_importers().working}
    broken = ("torn of somewhere: ImportError",)
    monkeypatch.setattr(runner, "load_importers", lambda: Importers(working, broken))
    desk.file("a.txt", "wild things")
    desk.file("b.jsonl", [user("1", "explode")])
    summary = desk.run()
    wild, claude = summary.files
    assert (wild.status, wild.added, wild.known, claude.added) == ("failed", 41, 0, 1)
    assert words(desk, "wild:1") == ["kept", *(f"kept {n}" for n in range(40))]
    about = desk.log.conversation("wild:1", MIRA)
    assert (about.title, about.metadata) == ("Wild things", {"good": 1})
    assert [problem.reason for problem in wild.problems] == [
        "metadata cannot be written as JSON",
        "an importer gave a str",
        "metadata cannot be written as JSON",
        "importer wild failed: KeyError",
    ]
    assert claude.problems == (
        Problem(None, "importer wild failed to look at it: ZeroDivisionError"),
    )
    assert summary.broken == broken
    assert desk.run().files[0].status == "failed"  # it is tried again


def test_following_sees_files_grow_and_appear(desk: Desk) -> None:
    path = desk.file("a.jsonl", [user("1", "one")])
    stop = threading.Event()
    summaries = follow(desk.folder, desk.log, MIRA, interval=0.001, stop=stop)
    assert next(summaries).added == 1
    append(path, user("2", "two") + "\n")
    assert next(summaries).added == 1
    desk.file("later/b.jsonl", [user("3", "three")])
    found = next(summaries)
    assert (found.added, len(found.files)) == (1, 1)
    stop.set()
    assert next(summaries, None) is None
    assert words(desk) == ["one", "two", "three"]


def test_two_imports_at_once_make_one(desk: Desk) -> None:
    desk.file("a.jsonl", [user(str(n), f"word {n}") for n in range(300)])
    added: list[int] = []
    threads = [threading.Thread(target=lambda: added.append(desk.run().added)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(added) == 300
    assert words(desk) == [f"word {n}" for n in range(300)]


def test_known_places_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert discover() == []
    for place in (".claude/projects/-w/s.jsonl", ".codex/sessions/2026/01/02/r.jsonl"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("{}\n")
    found = {(one.format, one.path.name, one.files, one.bytes) for one in discover()}
    assert found == {("claude-code", "projects", 1, 3), ("codex", "sessions", 1, 3)}


PLUGIN = """
class Good:
    name, incremental = "good", False
    def detect(self, source): return 0.0
    def read(self, source, options): return iter(())

class Torn(Good):
    def __init__(self): raise OSError("torn")

GOOD, NONE = Good(), object()
"""


def test_broken_plugins_are_listed_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMSHEAF_PLUGINS", raising=False)
    info = tmp_path / "extra-1.0.dist-info"
    info.mkdir()
    (tmp_path / "plugin_of_importers.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    targets = ("GOOD", "Torn", "NONE", "Missing")
    entries = "\n".join(f"x{n} = plugin_of_importers:{t}" for n, t in enumerate(targets))
    (info / "entry_points.txt").write_text(f"[memsheaf.importers]\n{entries}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importers = load_importers()
    assert {"x0", "claude-code"} <= importers.working.keys()
    assert [reason.split(":")[0] for reason in importers.broken] == [
        "x1 of extra",
        "x2 of extra",
        "x3 of extra",
    ]
    with pytest.raises(RegistrationError, match=r"x1 of extra: OSError"):
        importers.named("x1")


def test_every_importer_of_this_distribution_loads() -> None:
    importers = load_importers()
    assert {"claude-code", "codex", "gemini-cli", "hermes"} <= importers.working.keys()
    assert importers.broken == ()
    assert all(importer.name == name for name, importer in importers.working.items())
