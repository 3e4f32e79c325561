"""The page on injection: its code runs, its text is what comes out."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from memsheaf.agent import inject, is_trivial
from memsheaf.agent.budget import MAX_CHARACTERS, MAX_TOKENS
from memsheaf.agent.inject import Reason

PAGE = (Path(__file__).parents[2] / "docs" / "injection.md").read_text(encoding="utf-8")


def test_the_code_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(blocks[0], names)
    sent = names["made"].messages
    assert [m["content"] for m in sent] == [
        "Be brief.",
        "You remember earlier conversations.",
        shown,
    ]
    for block in blocks[1:]:
        exec(block, names)
    said = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said


def rows_of(heading: str) -> dict[str, str]:
    """The first two columns of the table under a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"^\| `([\w ]+)` \| ([^|]+) \|", section, re.MULTILINE))


def test_the_table_lists_every_argument_with_its_default() -> None:
    rows = rows_of("Arguments of `inject`")
    arguments = list(inspect.signature(inject).parameters.values())[2:]
    assert list(rows) == [a.name for a in arguments]
    for argument in arguments:
        if argument.name == "gate":
            assert (rows["gate"], argument.default) == ("`is_trivial`", is_trivial)
        elif argument.default is not None:
            assert rows[argument.name] == str(argument.default)
    assert rows["max_characters"] == f"{MAX_CHARACTERS:,}"
    assert rows["max_tokens"] == f"{MAX_TOKENS:,}"


def test_the_table_of_reasons_is_what_the_code_says() -> None:
    assert list(rows_of("When nothing is injected")) == list(get_args(Reason))
