"""The code blocks of README.md run, and print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def test_there_are_code_blocks() -> None:
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("place", range(len(BLOCKS)))
def test_block_runs(place: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS[place], f"README block {place}", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    for said in re.findall(r"print\(.*\)\s+# ([^:\n]+)", BLOCKS[place]):
        if said[0].isupper():
            assert said.strip() in printed
