"""The page on sessions: its commands run and print what it shows, its code runs."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from memsheaf.interfaces import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sessions.md").read_text(encoding="utf-8")
TALKS = {
    "s1": [
        ("user", "Why does the upload fail at night?", "2026-02-03T21:10:00Z"),
        ("assistant", "The proxy restarts at nine.", "2026-02-03T21:10:30Z"),
        ("user", "And how often may it try?", "2026-02-03T21:11:00Z"),
        (
            "assistant",
            "We decided on a retry limit of five: the proxy closes the connection after six tries.",
            "2026-02-03T21:12:00Z",
        ),
    ],
    "s2": [
        (
            "user",
            "Rename the settings module, and keep the retry limit where it is.",
            "2026-02-17T10:00:00Z",
        ),
        ("assistant", "Renamed.", "2026-02-17T10:01:00Z"),
    ],
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the sessions that the page speaks of."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "mira")
    monkeypatch.setenv("MEMSHEAF_HOME", str(tmp_path / ".memsheaf-home"))
    folder = tmp_path / ".claude" / "projects" / "-home-mira-upload"
    folder.mkdir(parents=True)
    for session, talk in TALKS.items():
        lines: list[dict[str, Any]] = [
            {
                "type": role,
                "uuid": f"{session}-{number}",
                "sessionId": session,
                "timestamp": time,
                "cwd": "/home/mira/upload",
                "message": {"role": role, "content": text},
            }
            for number, (role, text, time) in enumerate(talk)
        ]
        if session == "s2":
            lines.insert(
                0,
                {
                    "type": "custom-title",
                    "sessionId": "s2",
                    "customTitle": "Rename the settings module",
                },
            )
        (folder / f"{session}.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
        )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def plain(text: str, home: Path) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(home / ".memsheaf-home" / "data"), "~/memsheaf")
    text = text.replace(str(home), "~")
    text = re.sub(r"\d+\.\d s", "0.0 s", text)
    text = re.sub(r"\d+(\.\d)? k?B", "1.5 kB", text)
    return "\n".join(re.sub(r" {2,}", "  ", line.rstrip()) for line in text.strip().split("\n"))


def test_the_commands_print_what_the_page_shows(
    desk: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    blocks = re.findall(r"```(bash|text)\n(.*?)```", PAGE, re.DOTALL)
    printed = ""
    shown = 0
    for kind, block in blocks:
        if kind == "text":
            assert plain(printed, desk) == plain(block, desk)
            shown += 1
            continue
        printed = ""
        for line in block.splitlines():
            capsysbinary.readouterr()
            with pytest.raises(SystemExit) as ended:
                main(shlex.split(line)[1:])
            assert ended.value.code == 0, line
            printed += capsysbinary.readouterr().out.decode()
    assert shown == 4


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    exec(compile(code, "sessions.md", "exec"), {"__name__": "page"})
    said = re.findall(r"print\(.*\)  # (.*)", code)
    assert len(said) == 2
    assert capsys.readouterr().out.splitlines() == said


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (DOCS / target).exists(), target
