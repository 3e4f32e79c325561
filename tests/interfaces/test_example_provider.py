"""The worked provider of the pages: the same as the page shows, conforming, installed by pip."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.stack.conformance import ProviderConformance

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "example_provider"


def _module() -> Any:
    spec = importlib.util.spec_from_file_location(
        "memsheaf_textfolder", EXAMPLE / "memsheaf_textfolder" / "__init__.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestTextFolder(ProviderConformance):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> object:
        return _module().TextFolder(tmp_path / "memories")

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[object], object]:
        return lambda provider: _module().TextFolder(tmp_path / "memories")


def test_the_page_shows_the_files() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"`([\w./]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL))
    for name in ("pyproject.toml", "memsheaf_textfolder/__init__.py"):
        assert blocks[name] == (EXAMPLE / name).read_text(encoding="utf-8"), name


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, folder / "source")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input"]
    options = ["--disable-pip-version-check", "--retries", "0", "--timeout", "10"]
    done = subprocess.run(
        [*install, *options, "--target", str(folder / "site"), str(source)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    if done.returncode and ("hatchling" in done.stderr or "No module named pip" in done.stderr):
        pytest.skip(f"the build backend cannot be had: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_pip_installs_it_and_the_command_finds_it(site: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "memsheaf.toml").write_text(
        '[[providers]]\ntype = "local"\n\n[[providers]]\ntype = "textfolder"\npath = "texts"\n'
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MEMSHEAF_")}
    paths = os.pathsep.join(filter(None, (str(site), clean.get("PYTHONPATH"))))
    environ = {**clean, "MEMSHEAF_HOME": str(home), "PYTHONPATH": paths}

    def run(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "memsheaf.interfaces", *words, "--json"],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    made = run("remember", "Mira plays the cello", "--user", "mira")
    assert (home / "texts").is_dir()
    listed = run("providers")
    assert [p["type"] for p in listed["providers"]] == ["local", "textfolder"]
    plugin = next(p for p in listed["plugins"] if p["plugin"] == "textfolder")
    assert plugin["distribution"] == "memsheaf-textfolder"
    assert plugin["status"] == "loaded"
    assert run("doctor")["healthy"] is True
    (hit,) = run("recall", "who plays a cello", "--user", "mira")["results"]
    assert [source["provider"] for source in hit["sources"]] == ["local", "textfolder"]
    assert run("forget", made["id"], "--user", "mira")["verified"] is True
    assert list((home / "texts").glob("*.json")) == []

    # The same through the library, with the example as the only store.
    code = (
        "from memsheaf.stack import MemoryStack, Scope\n"
        "with MemoryStack.from_config() as stack:\n"
        "    stack.store('the piano tuner comes', scope=Scope(user_id='mira'))\n"
        "    print([m.name for m in stack.providers])\n"
    )
    (home / "memsheaf.toml").write_text('[[providers]]\ntype = "textfolder"\n')
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, timeout=60
    )
    assert done.stdout.strip() == b"['textfolder']", done.stderr
