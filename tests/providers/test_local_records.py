"""Records at hand: read once, right for as long as their rows are the newest, and few."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memsheaf.providers import local_records, local_view
from memsheaf.providers.catalog import Catalog
from memsheaf.providers.local import LocalStore
from memsheaf.providers.local_records import Records, read_row
from memsheaf.providers.memory_log import MemoryLog
from memsheaf.providers.oplog import Row
from memsheaf.stack import MemoryRecord, Scope, StorageFull, StoreCorrupt

MIRA = Scope(user_id="mira")


def found(store: LocalStore, text: str) -> list[str]:
    return [hit.record.content for hit in store.search(text, MIRA, 10, None)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the rows that were read."""
    seen: list[str] = []
    real = local_records.read_row

    def counted(row: Row) -> MemoryRecord:
        seen.append(row.id)
        return real(row)

    monkeypatch.setattr(local_records, "read_row", counted)
    monkeypatch.setattr(local_view, "read_row", counted)
    return seen


def test_what_is_found_again_is_not_read_again(note: Any, tmp_path: Path, reads: list[str]) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea at five", id="a"))
        assert found(store, "tea") == found(store, "tea") == ["tea at five"]
        assert reads == ["a"]
        assert [record.id for record in store.list(MIRA, 10, None, "newest", None)] == ["a"]
        assert reads == ["a"]


def test_changes_of_another_process_are_seen(note: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as one, LocalStore(tmp_path) as other:
        one.store(note("tea at five", id="a"))
        assert found(one, "tea") == found(other, "tea") == ["tea at five"]
        assert other.update("a", MIRA, {"content": "tea at six"})
        assert found(one, "tea") == ["tea at six"]
        assert other.touch(["a"], MIRA) == 1
        assert [hit.record.access_count for hit in one.search("tea", MIRA, 10, None)] == [1]
        assert other.forget("a", MIRA)
        assert found(one, "tea") == []
        assert one.get("a", MIRA) is None
        other.store(note("tea at seven", id="a"))
        assert found(one, "tea") == ["tea at seven"]


def test_nothing_is_kept_of_what_was_forgotten(note: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a"))
        assert found(store, "tea") == ["tea"]
        records = store._opened().current().records
        assert set(records._held) == {"a"}
        store.forget("a", MIRA)
        assert found(store, "tea") == []
        assert records._held == {}


def test_a_write_that_was_rolled_back_leaves_nothing(note: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="first"))
        assert found(store, "tea") == ["tea"]

        class FullDisk(MemoryRecord):
            def to_json(self) -> str:
                raise StorageFull("no room")

        lost = note("lost words", id="a")
        full = FullDisk(content="x", id="b", scope=MIRA)
        outcomes = store.store_many([lost, note("lost again", id="a"), full])
        assert [type(outcome) for outcome in outcomes] == [StorageFull] * 3
        store.store(note("kept words", id="a"))
        assert found(store, "words") == ["kept words"]
        outcomes = store.store_many([note("new words", id="a"), note("newer words", id="a")])
        assert outcomes == [None, None]
        assert found(store, "words") == ["newer words"]


def test_metadata_is_the_callers_own(note: Any, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.store(note("tea", id="a", metadata={"cups": [1]}))
        for _ in range(3):
            (hit,) = store.search("tea", MIRA, 10, None)
            assert hit.record.metadata == {"cups": [1]}
            cups = hit.record.metadata["cups"]
            assert isinstance(cups, list)
            cups.append(2)
        store.store(note("coffee", id="b"))
        for read in (
            lambda: [hit.record for hit in store.search("coffee", MIRA, 10, None)],
            lambda: [hit.record for hit in store.search("", MIRA, 1, None)],
            lambda: store.list(MIRA, 1, None, "newest", None),
            lambda: [store.get("b", MIRA)],
        ):
            for _ in range(2):
                (coffee,) = read()
                assert coffee is not None
                assert coffee.metadata == {}
                coffee.metadata["cups"] = 1


def test_long_ones_are_not_kept(note: Any) -> None:
    log, catalog = MemoryLog(), Catalog()
    records = Records(log, 3)
    for content in ("short", "long " * 1_000):
        with log.writing() as writer:
            writer.push("a", note(content, id="a").to_json(), writer.find("a"))
        row = log.find(["a"])["a"]
        record = read_row(row)
        catalog.put(record, row.sequence, content)
        records.keep(row, record)
        assert list(records._held) == (["a"] if content == "short" else [])
        assert records.listed(catalog, ["a"])["a"].content == content


def test_only_the_last_used_are_kept(note: Any) -> None:
    log = MemoryLog()
    records, catalog = Records(log, 3), Catalog()
    with log.writing() as writer:
        for n in range(5):
            writer.push(f"r{n}", note(f"tea {n}", id=f"r{n}").to_json(), None)
    for row in log.find([f"r{n}" for n in range(5)]).values():
        record = read_row(row)
        catalog.put(record, row.sequence, "")
        records.keep(row, record)
    assert list(records._held) == ["r2", "r3", "r4"]
    assert set(records.listed(catalog, ["r2", "r0", "gone"])) == {"r2", "r0"}
    assert list(records._held) == ["r4", "r2", "r0"]


def test_what_was_read_too_early_is_not_kept(note: Any) -> None:
    log, catalog = MemoryLog(), Catalog()
    records = Records(log, 3)
    with log.writing() as writer:
        writer.push("a", note("tea", id="a").to_json(), None)
    early = log.find(["a"])["a"]
    catalog.put(read_row(early), early.sequence, "")
    newer = Row(early.sequence + 1, "a", note("coffee", id="a").to_json())
    find = log.find

    def overtaken(record_ids: Sequence[str]) -> dict[str, Row]:
        rows = find(record_ids)
        catalog.put(read_row(newer), newer.sequence, "")
        records.keep(newer, read_row(newer))
        return rows

    log.find = overtaken  # type: ignore[method-assign]
    assert records.listed(catalog, ["a"])["a"].content == "tea"
    log.find = find  # type: ignore[method-assign]
    assert records.listed(catalog, ["a"])["a"].content == "coffee"
    catalog.remove("a")
    records.drop("a")
    assert records._held == {}


def test_a_row_with_another_id_is_damaged(note: Any) -> None:
    text = json.dumps({**json.loads(note("tea", id="a").to_json()), "id": "b"})
    with pytest.raises(StoreCorrupt, match="row 7"):
        read_row(Row(7, "a", text))
