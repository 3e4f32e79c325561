"""The folder of a local store: restarts, permissions, full disks, damaged and foreign files."""

import os
import pickle
import resource
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diskcache
import pytest

from memsheaf.providers.local import LocalStore
from memsheaf.stack import ProviderUnavailable, Scope, StorageFull, StoreCorrupt

Forked = Callable[[Callable[[], None]], None]
MIRA = Scope(user_id="mira")


def test_a_restart_finds_everything(note: Any, ids: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        store.touch(["a"], MIRA)
    with LocalStore(tmp_path) as store:
        assert ids(store, "tea") == {"a"}
        held = store.get("a", MIRA)
        assert held is not None
        assert held.access_count == 1


def test_an_empty_file_is_a_store_that_was_never_made(note: Any, ids: Any, tmp_path: Path) -> None:
    (tmp_path / "cache.db").touch()
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        assert ids(store) == {"a"}


def test_permissions_do_not_depend_on_the_umask(note: Any, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with LocalStore(tmp_path / "s") as store:
            store.store(note("tea"))
            files = [tmp_path / "s", *(tmp_path / "s").iterdir()]
            modes = {f.name: f.stat().st_mode & 0o777 for f in files}
    finally:
        os.umask(before)
    assert modes.pop("s") == 0o700
    assert set(modes.values()) == {0o600}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_read_only_folder_can_be_searched(
    note: Any, ids: Any, open_folder: Path, forked: Forked
) -> None:
    folder = open_folder / "s"
    with LocalStore(folder) as store:
        store.store(note("tea", id="a"))
    for file in folder.rglob("*"):
        file.chmod(0o444)
    folder.chmod(0o555)

    def body() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        store = LocalStore(folder)
        assert ids(store, "tea") == {"a"}
        with pytest.raises((StorageFull, ProviderUnavailable)):
            store.store(note("more"))
        assert ids(store, "tea") == {"a"}
        store.close()

    forked(body)
    folder.chmod(0o700)


def test_a_full_disk_keeps_what_was_there(
    note: Any, ids: Any, tmp_path: Path, forked: Forked
) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))

    def body() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
        store = LocalStore(tmp_path)
        told = store.store_many([note("x" * 10_000, id=f"r{n}") for n in range(500)])
        assert {type(t) for t in told} == {StorageFull}, told[0]
        assert ids(store) == {"a"}
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        store.store(note("tea", id="b"))
        assert ids(store) == {"a", "b"}
        store.close()

    forked(body)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    store = LocalStore(path)
    with pytest.raises(ProviderUnavailable, match="file"):
        store.check()
    assert path.read_text() == "mine"


def test_damage_is_told_and_nothing_is_deleted(note: Any, tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    path.write_bytes(b"not a database " * 1000)
    store = LocalStore(tmp_path)
    with pytest.raises(StoreCorrupt):
        store.search("x", MIRA, 1, None)
    with pytest.raises(StoreCorrupt):
        store.store(note("x"))
    assert path.read_bytes() == b"not a database " * 1000


def test_a_foreign_cache_is_refused(tmp_path: Path) -> None:
    with diskcache.Cache(str(tmp_path)) as cache:
        cache["a"] = {"b"}
    with pytest.raises(StoreCorrupt, match="another folder"):
        LocalStore(tmp_path).check()


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /nowhere/exploded",)


def test_a_pickle_is_never_loaded(
    note: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
    direct = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    direct.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(_Bomb()),))
    direct.close()
    monkeypatch.setattr(pickle, "load", lambda *_: pytest.fail("unpickled"))
    with LocalStore(tmp_path) as store:
        for call in (
            lambda: store.search("tea", MIRA, 1, None),
            lambda: store.get("a", MIRA),
            lambda: store.forget("a", MIRA),
        ):
            with pytest.raises(StoreCorrupt):
                call()
