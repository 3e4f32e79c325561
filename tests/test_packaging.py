"""The distribution is one namespace of typed portions, and its repeated lists agree."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PARTS: list[str] = BUILD["tool"]["hatch"]["build"]["dev-mode-dirs"]


def test_the_repeated_lists_of_folders_agree() -> None:
    tool = BUILD["tool"]
    wheel = tool["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == [f"{part}/memsheaf" for part in PARTS]
    assert tool["pytest"]["ini_options"]["testpaths"] == ["tests", *PARTS]
    assert tool["pytest"]["ini_options"]["pythonpath"] == PARTS
    assert tool["coverage"]["run"]["source_pkgs"] == [f"memsheaf.{part}" for part in PARTS]
    assert tool["mypy"]["mypy_path"] == PARTS
    assert tool["mypy"]["files"] == [*PARTS, "tests", "benchmarks"]
    assert tool["pyright"]["extraPaths"] == PARTS
    assert tool["pyright"]["include"] == [*PARTS, "tests"]
    assert tool["ruff"]["src"] == PARTS
    assert tool["ruff"]["namespace-packages"] == [f"{part}/memsheaf" for part in PARTS]


def test_every_folder_of_the_namespace_is_listed() -> None:
    assert {path.parts[-3] for path in ROOT.glob("*/memsheaf/*")} == set(PARTS)


def test_the_namespace_has_no_init() -> None:
    import memsheaf

    assert memsheaf.__file__ is None
    assert not list(ROOT.glob("*/memsheaf/__init__.py"))


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_typed_and_exports_what_it_says(part: str) -> None:
    module = importlib.import_module(f"memsheaf.{part}")
    assert module.__file__ is not None
    assert (Path(module.__file__).parent / "py.typed").exists()
    for name in getattr(module, "__all__", []):
        assert hasattr(module, name), name


def test_only_memsheaf_is_installed_at_the_top_level() -> None:
    files = importlib.metadata.files("memsheaf") or []
    tops = {path.parts[0] for path in files if path.suffix == ".py" and ".." not in path.parts}
    assert tops <= {"memsheaf"}


def test_no_file_is_imported_under_two_names() -> None:
    names = defaultdict(set)
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and "memsheaf" in path and path.startswith(str(ROOT)) and "/tests/" not in path:
            names[path].add(name)
    doubled = {path: found - {"__main__"} for path, found in names.items() if len(found) > 1}
    assert not {path: found for path, found in doubled.items() if len(found) > 1}


def test_the_core_dependencies_are_few() -> None:
    assert len(BUILD["project"]["dependencies"]) <= 8
