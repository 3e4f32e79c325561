"""A home of one's own, and the command in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memsheaf.interfaces import main


@dataclass
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command keeps what it keeps; nothing of the machine's own is seen."""
    for name in [name for name in os.environ if name.startswith("MEMSHEAF_")]:
        monkeypatch.delenv(name)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMSHEAF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("LOGNAME", "mira")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


@pytest.fixture
def command(home: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs the command in this process, in a folder `here` beside the home."""

    def ran(*words: object) -> Done:
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, words)))
        printed = capsysbinary.readouterr()
        assert b"Traceback" not in printed.err
        code = ended.value.code
        assert isinstance(code, int)
        return Done(code, printed.out.decode(), printed.err.decode())

    return ran
