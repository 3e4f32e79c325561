"""Imports between the folders point down the layers of ARCHITECTURE.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT: dict[str, set[str]] = {
    "index": set(),
    "models": set(),
    "stack": {"index"},
    "providers": {"stack", "index", "models"},
    "sessionsearch": {"stack", "index", "models"},
    "usermodel": {"sessionsearch", "stack", "models"},
    "agent": {"usermodel", "sessionsearch", "providers", "stack", "index", "models"},
    "interfaces": {
        "agent",
        "usermodel",
        "sessionsearch",
        "providers",
        "stack",
        "index",
        "models",
    },
}


def imported_parts(source: str) -> set[str]:
    """The portions of the namespace that a module imports, lazily or not."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("memsheaf.")}
    return found


def test_the_check_sees_an_import_that_points_up() -> None:
    assert imported_parts("def f():\n    from memsheaf.agent import inject") == {"agent"}


@pytest.mark.parametrize("part", sorted(p for p in MAY_IMPORT if (ROOT / p).is_dir()))
def test_imports_point_down(part: str) -> None:
    files = sorted((ROOT / part).rglob("*.py"))
    assert files
    for path in files:
        upward = imported_parts(path.read_text(encoding="utf-8")) - MAY_IMPORT[part] - {part}
        assert not upward, f"{path.relative_to(ROOT)} imports {sorted(upward)}"
