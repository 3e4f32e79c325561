"""`memsheaf sessions …` where something fails: JSON stays JSON, and what is closed is told."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memsheaf.interfaces.commands import sessions_keep
from memsheaf.sessionsearch.importers import discover

if TYPE_CHECKING:
    from tests.interfaces.conftest import Run


@pytest.fixture
def run(command: Run) -> Run:
    return lambda *words: command("sessions", *words)


@pytest.fixture
def chat(run: Run, tmp_path: Path) -> Path:
    """A chat that was imported."""
    path = tmp_path / "chat.md"
    path.write_text("## User\nWhere is the cello?\n\n## Assistant\nIn the hall.\n")
    assert run("import", path).code == 0
    return path


FAILURES: list[tuple[int, list[str]]] = [
    (1, ["show", "nosuch"]),
    (1, ["show", "nosuch:1", "--around", "2"]),
    (2, ["show", "nosuch", "--limit", "many"]),
    (2, ["search", "cello", "--limit", "-1"]),
    (2, ["search", "cello", "--since", "someday"]),
    (2, ["search", "cello", "--sort", "wrong"]),
    (2, ["search"]),
    (2, ["list", "--limit", "99999"]),
    (2, ["list", "--nosuch"]),
    (1, ["export", "nosuch", "-o", "out.jsonl"]),
    (2, ["export", "-o", "no/such/folder/out.jsonl"]),
    (2, ["export"]),
    (2, ["stats", "--everyone", "--user", "otto"]),
    (2, ["import"]),
    (2, ["import", "chat.md", "--format", "nosuch"]),
    (2, ["watch", "--found"]),
]


@pytest.mark.parametrize(("code", "words"), FAILURES, ids=lambda value: str(value))
def test_who_asks_for_json_gets_json_of_a_failure(
    run: Run, chat: Path, code: int, words: list[str]
) -> None:
    done = run(*words, "--json")
    assert done.code == code
    assert list(done.json) == ["error"]
    assert done.json["error"].rstrip(".") in done.err
    assert '"error"' not in run(*words).out


def test_nothing_found_is_json_too(run: Run, chat: Path) -> None:
    assert run("search", "accordion", "--json").json["results"] == []
    assert run("list", "--user", "otto", "--json").json == {"conversations": []}
    assert run("forget", "nosuch", "--json").json["forgotten"] is False
    assert run("import", "/no/such/file", "--json").json["files"][0]["status"] == "failed"
    done = run("export", "--user", "otto", "-o", "out.jsonl", "--json")
    assert (done.code, done.json["conversations"], done.json["file"]) == (1, 0, None)


def test_a_text_that_looks_like_the_option_is_a_text(run: Run, chat: Path) -> None:
    assert run("search", "--limit", "-1", "--", "--json").out == ""


def test_an_empty_search_tells_the_words_that_were_typed(run: Run, chat: Path) -> None:
    done = run("search", "did we discuss the retries, Retries or std::map?")
    assert "for discuss, retries, Retries, std::map: 0 match" in done.out
    told = run("search", "hallway cellos", "--explain", "--json").json["searched"]
    assert told["words"] == ["hallway", "cellos"]
    assert "no word to look for" in run("search", "?!").out


def test_a_known_folder_that_cannot_be_read_is_told(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "person" / ".claude" / "projects"
    place.parent.mkdir(parents=True)
    place.symlink_to(place)  # a loop, which not even root reads
    done = run("discover")
    assert done.code == 2
    assert f"! {place}: Too many levels of symbolic links" in done.err
    (found,) = run("discover", "--json").json["found"]
    assert (found["format"], found["files"]) == ("claude-code", 0)
    assert [each["path"] for each in found["unreadable"]] == [str(place)]
    read = run("import", "--found", "--json")
    assert read.code == 2
    assert read.json["files"][0]["status"] == "failed"

    place.unlink()
    place.mkdir()
    line = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": "A cello"}}
    (place / "s.jsonl").write_text(json.dumps(line) + "\n")
    (place / "loop").symlink_to(place / "loop")
    done = run("discover")
    assert done.code == 0
    assert f"! {place / 'loop'}" in done.err
    assert "sessions import --found" in done.out
    assert run("import", "--found", "--json").json["added"] == 1


def test_what_is_not_there_is_no_folder_that_cannot_be_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "person"
    person.mkdir()
    (person / ".claude").write_text("a file where a folder might be")
    assert discover() == []
    (person / ".codex" / "sessions").mkdir(parents=True)
    assert discover() == []

    def closed(self: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", closed)
    monkeypatch.setattr(Path, "stat", closed)
    assert {each.reason for place in discover() for each in place.unreadable} == {
        "Permission denied"
    }


def test_an_export_that_fails_leaves_the_file_as_it_was(
    run: Run, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("an earlier export")
    file.chmod(0o644)
    assert run("export", "-o", file).code == 2
    assert run("export", "-o", file, "--force").code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # though it was there before
    kept = file.read_bytes()

    def full(*_: object) -> object:
        yield {"item": {}}
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sessions_keep, "_lines", full)
    done = run("export", "-o", file, "--force", "--json")
    assert (done.code, file.read_bytes()) == (2, kept)
    assert done.json == {"error": f"{file} cannot be written: No space left on device"}
    assert run("export", "-o", tmp_path / "new.jsonl").code == 2
    assert sorted(tmp_path.glob("*new*")) == sorted(tmp_path.glob(".memsheaf*")) == []


def test_an_export_follows_links_and_fills_pipes(run: Run, chat: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "target.jsonl")
    (tmp_path / "target.jsonl").write_text("old")
    assert run("export", "-o", link, "--force").code == 0
    assert link.is_symlink()
    assert b'"conversation"' in (tmp_path / "target.jsonl").read_bytes()
    assert run("export", "-o", "/dev/null", "--force").code == 0


def test_stats_while_another_process_replaces_files(
    run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("stats", "--json").json["bytes"]
    walked = os.walk

    def with_one_that_goes(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
        for place, folders, names in walked(top):
            yield place, folders, [*names, "sessions.db-gone"]

    monkeypatch.setattr(os, "walk", with_one_that_goes)
    assert run("stats", "--json").json["bytes"] == before > 0


def test_the_home_of_nobody_is_a_name_like_another(
    run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = "~no-such-person/x"
    for words in (("search", "cello", "--project", nobody), ("list", "--project", nobody)):
        assert run(*words).code == 1
    (file,) = run("import", nobody, "--json").json["files"]
    assert (file["path"], file["status"]) == (nobody, "failed")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "HERMES_HOME"):
        monkeypatch.setenv(name, nobody)
    assert run("discover").code == 1
