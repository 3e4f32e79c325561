"""The page on an agent's turn: its code runs, its tables are what the code says, examples run."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memsheaf.agent import AgentMemory, Policy, ReflectionSettings, TurnOptions
from memsheaf.agent.definitions import DEFINITIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "agent.md").read_text(encoding="utf-8")
EXAMPLES = sorted(p for p in (DOCS / "examples").glob("*.py") if p.stem != "example_model")


def test_the_code_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(block, names)
    said = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with a heading."""
    table = PAGE.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("option of `TurnOptions`", TurnOptions),
        ("setting of `ReflectionSettings`", ReflectionSettings),
    ],
)
def test_settings_are_listed_with_their_defaults(heading: str, kind: Any) -> None:
    listed = {row[0].strip("`"): row[1] for row in rows(heading)}
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    assert list(listed) == list(fields)
    for name, default in fields.items():
        if isinstance(default, int | float | bool) or default is None:
            assert listed[name] == str(default)


def test_the_parts_of_the_memory_are_listed() -> None:
    listed = [row[0].strip("`") for row in rows("part")]
    fields = [f.name for f in dataclasses.fields(AgentMemory)]
    assert sorted(listed) == sorted(name for name in fields if name != "scope")


def test_the_tools_are_listed_with_what_they_take() -> None:
    listed = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in rows("tool")}
    assert listed == {d.name: [p.name for p in d.parameters if p.offered] for d in DEFINITIONS}


def test_the_policy_is_listed() -> None:
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows("origin")}
    assert listed == dataclasses.asdict(Policy())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_without_a_network(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path.name], cwd=path.parent, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr
