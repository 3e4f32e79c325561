"""A store's folder is its owner's alone, and never a place that all share."""

import stat
from pathlib import Path

import pytest

from memsheaf.stack import ProviderUnavailable
from memsheaf.stack.folders import private_folder


def test_a_folder_is_made_or_closed_for_its_owner(tmp_path: Path) -> None:
    made, held = tmp_path / "a" / "b", tmp_path / "held"
    held.mkdir(mode=0o755)
    held.chmod(0o755)
    for folder in (made, held):
        private_folder(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_shared_place_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(ProviderUnavailable, match="a folder of its own"):
        private_folder(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not ours")
    with pytest.raises(ProviderUnavailable, match="name another"):
        private_folder(file)
    assert file.read_text() == "not ours"
