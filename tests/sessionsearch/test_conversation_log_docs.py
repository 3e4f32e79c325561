"""The page on the conversation log: its code runs and prints what it says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import Item

PAGE = (Path(__file__).parents[2] / "docs" / "conversation-log.md").read_text(encoding="utf-8")


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "conversation-log.md", "exec"), names)
    said = re.findall(r"print\(.*\)  # (.*)", code)
    assert len(said) >= 8
    assert capsys.readouterr().out.splitlines() == said


def test_every_field_of_an_item_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert {*rows, "conversation", "seq"} == {field.name for field in fields(Item)}
