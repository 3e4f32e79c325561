"""Distributions with entry points, made in a temporary folder, and a home of one's own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_NUMBERS = itertools.count()

STORE = """
from pathlib import Path
from pydantic import BaseModel, ConfigDict
from memsheaf.stack import hookimpl
from memsheaf.stack.registry import ProviderFactory

class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: Path | None = None
    size: int = 3
    api_key: str = ""
    fail: bool = False

class Store:
    def __init__(self, options, context):
        if options.fail:
            raise OSError(f"refused with {options.api_key}")
        self.options, self.context = options, context
    @hookimpl
    def search(self, scope): return []
    @hookimpl
    def store(self, record): return None
    @hookimpl
    def forget(self, record_id, scope): return False

class Plain(Store):
    def __init__(self): pass

FACTORY = ProviderFactory(Store, Options)
NETWORK = ProviderFactory(Store, Options, network=True)
"""

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a distribution: its source, and its entry points as lines with {module}."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules: list[str] = []

    def make(name: str, source: str, *lines: str, group: str = "memsheaf.providers") -> str:
        module = f"plugin_{next(_NUMBERS)}"
        modules.append(module)
        (site / f"{module}.py").write_text(source, encoding="utf-8")
        info = site / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        entries = "\n".join(line.format(module=module) for line in lines)
        (info / "entry_points.txt").write_text(f"[{group}]\n{entries}\n")
        return module

    yield make
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def own(install: Install) -> str:
    """A distribution called memsheaf that hides the real one."""
    return install("memsheaf", STORE, "local = {module}:FACTORY", "wire = {module}:NETWORK")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty, with no variable of ours set."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("MEMSHEAF_HOME", str(folder))
    for name in ("MEMSHEAF_PLUGINS", "MEMSHEAF_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A folder for a project."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
