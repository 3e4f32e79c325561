"""The page on the user model: its code runs and prints what it says; its tables are complete."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from memsheaf.usermodel import Add, Confirm, Line, RefreshSettings, Retract, Supersede

PAGE = (Path(__file__).parents[2] / "docs" / "user-model.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "user-model.md", "exec"), names)
    said = re.findall(r"^(?:print\(.*\)  )?# (.*)", code, re.MULTILINE)
    assert len(said) >= 15
    assert capsys.readouterr().out.splitlines() == said


def test_every_field_of_a_line_is_in_its_table() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", section("A line"), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(field.name for field in fields(Line))


def test_every_setting_is_in_its_table_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", section("When it is derived"), re.MULTILINE)
    assert [(name, float(value)) for name, value in rows] == [
        (field.name, float(field.default))  # type: ignore[arg-type]
        for field in fields(RefreshSettings)
    ]


@pytest.mark.parametrize("operation", [Add, Confirm, Supersede, Retract])
def test_every_operation_is_in_its_table_with_its_fields(operation: type) -> None:
    named = ", ".join(field.name for field in fields(operation))
    assert f"| `{operation.__name__}({named})` |" in section("What a deriver may do")
