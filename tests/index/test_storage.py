"""Saved indexes: round trips, what is written, and what is refused."""

from pathlib import Path

import pytest

from memsheaf.index import BM25Index, Document, SnapshotError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    index = BM25Index("plain")
    index.add_many(Document(f"d{i}", f"text number{i}", (f"u{i % 3}",)) for i in range(200))
    index.remove("d7")
    index.save(tmp_path / "index", sequence=41)
    return tmp_path / "index"


def test_a_loaded_index_answers_and_takes_writes(saved: Path) -> None:
    index = BM25Index.load(saved, analyzer="plain")
    assert (index.sequence, len(index), "d7" in index) == (41, 199, False)
    assert [h.id for h in index.search("number8")] == ["d8"]
    assert len(index.search("text", 500, where=("u1",))) == 66
    index.add("d8", "replaced")
    assert index.search("number8") == []
    assert [h.id for h in index.search("replaced")] == ["d8"]
    assert index.remove("d9")
    index.save(saved, sequence=42)
    again = BM25Index.load(saved, analyzer="plain")
    assert (again.sequence, len(again)) == (42, 198)
    assert [h.id for h in again.search("replaced")] == ["d8"]


def test_large_parts_are_not_written_again(saved: Path) -> None:
    before = {p.name for p in saved.glob("*.segment")}
    index = BM25Index.load(saved, analyzer="plain")
    index.add("new", "one more")
    index.save(saved, sequence=42)
    assert before < {p.name for p in saved.glob("*.segment")}
    assert not list(saved.glob("*.tmp"))


def test_files_are_private(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in saved.iterdir()} == {0o600}


def test_the_words_of_a_removed_document_are_not_written(tmp_path: Path) -> None:
    index = BM25Index("plain")
    index.add("keep", "plain words")
    index.add("gone", "hunter2secret words")
    index.remove("gone")
    index.save(tmp_path, sequence=1)
    assert all(b"hunter2secret" not in p.read_bytes() for p in tmp_path.iterdir())


def test_compaction_leaves_nothing_of_removed_documents(tmp_path: Path) -> None:
    index = BM25Index("plain")
    index.add_many(Document(f"d{i}", f"text number{i}") for i in range(5_000))
    index.remove("d4321")
    index.save(tmp_path, sequence=1)
    assert any(b"d4321" in p.read_bytes() for p in tmp_path.iterdir())
    before = [(hit.id, hit.score) for hit in index.search("text number77")]
    index.compact()
    index.save(tmp_path, sequence=2)
    assert not any(b"d4321" in p.read_bytes() for p in tmp_path.iterdir())
    again = BM25Index.load(tmp_path, analyzer="plain")
    assert [(hit.id, hit.score) for hit in again.search("text number77")] == before
    assert len(again) == 4_999


def test_another_analyzer_is_refused(saved: Path) -> None:
    with pytest.raises(SnapshotError, match="plain"):
        BM25Index.load(saved, analyzer="english")


def test_an_absent_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="no saved index"):
        BM25Index.load(tmp_path, analyzer="plain")


@pytest.mark.parametrize("kind", ["manifest", "*.segment", "*.terms", "*.state"])
@pytest.mark.parametrize("damage", ["cut", "header", "foreign", "empty", "missing"])
def test_damaged_files_are_refused(saved: Path, kind: str, damage: str) -> None:
    file = next(saved.glob(kind))
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-1])
    elif damage == "header":
        file.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    elif damage == "foreign":
        file.write_bytes(b"SQLite format 3\0" * 8)
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    with pytest.raises(SnapshotError):
        BM25Index.load(saved, analyzer="plain")
