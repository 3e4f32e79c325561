"""The page on derivers: its code runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memsheaf.stack import Registry
from memsheaf.usermodel.english_sentences import MAX_MESSAGE
from memsheaf.usermodel.llm_reply import MAX_TEXT
from memsheaf.usermodel.rules_statements import MAX_LINE

PAGE = (Path(__file__).parents[2] / "docs" / "derivers.md").read_text(encoding="utf-8")


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "derivers.md", "exec"), names)
    said = re.findall(r"print\(.*\)  # (.*)", code)
    assert len(said) >= 9
    assert capsys.readouterr().out.splitlines() == said


def test_every_built_in_deriver_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert rows == sorted(rows, reverse=True)
    plugins = Registry("memsheaf.derivers").plugins
    assert set(rows) == {name for name, plugin in plugins.items() if plugin.ours}


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    assert f"at most {MAX_LINE} characters" in PAGE
    assert f"longer than {MAX_MESSAGE:,} characters" in PAGE
    assert f"at most {MAX_TEXT} characters" in PAGE
