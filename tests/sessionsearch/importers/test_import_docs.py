"""The page on importing from Python: its code runs and prints what it says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch.importers import ImportOptions

PAGE = (Path(__file__).parents[3] / "docs" / "importers.md").read_text(encoding="utf-8")


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "importers.md", "exec"), names)
    said = re.findall(r"print\(.*\)  # (.*)", code)
    assert len(said) >= 7
    assert capsys.readouterr().out.splitlines() == said


def test_every_option_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert set(rows) == {field.name for field in fields(ImportOptions)}
