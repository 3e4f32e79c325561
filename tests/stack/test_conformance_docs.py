"""The code of the page on the kit runs, and the page names every double."""

import re
from pathlib import Path

from memsheaf.stack import SearchResult, doubles

PAGE = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_code_blocks_run() -> None:
    names: dict[str, object] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    for block in blocks:
        exec(compile(block, "conformance.md", "exec"), names)
    assert len(blocks) == 3
    assert isinstance(names["result"], SearchResult)
    assert names["result"].partial


def test_every_double_is_described() -> None:
    assert all(f"`{name}(" in PAGE for name in doubles.__all__)
