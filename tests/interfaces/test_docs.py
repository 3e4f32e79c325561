import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from memsheaf.interfaces.cli import COMMANDS
from memsheaf.stack import IdUnavailable, MemoryRecord, Scope
from memsheaf.stack.config import load_config
from memsheaf.stack.config_mounts import mounts
from memsheaf.stack.config_settings import Placement
from memsheaf.stack.registry import Registry

DOCS = Path(__file__).parents[2] / "docs"


def block(page: str, language: str, place: int = 0) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found[place]


def test_every_command_has_its_heading() -> None:
    headings = re.findall(r"^## `memsheaf (\w+)", (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(COMMANDS)


def test_every_key_of_a_provider_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "configuration.md").read_text(), re.MULTILINE)
    assert set(Placement.model_fields) <= set(rows)


def test_the_provider_of_the_page_is_installed_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = tomllib.loads(block("providers.md", "toml"))
    name = build["project"]["name"]
    entries = build["project"]["entry-points"]["memsheaf.providers"]
    site = tmp_path / "site"
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{key} = {value}" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[memsheaf.providers]\n{lines}\n")
    (site / "memsheaf_textfolder.py").write_text(block("providers.md", "python"))
    monkeypatch.syspath_prepend(str(site))
    try:
        assert Registry("memsheaf.providers").plugins["textfolder"].distribution == name
        home = tmp_path / "home"
        home.mkdir()
        (home / "memsheaf.toml").write_text(block("providers.md", "toml", 1))
        (mount,) = mounts(load_config(tmp_path, environ={"MEMSHEAF_HOME": str(home)}))
        store: Any = mount.provider
        mira, other = Scope(user_id="mira"), Scope(user_id="otto")
        record = MemoryRecord(content="Mira plays the cello", scope=mira)
        store.store(record)
        with pytest.raises(IdUnavailable):
            store.store(record.model_copy(update={"scope": other}))
        (hit,) = store.search("the cello", mira, 5, None)
        assert hit.record == record
        assert store.search("the cello", other, 5, None) == []
        assert not store.forget(record.id, other)
        assert store.forget(record.id, mira)
        assert store.get(record.id, mira) is None
    finally:
        sys.modules.pop("memsheaf_textfolder", None)
