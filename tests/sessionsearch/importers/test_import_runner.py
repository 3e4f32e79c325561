"""Importing: once, again, as files grow, are cut, are written anew, and are forgotten."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import (
    Problem,
    Progress,
    follow,
    import_paths,
    runner,
    writer,
)
from memsheaf.sessionsearch.importers.state import ImportState
from memsheaf.stack import Scope, ScopeError, disk_files

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

MIRA, NOAH = Scope(user_id="mira"), Scope(user_id="noah")
ID = "claude-code:s"


def test_importing_twice_changes_nothing_and_reads_nothing(desk: Desk) -> None:
    desk.file("a.jsonl", [desk.user("1", "one"), desk.user("2", "two")])
    first = desk.run()
    before = desk.everything()
    second = desk.run()
    assert (first.added, second.added) == (2, 0)
    assert [file.status for file in second.files] == ["unchanged"]
    assert (second.bytes, desk.everything()) == (0, before)


def test_a_lost_state_costs_time_and_changes_nothing(desk: Desk, log_path: Path) -> None:
    desk.file("a.jsonl", [desk.user("1", "one"), desk.user("2", "two")])
    desk.run()
    shutil.rmtree(f"{log_path}.imports")
    again = desk.run()
    assert (again.added, again.known) == (0, 2)


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b""])
def test_a_damaged_state_is_made_anew(desk: Desk, log_path: Path, damage: bytes) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    desk.run()
    for file in Path(f"{log_path}.imports").iterdir():
        file.write_bytes(damage)
    assert (desk.run().added, desk.run().count("unchanged")) == (0, 1)
    desk.append(path, desk.user("2", "two") + "\n")
    assert desk.run().added == 1


def test_a_lost_log_is_filled_again(desk: Desk, tmp_path: Path) -> None:
    desk.file("a.jsonl", [desk.user("1", "one")])
    desk.run()
    with ConversationLog(tmp_path / "new.db") as fresh:
        state = desk.log.path.with_name(f"{desk.log.path.name}.imports")
        assert import_paths(desk.folder, fresh, MIRA, state=state).added == 1


def test_a_tail_without_words_does_not_hide_that_the_log_was_lost(
    desk: Desk, tmp_path: Path
) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    desk.run()
    desk.append(path, '{"type": "progress", "sessionId": "s"}\n')
    assert desk.run().files[0].skipped == {"progress": 1}
    with ConversationLog(tmp_path / "new.db") as fresh:
        state = desk.log.path.with_name(f"{desk.log.path.name}.imports")
        assert import_paths(desk.folder, fresh, MIRA, state=state).added == 1


def test_a_grown_file_reads_only_its_tail(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one"), desk.user("2", "two")])
    desk.run()
    tail = desk.user("3", "three") + "\n"
    desk.append(path, tail)
    grown = desk.run()
    assert (grown.added, grown.known, grown.bytes) == (1, 0, len(tail))
    assert desk.words() == ["one", "two", "three"]


def test_half_a_last_line_waits_for_the_rest(desk: Desk) -> None:
    half, rest = desk.user("2", "two")[:40], desk.user("2", "two")[40:]
    path = desk.file("a.jsonl", desk.user("1", "one") + "\n" + half)
    waiting = desk.run()
    assert (waiting.added, waiting.problem_count) == (1, 0)
    desk.append(path, rest + "\n" + desk.user("3", "three"))
    assert desk.run().added == 2  # the last line is whole, though it has no end
    desk.append(path, "\n")
    assert desk.run().added == 0
    assert desk.words() == ["one", "two", "three"]


def test_a_last_line_without_an_end_counts_once(desk: Desk) -> None:
    path = desk.file("a.jsonl", desk.user("1", "one") + "\n" + desk.user("2", "two"))
    assert desk.run().added == 2
    desk.append(path, "\nbroken\n")
    assert desk.run().files[0].problems == (Problem(3, "not JSON"),)


def test_line_numbers_go_on_behind_the_place_of_the_last_import(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one"), "broken {"])
    assert desk.run().files[0].problems == (Problem(2, "not JSON"),)
    desk.append(path, desk.user("2", "two") + "\nnot this either\n")
    again = desk.run()
    assert again.files[0].problems == (Problem(4, "not JSON"),)


@pytest.mark.parametrize("shorter", [True, False])
def test_a_file_that_was_written_anew_is_read_anew(desk: Desk, shorter: bool) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one " * 50), desk.user("2", "two " * 50)])
    desk.run()
    new = [desk.user(str(n), f"new {n}", "t") for n in range(2 if shorter else 40)]
    desk.file("a.jsonl", new)
    assert desk.run().added == len(new)
    assert path.stat().st_size > 0


def test_a_rotated_file_is_read_under_its_new_name_and_adds_nothing(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one"), desk.user("2", "two")])
    desk.run()
    path.rename(desk.folder / "a.1.jsonl")
    desk.file("a.jsonl", [desk.user("3", "three")])
    again = desk.run()
    assert (again.added, again.known) == (1, 2)


def test_a_file_that_is_removed_while_it_is_read_is_read_to_its_end(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_BATCH", 10)
    monkeypatch.setattr(runner, "_CHECKPOINT", 500)
    path = desk.file("a.jsonl", [desk.user(str(n), f"word {n}") for n in range(40)])
    (report,) = desk.run(progress=lambda _: path.unlink(missing_ok=True)).files
    assert (report.status, report.added, report.problem_count) == ("imported", 40, 0)
    assert len(desk.words()) == 40


def test_a_file_of_the_same_size_and_time_is_seen_to_be_another(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    desk.run()
    before = path.stat()
    desk.file("a.jsonl", [desk.user("2", "two")])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert desk.run().added == 1
    assert desk.words() == ["one", "two"]


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
    path = desk.file("a.jsonl", [desk.user("1", "one"), desk.user("2", "two", "kept")])
    desk.run()
    assert getattr(desk.log, how)(ID, MIRA)
    for _ in range(2):
        desk.append(path, desk.user(os.urandom(4).hex(), "later") + "\n")
        assert desk.run().added == 0
        shutil.rmtree(f"{log_path}.imports")
    again = desk.run()
    assert (again.added, again.refused) == (0, 3)
    assert desk.conversations() == {"claude-code:kept"}


def test_a_restored_conversation_gets_what_it_missed(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    desk.run()
    desk.log.delete(ID, MIRA)
    desk.append(path, desk.user("2", "two") + "\n")
    assert desk.run().refused == 2
    desk.log.restore(ID, MIRA)
    assert desk.run().added == 1
    assert desk.words() == ["one", "two"]


def test_an_erased_item_does_not_come_back(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "secret"), desk.user("2", "two")])
    desk.run()
    desk.log.erase(ID, MIRA, 0)
    path.touch()
    os.utime(path, (1, 1))
    desk.run()
    assert desk.words() == ["two"]


def test_two_scopes_have_their_own_imports(desk: Desk) -> None:
    desk.file("a.jsonl", [desk.user("1", "one")])
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
    path = desk.file("a.jsonl", [desk.user(str(n), text) for n, text in enumerate(said)])

    def stop(progress: Progress) -> None:
        if progress.added >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.run(progress=stop)
    kept = desk.words()
    assert 100 <= len(kept) < 200
    assert kept == said[: len(kept)]
    rest = desk.run()
    assert desk.words() == said
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
    path = desk.file("a.jsonl", [desk.user(str(n), text) for n, text in enumerate(said)])
    arguments = [str(desk.log.path), str(path), str(after)]
    done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], timeout=60)
    assert done.returncode == -signal.SIGKILL
    kept = desk.words()
    assert len(kept) >= after
    assert kept == said[: len(kept)]
    assert desk.run().added == 400 - len(kept)
    assert desk.words() == said


def test_following_sees_files_grow_and_appear(desk: Desk) -> None:
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    stop = threading.Event()
    summaries = follow(desk.folder, desk.log, MIRA, interval=0.001, stop=stop)
    assert next(summaries).added == 1
    desk.append(path, desk.user("2", "two") + "\n")
    assert next(summaries).added == 1
    desk.file("later/b.jsonl", [desk.user("3", "three")])
    found = next(summaries)
    assert (found.added, len(found.files)) == (1, 1)
    stop.set()
    assert next(summaries, None) is None
    assert desk.words() == ["one", "two", "three"]


def test_following_looks_again_where_rights_were_given(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for one who is not root: the file opens once its owner may read it."""
    path = desk.file("a.jsonl", [desk.user("1", "one")])
    path.chmod(0)
    opened = Path.open

    def guarded(self: Path, *args: Any, **more: Any) -> Any:
        if self == path and not self.stat().st_mode & stat.S_IRUSR:
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **more)

    monkeypatch.setattr(Path, "open", guarded)
    stop = threading.Event()
    summaries = follow(desk.folder, desk.log, MIRA, interval=0.001, stop=stop)
    assert [file.status for file in next(summaries).files] == ["failed"]
    path.chmod(0o600)
    threading.Timer(5, stop.set).start()
    assert next(summaries).added == 1
    stop.set()


def test_two_imports_at_once_make_one(desk: Desk) -> None:
    desk.file("a.jsonl", [desk.user(str(n), f"word {n}") for n in range(300)])
    added: list[int] = []
    threads = [threading.Thread(target=lambda: added.append(desk.run().added)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(added) == 300
    assert desk.words() == [f"word {n}" for n in range(300)]


def test_one_process_makes_the_state_of_imports_and_the_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, build = tmp_path / "imports", disk_files._build
    built, opened = [], []

    def slowly(*arguments: Any) -> None:
        built.append(arguments)
        time.sleep(0.05)
        build(*arguments)

    def open_it() -> None:
        with ImportState(folder, MIRA) as state:
            opened.append(state.get(folder))

    monkeypatch.setattr(disk_files, "_build", slowly)
    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(built), opened) == (1, [None] * 4)
