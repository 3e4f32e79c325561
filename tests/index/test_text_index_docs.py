"""The page on the text index: its code prints what it says, and its table is complete."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from memsheaf.index import BM25Index

PAGE = (Path(__file__).parents[2] / "docs" / "text-index.md").read_text(encoding="utf-8")


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "text-index.md", "exec"), names)
    said = re.findall(r"print\(.*\)  # (.*)", code)
    assert len(said) >= 6
    assert capsys.readouterr().out.splitlines() == said


def test_every_argument_of_a_search_is_in_the_table() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = [name.strip("`") for row in rows for name in row.split(", ")]
    assert named == [*inspect.signature(BM25Index.search).parameters][2:]
