"""`memsheaf sessions …` from end to end, on small transcripts in a home of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from memsheaf.interfaces.commands.sessions_import import progress_bar
from memsheaf.interfaces.session_text import marked, short
from memsheaf.sessionsearch.importers import Progress

if TYPE_CHECKING:
    from tests.interfaces.conftest import Run

HOSTILE = "a\x1b]0;owned\x07\x1b[31mred\r\x9b2J\u202eevil cello"


@pytest.fixture
def run(command: Run) -> Run:
    return lambda *words: command("sessions", *words)


def claude_line(uuid: str, role: str, text: str, **more: Any) -> str:
    line = {
        "type": role,
        "uuid": uuid,
        "sessionId": "monday",
        "timestamp": "2026-03-02T09:00:00Z",
        "cwd": "/home/mira/pump",
        "message": {"role": role, "content": text},
    }
    return json.dumps({**line, **more}) + "\n"


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    """A session of Claude Code and an export of ChatGPT."""
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "monday.jsonl").write_text(
        claude_line("u1", "user", "Where did we hide the cello?")
        + claude_line("a1", "assistant", "In the hall, behind the coats.")
        + claude_line("u2", "user", "And the bow?", timestamp="2026-03-02T09:05:00Z")
        + claude_line("a2", "assistant", "On top of the wardrobe.")
    )
    content = {"content_type": "text", "parts": ["The tide tables of Brest"]}
    node = {"id": "n", "parent": None, "message": {"author": {"role": "user"}, "content": content}}
    chat = {"id": "c9", "title": "Tides", "create_time": 1767583930, "mapping": {"n": node}}
    (folder / "export.json").write_text(json.dumps([chat]))
    (folder / "notes.txt").write_text("no transcript")
    return folder


def test_import_search_show_list_stats(run: Run, transcripts: Path, home: Path) -> None:
    made = run("import", transcripts, "--json")
    assert made.code == 0
    assert made.json["added"] == 5
    assert made.json["unknown"] == 1
    assert made.json["folder"] == str(home / "data" / "sessions")

    found = run("search", "where is the cello", "--json")
    assert found.code == 0
    first = found.json["results"][0]
    assert first["id"] == "claude-code:monday:0"
    assert first["snippet"] == "Where did we hide the «cello»?"
    assert first["created_at"] == "2026-03-02T09:00:00+00:00"
    assert first["metadata"]["id"] == "u1"
    assert {"title", "score", "relevance", "role", "origin", "copies"} <= set(first)

    plain = run("search", "cello").out
    assert "1. Where did we hide the cello?  2026-03-02 09:00  user\n" in plain
    assert "«cello»" in plain
    assert "claude-code:monday:0" in plain

    whole = run("show", "claude-code:monday:1")
    assert "In the hall, behind the coats." in whole.out
    assert "cello?  2026-03-02" in whole.out  # the title of its conversation
    assert "bow" not in whole.out
    around = run("show", "claude-code:monday:1", "--around", "1", "--json")
    assert [item["seq"] for item in around.json["items"]] == [0, 1, 2]
    assert ">:1" in run("show", "claude-code:monday:1", "--around", "1").out
    read = run("show", "claude-code:monday", "--after", "1", "--limit", "1", "--json")
    assert [item["text"] for item in read.json["items"]] == ["And the bow?"]
    assert "On top of the wardrobe." in run("show", "claude-code:monday").out

    listed = run("list", "--json").json["conversations"]
    assert [each["id"] for each in listed] == ["claude-code:monday", "chatgpt:c9"]
    assert listed[0]["metadata"]["project"] == "/home/mira/pump"
    assert "Tides  2026-01-05 03:32  1 item  chatgpt" in run("list").out

    told = run("stats", "--json").json
    assert (told["conversations"], told["items"]) == (2, 5)
    assert told["formats"] == {"claude-code": 1, "chatgpt": 1}
    assert told["projects"] == {"/home/mira/pump": 1}
    assert told["bytes"] > 0
    assert "from 2026-01-05 03:32 to 2026-03-02 09:05" in run("stats").out


def test_filters_orders_and_rows(run: Run, transcripts: Path) -> None:
    run("import", transcripts)

    def ids(*options: str) -> list[str]:
        done = run("search", "cello bow hall tide", "--json", *options)
        return [hit["id"] for hit in done.json["results"]]

    everything = ids()
    assert len(everything) >= 4
    assert ids("--role", "assistant") == ["claude-code:monday:1"]
    assert ids("--conversation", "chatgpt:c9") == ["chatgpt:c9:0"]
    assert "chatgpt:c9:0" not in ids("--project", "/home/mira/pump")
    assert ids("--project", "/home/mira") == ids("--project", "/home/mira/pump")
    assert ids("--project", ".") == []
    home_of_mira = Path("/home/mira/pump")
    assert ids("--project", os.path.relpath(home_of_mira, Path.cwd())) != []
    assert ids("--until", "2026-02-01") == ["chatgpt:c9:0"]
    assert "chatgpt:c9:0" not in ids("--since", "2026-02-01")
    assert ids("--type", "tool_call") == []
    assert len(ids("--limit", "1")) == 1
    assert ids("--sort", "oldest")[0] == "chatgpt:c9:0"
    rows = run("search", "cello bow", "--by-conversation", "--json").json["results"]
    assert [row["conversation"]["id"] for row in rows] == ["claude-code:monday"]
    assert rows[0]["first"][0]["text"] == "Where did we hide the cello?"
    assert rows[0]["last"][0]["text"] == "On top of the wardrobe."
    text = run("search", "cello bow", "--by-conversation").out
    assert "claude-code:monday" in text
    assert "«bow»" in text
    assert run("search", "x", "--by-conversation", "--sort", "newest").code == 2


def test_nothing_found_tells_what_was_searched(run: Run, transcripts: Path) -> None:
    run("import", transcripts)
    done = run("search", "accordion")
    assert done.code == 1
    assert "nothing found" in done.out
    assert "searched 5 items of 2 conversations" in done.out
    done = run("search", "cello", "--role", "tool", "--json")
    assert done.code == 1
    assert done.json["results"] == []
    assert done.json["searched"]["removed"]["roles"] >= 1
    assert "searched" in run("search", "cello", "--explain", "--json").json
    assert "searched 5 items" in run("search", "cello", "--explain").out


def test_before_anything_is_kept_nothing_is_made(run: Run, home: Path) -> None:
    for words, empty in (
        (("search", "x"), {"results": []}),
        (("list",), {"conversations": []}),
        (("show", "x"), {"conversation": None, "items": []}),
        (("forget", "x"), {"id": "x", "forgotten": False, "profile_lines": 0}),
    ):
        done = run(*words)
        assert done.code == 1
        assert run(*words, "--json").json == empty
    assert "sessions discover" in run("search", "x").err
    assert run("export").code == 1
    assert run("stats").code == 1
    assert not home.exists()


def test_importing_twice_and_a_grown_file(run: Run, transcripts: Path) -> None:
    run("import", transcripts)
    again = run("import", transcripts, "--json")
    assert (again.code, again.json["added"], again.json["unchanged"]) == (0, 0, 2)
    with (transcripts / "monday.jsonl").open("a") as file:
        file.write(claude_line("u3", "user", "Thanks for the rosin"))
    grown = run("import", transcripts)
    assert "added 1 item from 1 file of" in grown.out
    assert run("search", "rosin").code == 0


def test_bad_lines_are_told_and_end_with_two(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad\x1b[31m.jsonl"
    path.write_text(claude_line("u1", "user", "The well is dry") + "{broken\n[1]\n")
    done = run("import", path)
    assert done.code == 2
    assert "added 1 item from" in done.out
    assert ".jsonl:2: not JSON" in done.err
    assert "\x1b" not in done.err
    assert run("import", tmp_path / "missing").code == 2
    assert run("import", tmp_path / "here").code == 1  # nothing to read there


def test_what_is_forgotten_stays_forgotten(run: Run, transcripts: Path, home: Path) -> None:
    run("import", transcripts)
    assert run("forget", "claude-code:monday:0", "--json").json["forgotten"] is True
    assert [h["id"] for h in run("search", "cello", "--json").json["results"]] == []
    assert run("forget", "claude-code:monday").code == 0
    assert run("forget", "claude-code:monday").code == 1
    assert run("show", "claude-code:monday").code == 1
    (transcripts / "copy.jsonl").write_text((transcripts / "monday.jsonl").read_text())
    run("import", transcripts)
    assert run("search", "wardrobe").code == 1
    for path in (home / "data" / "sessions").rglob("*"):
        if path.is_file():
            assert b"wardrobe" not in path.read_bytes(), path


def test_forget_tells_what_came_out_of_a_conversation(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "monday.jsonl"
    path.write_text(
        claude_line("u1", "user", "Where is the cello?")
        + claude_line("u2", "user", "Look in the hall", isSidechain=True, agentId="x1")
        + claude_line("u3", "user", "Where is the bow?", sessionId="tuesday")
        + claude_line("u4", "user", "Look there", sessionId="tuesday", isSidechain=True)
    )
    run("import", path)
    told = "claude-code:tuesday/sidechain came out of it, and stays"
    assert told in run("forget", "claude-code:tuesday").out
    assert run("forget", "claude-code:tuesday/sidechain").code == 0
    child = "claude-code:monday/agent-x1"
    assert "children" not in run("forget", "claude-code:monday:0", "--json").json
    assert run("forget", "claude-code:monday", "--json").json["children"] == [child]
    assert "children" not in run("forget", child, "--json").json
    assert run("list").code == 1


def test_export_writes_every_item(run: Run, transcripts: Path, tmp_path: Path) -> None:
    run("import", transcripts)
    lines = [json.loads(line) for line in run("export").out.splitlines()]
    assert [line["conversation"]["id"] for line in lines if "conversation" in line] == [
        "chatgpt:c9",
        "claude-code:monday",
    ]
    assert [line["item"]["text"] for line in lines if "item" in line][:2] == [
        "The tide tables of Brest",
        "Where did we hide the cello?",
    ]
    file = tmp_path / "out.jsonl"
    done = run("export", "chatgpt:c9", "-o", file, "--json")
    assert done.json == {"conversations": 1, "items": 1, "file": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("export", "-o", file).code == 2
    assert run("export", "-o", file, "--force").code == 0
    assert run("export", "nobody").code == 1
    assert run("export", "--json").code == 2


def test_owners_see_their_own(run: Run, transcripts: Path) -> None:
    run("import", transcripts, "--user", "otto")
    assert run("search", "cello").code == 1
    assert run("list").code == 1
    assert run("show", "claude-code:monday:0").code == 1
    assert run("forget", "claude-code:monday").code == 1
    assert run("search", "cello", "--user", "otto").code == 0
    assert run("search", "cello", "--everyone").code == 0
    assert run("search", "cello", "--everyone", "--user", "otto").code == 2


def test_sessions_lie_beside_the_memories(run: Run, transcripts: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "memsheaf.toml").write_text('[scope]\nuser_id = "otto"\nnamespace = "pump"\n')
    made = run("import", transcripts, "--json").json
    assert made["folder"] == str(here / ".memsheaf" / "sessions")
    assert (here / ".memsheaf" / ".gitignore").read_text() == "*\n"
    kept = here / ".memsheaf" / "sessions"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    kept.chmod(0o755)
    (hit, *_) = run("search", "tide", "--json").json["results"]
    assert hit["conversation"] == "chatgpt:c9"
    assert run("stats", "--json").json["scope"] == {"user_id": "otto", "namespace": "pump"}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    (here / "memsheaf.toml").unlink()
    assert run("search", "tide", "--user", "otto", "--namespace", "pump").code == 0


def test_a_folder_that_is_a_file_or_shared_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "file").write_text("mine")
    (shared := tmp_path / "shared").mkdir()
    shared.chmod(0o1777)
    for wrong, told in ((file, "a file stands"), (file / "in", "cannot be made")):
        monkeypatch.setenv("MEMSHEAF_SESSIONS", str(wrong))
        for command in (("search", "tide"), ("list",), ("stats",)):
            done = run(*command)
            assert done.code == 2
            assert told in done.err
    monkeypatch.setenv("MEMSHEAF_SESSIONS", str(shared))
    done = run("import", file)
    assert done.code == 2
    assert "shared by all users" in done.err
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_a_variable_names_another_folder(
    run: Run, transcripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSHEAF_SESSIONS", "~/kept")
    made = run("import", transcripts, "--json").json
    assert made["folder"] == str(tmp_path / "person" / "kept")
    assert run("search", "tide").code == 0
    monkeypatch.delenv("MEMSHEAF_SESSIONS")
    assert run("search", "tide").code == 1


def test_a_link_out_of_the_workspace_is_refused(
    run: Run, transcripts: Path, tmp_path: Path
) -> None:
    data = tmp_path / "here" / ".memsheaf"
    data.mkdir()
    (data / "sessions").symlink_to(tmp_path)
    done = run("import", transcripts)
    assert done.code == 2
    assert "remove the link" in done.err


def test_turned_off(run: Run, transcripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSHEAF_DISABLED", "1")
    assert run("import", transcripts).code == 2
    assert run("search", "x").code == 2


def test_hostile_text_cannot_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(
        claude_line("u1", "user", HOSTILE)
        + json.dumps({"type": "custom-title", "sessionId": "monday", "customTitle": HOSTILE})
        + "\n"
    )
    run("import", path)
    id_ = run("list", "--json").json["conversations"][0]["id"]
    for words in (
        ("search", "cello"),
        ("search", "cello", "--by-conversation"),
        ("search", HOSTILE, "--role", "tool"),
        ("list",),
        ("show", id_),
        ("show", f"{id_}:0"),
        ("stats",),
    ):
        done = run(*words)
        for text in (done.out, done.err):
            assert not set(text) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"}, words
    (hit,) = run("search", "cello", "--json").json["results"]
    assert hit["text"] == HOSTILE
    assert short(HOSTILE).isprintable()


def test_marks_are_bold_on_a_terminal() -> None:
    assert marked("the «cello» is", False) == "the «cello» is"
    assert marked("the «cello» is «here»", True) == (
        f"the {click.style('cello', bold=True)} is {click.style('here', bold=True)}"
    )
    assert "\x1b[31m" not in marked("«\x1b[31m»", True)


def test_a_bar_on_a_terminal_shows_files_safely(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_bar(False) as tell:
        assert tell is not None
        tell(Progress("/x/a\x1b[31m.jsonl", 50, 200, 0, 2, 7))
        tell(Progress("/x/b.jsonl", 200, 200, 2, 2, 9))
    shown = screen.getvalue()
    assert "importing" in shown
    assert "100%" in shown
    assert "\x1b[31m" not in shown
    with progress_bar(True) as tell:
        assert tell is None


def test_discover_finds_known_folders(run: Run, tmp_path: Path) -> None:
    assert run("discover").code == 1
    assert run("import", "--found").code == 2
    folder = tmp_path / "person" / ".claude" / "projects" / "-home-mira-pump"
    folder.mkdir(parents=True)
    (folder / "monday.jsonl").write_text(claude_line("u1", "user", "Where is the cello?"))
    (found,) = run("discover", "--json").json["found"]
    assert (found["format"], found["files"]) == ("claude-code", 1)
    assert "claude-code" in run("discover").out
    assert run("import", "--found", "--json").json["added"] == 1
    assert run("import").code == 2
    assert run("import", "--found", folder).code == 2


def test_reading_options(run: Run, tmp_path: Path) -> None:
    def node(name: str, parent: str | None, role: str, **content: Any) -> dict[str, Any]:
        message = {"id": name, "author": {"role": role}, "content": content}
        return {"id": name, "parent": parent, "message": message}

    mapping = {
        each["id"]: each
        for each in (
            node("q", None, "user", parts=["Which way?"]),
            node("old", "q", "assistant", parts=["Left."]),
            node("t", "q", "assistant", content_type="thoughts", thoughts=[{"content": "Hm."}]),
            node("new", "t", "assistant", parts=["Right."]),
        )
    }
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"id": "c", "mapping": mapping, "current_node": "new"}]))

    def texts() -> list[str]:
        shown = run("show", "chatgpt:c", "--json").json["items"]
        return [item["text"] for item in shown]

    told = run("import", path, "--no-thinking").out
    assert "1 message of other branches left out; --all-branches takes them" in told
    assert texts() == ["Which way?", "Right."]
    run("import", path)
    assert texts() == ["Which way?", "Right.", "Hm."]
    run("import", path, "--all-branches")
    assert texts() == ["Which way?", "Right.", "Hm.", "Left."]
    assert run("import", path, "--format", "chatgpt", "--json").code == 0
    assert run("import", path, "--format", "no-such").code == 2


def test_watch_follows_a_growing_file(run: Run, transcripts: Path, home: Path) -> None:
    words = [sys.executable, "-m", "memsheaf.interfaces", "sessions", "watch", str(transcripts)]
    watching = subprocess.Popen(
        [*words, "--interval", "0.1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored here
    )
    try:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["added"] == 5
        with (transcripts / "monday.jsonl").open("a") as file:
            file.write(claude_line("u3", "user", "Thanks for the rosin"))
        assert json.loads(watching.stdout.readline())["added"] == 1
        assert run("search", "rosin").code == 0
        watching.send_signal(signal.SIGINT)
        until = time.monotonic() + 30
        while watching.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert watching.returncode == 0
    finally:
        watching.kill()
        watching.communicate()


def test_help_tells_every_command(run: Run) -> None:
    told = run("--help").out
    for name in ("import", "discover", "watch", "search", "show", "list", "forget", "export"):
        assert f"  {name} " in told
        assert "--json" in run(name, "--help").out


def test_a_search_imports_little(home: Path, run: Run, transcripts: Path) -> None:
    run("import", transcripts)
    code = (
        "import sys\nfrom memsheaf.interfaces.cli import main\n"
        "try:\n    main(['sessions', 'search', 'cello'])\nexcept SystemExit as end:\n"
        "    assert not end.code\n"
        "heavy = {'pydantic', 'pluggy', 'httpx', 'diskcache', 'rank_bm25',\n"
        "    'memsheaf.sessionsearch.importers', 'memsheaf.stack.config'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
