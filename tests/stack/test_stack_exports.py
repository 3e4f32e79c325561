"""Names of the stack are imported on first use, and each is what its module has."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import memsheaf.stack


def declared() -> dict[str, str]:
    """Name to module, as the imports for type checkers say."""
    assert memsheaf.stack.__file__ is not None
    tree = ast.parse(Path(memsheaf.stack.__file__).read_text(encoding="utf-8"))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level)
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_all_are_declared_once_and_found() -> None:
    assert sorted(declared()) == sorted(memsheaf.stack.__all__)
    for name, module in declared().items():
        held = getattr(importlib.import_module(f"memsheaf.stack.{module}"), name)
        assert getattr(memsheaf.stack, name) is held
        assert name in dir(memsheaf.stack)
    modules = {path.stem for path in Path(memsheaf.stack.__path__[0]).glob("*.py")}
    assert not modules & set(declared()), "the module would hide the name"


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = memsheaf.stack.no_such_name


def test_a_scope_and_an_error_do_not_wait_for_the_rest() -> None:
    code = (
        "import sys; from memsheaf.stack import InvalidQuery, Scope, parse_time; "
        "print(sorted({'pydantic', 'pluggy', 'numpy', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
