"""The saved index of a local store: used where it is true, and without what was forgotten."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.index import BM25Index
from memsheaf.providers import live_view, local_view
from memsheaf.providers.local import LocalStore
from memsheaf.providers.oplog import Row
from memsheaf.stack import Scope

MIRA = Scope(user_id="mira")


def contents(folder: Path) -> bytes:
    return b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


def test_a_forgotten_text_is_nowhere_in_the_folder(
    note: Any, ids: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    with LocalStore(tmp_path) as store:
        filler = [note(f"filler {n} " + "lorem " * (n % 90), id=f"f{n}") for n in range(200)]
        store.store_many(filler)
        for n in range(100):
            store.store(
                note(f"my door code is zebra-canary-4471 {n} " + "z" * (n * 97), id=f"c{n}")
            )
            store.store(note(f"more {n}", id=f"g{n}"))
        store.store(note("the old words: quagga", id="u"))
        assert ids(store, "canary")
    assert b"canary" in contents(tmp_path)
    assert (tmp_path / "index").exists()
    with LocalStore(tmp_path) as store:
        for n in range(100):
            assert store.forget(f"c{n}", MIRA)
        store.update("u", MIRA, {"content": "new words"})
        assert not any(word in contents(tmp_path) for word in (b"canary", b"zebra", b"quagga"))
        assert ids(store, "canary") == set()
    assert not any(word in contents(tmp_path) for word in (b"canary", b"zebra", b"quagga"))
    with LocalStore(tmp_path) as store:
        assert len(ids(store)) == 301


def test_forgetting_in_one_process_reaches_the_index_of_another(
    note: Any, ids: Any, tmp_path: Path
) -> None:
    with LocalStore(tmp_path) as one, LocalStore(tmp_path) as other:
        one.store(note("zebra", id="a"))
        assert ids(other, "zebra") == {"a"}
        one.forget("a", MIRA)
        assert ids(other, "zebra") == set()
        one.store(note("zebra", id="a"))
        assert ids(other, "zebra") == {"a"}


@pytest.mark.parametrize("damage", ["none", "stale", "torn", "foreign"])
def test_a_snapshot_is_used_only_where_it_is_true(
    note: Any, ids: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    for where, word in ((folder, "tea"), (other, "coffee")):
        with LocalStore(where) as store:
            store.store_many([note(f"{word} {n}", id=f"r{n}") for n in range(50)])
            assert ids(store, word)
    catalog = folder / "index" / "catalog.npz"
    if damage == "stale":
        monkeypatch.setattr(live_view, "_WORTH_SAVING", 10_000)
        with LocalStore(folder) as store:
            store.store(note("tea late", id="late"))
    elif damage == "torn":
        catalog.write_bytes(catalog.read_bytes()[:300])
    elif damage == "foreign":
        for file in (folder / "index").rglob("*"):
            if file.is_file():
                file.unlink()
        (other / "index").rename(folder / "index2")
        for file in (folder / "index2" / "text").iterdir():
            file.rename(folder / "index" / "text" / file.name)
        (folder / "index2" / "catalog.npz").rename(catalog)
    replayed: list[int] = []
    apply = local_view.View.apply

    def counted(view: local_view.View, batches: Iterable[list[Row]]) -> None:
        rows = [row for batch in batches for row in batch]
        replayed.append(len(rows))
        apply(view, [rows] if rows else [])

    monkeypatch.setattr(local_view.View, "apply", counted)
    with LocalStore(folder) as store:
        expected = {f"r{n}" for n in range(50)} | ({"late"} if damage == "stale" else set())
        assert ids(store, "tea") == ids(store) == expected
        assert ids(store, "coffee") == set()
        assert sum(replayed) == {"none": 0, "stale": 1}.get(damage, 50)


@pytest.mark.parametrize("change", ["forget", "update", "replace"])
def test_the_saved_index_holds_nothing_of_what_was_forgotten(
    note: Any, ids: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    saved = tmp_path / "index"

    def bytes_of(folder: Path) -> bytes:
        return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())

    with LocalStore(tmp_path) as store:
        store.store_many([note(f"tea number {n}", id=f"r{n:04}") for n in range(3_000)])
        store.store(note("hunter2xyzzy tea", id="r-secret"))
    assert b"hunter2xyzzy" in bytes_of(saved)
    with LocalStore(tmp_path) as store:
        if change == "forget":
            assert store.forget("r-secret", MIRA)
        elif change == "update":
            assert store.update("r-secret", MIRA, {"content": "milk"})
        else:
            store.store(note("milk", id="r-secret"))
        assert not saved.exists()
        assert ids(store, "hunter2xyzzy") == set()
    assert b"hunter2xyzzy" not in bytes_of(tmp_path)
    assert (b"r-secret" in bytes_of(saved)) == (change != "forget")
    kept = BM25Index.load(saved / "text")
    assert all(segment.gone == 0 for segment in kept._store.segments)
    assert kept._store.vocabulary.find("hunter2xyzzy") is None
    with LocalStore(tmp_path) as store:
        assert ids(store, "milk") == (set() if change == "forget" else {"r-secret"})
        assert len(ids(store, "tea")) == 3_000


def test_a_flipped_byte_of_the_saved_index_is_never_trusted(
    note: Any, ids: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    with LocalStore(tmp_path / "a") as store:
        store.store_many([note(f"tea number{n}", id=f"r{n}") for n in range(40)])
        expected = [(hit.id, hit.score) for hit in store.search("tea number7", MIRA, 99, None)]
    saved = {
        file: file.read_bytes() for file in (tmp_path / "a" / "index").rglob("*") if file.is_file()
    }
    rng = random.Random(7)
    for file, data in saved.items():
        for at in rng.sample(range(len(data)), 4):
            for other, content in saved.items():
                other.parent.mkdir(parents=True, exist_ok=True)
                other.write_bytes(content)
            file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
            store = LocalStore(tmp_path / "a")
            found = [(hit.id, hit.score) for hit in store.search("tea number7", MIRA, 99, None)]
            assert found == expected
            assert ids(store) == {f"r{n}" for n in range(40)}
            store.close()


def test_recalls_do_not_index_again(
    note: Any, ids: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_view, "_WORTH_SAVING", 1)
    with LocalStore(tmp_path) as store:
        store.store_many([note(f"tea number{n}", id=f"r{n}") for n in range(20)])
        assert len(ids(store, "tea")) == 20
        assert store.touch([f"r{n}" for n in range(20)], MIRA) == 20
        assert len(ids(store, "tea")) == 20
        view = store._opened().current()
        assert view.index._store.inserted == 20
        store.store(note("milk", id="r3"))
        assert ids(store, "milk") == {"r3"}
        store.forget("r3", MIRA)
        store.store(note("milk", id="r3"))
        assert ids(store, "milk") == {"r3"}
    with LocalStore(tmp_path) as store:
        assert store.touch(["r3"], MIRA) == 1
        assert ids(store, "milk") == {"r3"}
        held = store.get("r3", MIRA)
        assert held is not None
        assert held.access_count == 1
