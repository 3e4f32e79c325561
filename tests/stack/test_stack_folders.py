"""A store's folder is its owner's alone, and never a place that all share."""

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from memsheaf.stack import ProviderUnavailable
from memsheaf.stack.disk_files import make_cache, open_reader
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


def test_of_many_who_make_a_cache_one_does(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    names = [f"maker-{number}" for number in range(8)]
    going = threading.Barrier(len(names))

    def make(name: str) -> None:
        going.wait()
        make_cache(folder, 5.0, memsheaf_store=name)

    before = os.umask(0)
    try:
        threads = [threading.Thread(target=make, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        os.umask(before)
    reader = open_reader(folder, 5.0)
    found = reader.execute("SELECT value FROM Settings WHERE key = 'memsheaf_store'").fetchall()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM Cache")
    reader.close()
    assert len(found) == 1
    assert found[0][0] in names
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}  # no draft stays
