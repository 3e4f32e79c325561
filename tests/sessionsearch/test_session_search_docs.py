"""The page on session search: its code runs and prints what it says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import SessionHit, SessionSearch

PAGE = (Path(__file__).parents[2] / "docs" / "session-search.md").read_text(encoding="utf-8")


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "session-search.md", "exec"), names)
    said = re.findall(r"print\(.*\)  # (.*)", code)
    assert len(said) >= 10
    assert capsys.readouterr().out.splitlines() == said


def test_every_part_of_a_hit_and_every_verb_is_on_the_page() -> None:
    for field in fields(SessionHit):
        assert f"`{field.name}`" in PAGE or field.name == "query"
    verbs = [name for name in vars(SessionSearch) if not name.startswith("_")]
    for verb in set(verbs) - {"save", "close"}:
        assert f"`{verb}" in PAGE, verb
